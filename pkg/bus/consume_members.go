package bus

import (
	"encoding/json"
	"slices"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"github.com/parley-chat/parley/proto-events/subject"
)

const (
	// memberHeartbeat is the interval of a replica's heartbeats; after memberLost without one it counts as dead.
	// A replica that is wrongly taken for dead does no harm: the server pins one reader of each
	// partition, and receivers of a group with positions drop duplicates.
	memberHeartbeat = 500 * time.Millisecond
	memberLost      = 2 * time.Second
	// memberHello is how long a replica listens for others before it takes partitions.
	memberHello = 150 * time.Millisecond
)

// memberState is the state that a replica sends to the others of its group, over core NATS.
type memberState struct {
	ID string `json:"id"`
	// Hello asks all others to publish their state at once.
	Hello bool `json:"hello,omitempty"`
	// Leaving: the replica takes no more partitions. Left: this is its last message.
	Leaving bool `json:"leaving,omitempty"`
	Left    bool `json:"left,omitempty"`
	// Finishing are partitions that it has released and in which its handlers still run.
	Finishing []string `json:"finishing,omitempty"`
}

// members keeps the live replicas of a group, and signals the group when they change.
type members struct {
	self    string
	conn    *nats.Conn
	subject string
	changed chan struct{} // holds at most one
	asked   chan struct{} // holds at most one: another replica has asked for our state

	mu    sync.Mutex
	known map[string]member // the others
}

type member struct {
	memberState
	heard time.Time
}

func newMembers(conn *nats.Conn, stream, durable string) *members {
	return &members{
		self: uuid.NewString(), conn: conn, subject: subject.Members(stream, durable),
		changed: make(chan struct{}, 1), asked: make(chan struct{}, 1), known: make(map[string]member),
	}
}

// listen receives the states of the others until stop is called.
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
	return func() { _ = sub.Unsubscribe() } // fails only where the connection, and with it the subscription, has ended
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
	if s.Hello {
		wake(m.asked)
	}
}

// publish sends this replica's state to the others. One that misses it receives the next one.
func (m *members) publish(s memberState) {
	s.ID = m.self
	if data, err := json.Marshal(s); err == nil {
		_ = m.conn.Publish(m.subject, data)
	}
}

// expire forgets those that have been silent for too long.
func (m *members) expire(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, other := range m.known {
		if now.Sub(other.heard) > memberLost {
			delete(m.known, id)
			wake(m.changed)
		}
	}
}

// refresh restarts the timeout of every replica: while the connection was lost no heartbeat could arrive.
func (m *members) refresh(now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, other := range m.known {
		other.heard = now
		m.known[id] = other
	}
}

// active returns the replicas that take partitions, this one included.
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

// finishing reports whether a replica that lives has handlers running in a partition that it has released.
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

// wake fills a channel that holds at most one.
func wake(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
