package bus

// The live replicas of a group: each publishes its state over core NATS. consume_group.go owns it.

import (
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"github.com/parley-chat/parley/proto-events/subject"
)

const (
	// memberHeartbeat is the interval of a replica's heartbeats; after memberTimeout without one it counts as
	// dead. A false positive is harmless: the server pins one reader per partition, and receivers of a group
	// with offsets drop duplicates.
	memberHeartbeat = 500 * time.Millisecond
	memberTimeout   = 2 * time.Second
	// memberDiscovery is how long a replica waits for the states of others before it reads partitions.
	memberDiscovery = 150 * time.Millisecond
)

// memberState is the state of a replica, published to its group over core NATS.
type memberState struct {
	ID string `json:"id"`
	// RequestState requests the states of all other replicas.
	RequestState bool `json:"hello,omitempty"`
	// Leaving: the replica is excluded from the assignment. Left: this is its last message.
	Leaving bool `json:"leaving,omitempty"`
	Left    bool `json:"left,omitempty"`
	// Finishing lists released partitions in which handlers of the replica still run.
	Finishing []string `json:"finishing,omitempty"`
}

// Replicas is the number of processes that share the partitions of a [Consumer].
type Replicas struct{ n atomic.Int32 }

// Count returns the number, at least 1.
func (r *Replicas) Count() int { return max(1, int(r.n.Load())) }

func (r *Replicas) set(n int) {
	if r != nil {
		r.n.Store(int32(n))
	}
}

// members tracks the live replicas of a group and signals changes.
type members struct {
	self           string
	conn           *nats.Conn
	subject        string
	changed        chan struct{} // capacity 1
	stateRequested chan struct{} // capacity 1: another replica has requested this replica's state

	mu      sync.Mutex        // guards the fields below
	known   map[string]member // other replicas, by id
	checked time.Time         // last call of expire
}

type member struct {
	memberState
	heard time.Time
}

func newMembers(conn *nats.Conn, stream, durable string) *members {
	return &members{
		self:           uuid.NewString(),
		conn:           conn,
		subject:        subject.Members(stream, durable),
		changed:        make(chan struct{}, 1),
		stateRequested: make(chan struct{}, 1),
		known:          make(map[string]member),
	}
}

// listen receives the states of other replicas until stop is called.
func (m *members) listen() (stop func()) {
	sub, err := m.conn.Subscribe(m.subject, func(msg *nats.Msg) {
		var s memberState
		if json.Unmarshal(msg.Data, &s) == nil && s.ID != "" && s.ID != m.self {
			m.receive(s, time.Now())
		}
	})
	if err != nil { // the bus is closed
		return func() {}
	}
	return func() { _ = sub.Unsubscribe() } // fails only if the connection, and with it the subscription, is closed
}

func (m *members) receive(s memberState, now time.Time) {
	m.mu.Lock()
	before, known := m.known[s.ID]
	if s.Left {
		delete(m.known, s.ID)
	} else {
		m.known[s.ID] = member{s, now}
	}
	m.mu.Unlock()
	if !known || s.Left || before.Leaving != s.Leaving || !slices.Equal(before.Finishing, s.Finishing) {
		wake(m.changed)
	}
	if s.RequestState {
		wake(m.stateRequested)
	}
}

// publish sends this replica's state. A lost message is repaired by the next heartbeat.
func (m *members) publish(s memberState) {
	s.ID = m.self
	if data, err := json.Marshal(s); err == nil {
		_ = m.conn.Publish(m.subject, data)
	}
}

// expire removes replicas whose last heartbeat is older than memberTimeout. It is called with each heartbeat; if it
// comes late, this process stood still, and the heartbeats of the others may wait unread.
func (m *members) expire(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	late := now.Sub(m.checked) > 2*memberHeartbeat
	m.checked = now
	if late {
		m.refreshLocked(now)
		return
	}
	for id, other := range m.known {
		if now.Sub(other.heard) > memberTimeout {
			delete(m.known, id)
			wake(m.changed)
		}
	}
}

// refresh restarts the timeout of every replica, because no heartbeat arrives while the connection is lost.
func (m *members) refresh(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.refreshLocked(now)
}

// refreshLocked is refresh for callers that hold mu.
func (m *members) refreshLocked(now time.Time) {
	for id, other := range m.known {
		other.heard = now
		m.known[id] = other
	}
}

// active returns the sorted ids of replicas that can be assigned partitions, including this one.
func (m *members) active() []string {
	m.mu.Lock()
	defer m.mu.Unlock()
	ids := []string{m.self}
	for id, other := range m.known {
		if !other.Leaving {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// finishing reports whether handlers of another live replica still run in a partition that it has released.
func (m *members) finishing(name string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, other := range m.known {
		if slices.Contains(other.Finishing, name) {
			return true
		}
	}
	return false
}

// wake sends to a channel of capacity 1 without blocking.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
