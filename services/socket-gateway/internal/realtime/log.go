package realtime

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/proto-events/subject"
)

const (
	stateTimeout = 2 * time.Second
	// readBatch and readBytes bound what the server sends for one request.
	readBatch = 256
	readBytes = 512 << 10
	// replicaPause is the wait for a replica that has not got yet what its leader has.
	replicaPause = 20 * time.Millisecond
)

// State is what is known of the stream of replies.
type State struct {
	First, Last uint64 // sequences; First is Last+1 where the stream is empty
	Created     time.Time
	Replicas    int
}

// Log reads replies from their stream. It is safe for concurrent use.
type Log struct {
	bus  *bus.Bus
	js   jetstream.JetStream
	conn *nats.Conn
	// stream is the one that Read reads.
	stream string

	mu      sync.Mutex
	next    *stateCall // that has not begun yet
	running bool
}

// stateCall is one question for the state, on behalf of all who asked before it began.
type stateCall struct {
	done  chan struct{}
	state State
	err   error
}

// NewLog returns the log of the stream REPLIES.
func NewLog(b *bus.Bus) *Log {
	js := b.JetStream()
	return &Log{bus: b, js: js, conn: js.Conn(), stream: subject.Replies}
}

// State returns the state of a moment after it was called. Thousands who ask at once share a few requests.
func (l *Log) State(ctx context.Context) (State, error) {
	call := l.joinCall()
	select {
	case <-call.done:
		return call.state, call.err
	case <-ctx.Done():
		return State{}, ctx.Err()
	}
}

func (l *Log) joinCall() *stateCall {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next == nil {
		l.next = &stateCall{done: make(chan struct{})}
	}
	if !l.running {
		l.running = true
		go l.answer()
	}
	return l.next
}

func (l *Log) answer() {
	for {
		l.mu.Lock()
		call := l.next
		l.next, l.running = nil, call != nil
		l.mu.Unlock()
		if call == nil {
			return
		}
		call.state, call.err = l.fetchState()
		close(call.done)
	}
}

func (l *Log) fetchState() (State, error) {
	ctx, cancel := context.WithTimeout(context.Background(), stateTimeout)
	defer cancel()
	stream, err := l.js.Stream(ctx, subject.Replies)
	if err != nil {
		return State{}, fmt.Errorf("asking for the state of the stream: %w", err)
	}
	info := stream.CachedInfo()
	state := State{First: info.State.FirstSeq, Last: info.State.LastSeq, Created: info.Created, Replicas: info.Config.Replicas}
	if info.State.Msgs == 0 {
		state.First = state.Last + 1
	}
	return state, nil
}

// Floors returns for each partition up to which sequence every reply has been passed on by some gateway: what the consumer that
// all gateways share has acknowledged. pending is how many wait in all partitions.
func (l *Log) Floors(ctx context.Context) (floors []uint64, pending uint64, err error) {
	partitions, err := l.bus.Partitions(ctx, subject.Replies)
	if err != nil {
		return nil, 0, err
	}
	group, err := l.bus.Group(ctx, subject.Replies, durable)
	if err != nil {
		return nil, 0, err
	}
	if len(group.Partitions) != partitions {
		return nil, 0, errNotDeclared
	}
	floors = make([]uint64, partitions)
	for i, p := range group.Partitions {
		floors[i] = p.AckFloor
		pending += p.Pending + uint64(max(p.AckPending, 0))
	}
	return floors, pending, nil
}

var errNotDeclared = errors.New("the consumer is not complete yet")

// Entry is one message of the log.
type Entry struct {
	Subject  string
	Sequence uint64
	Data     []byte
	// Elsewhere says that the reply came again for another consumer that had given up on it: it has been emitted.
	Elsewhere bool
}

// Read calls fn with what the stream holds after a sequence on stored subjects that match filter, in order, to its end. An error
// of fn ends it.
func (l *Log) Read(ctx context.Context, filter string, after uint64, fn func(Entry) error) error {
	inbox := l.conn.NewInbox()
	sub, err := l.conn.SubscribeSync(inbox)
	if err != nil {
		return fmt.Errorf("subscribing for replies: %w", err)
	}
	defer sub.Unsubscribe() //nolint:errcheck // fails only when the connection is gone, and with it the subscription
	for {
		last, more, err := l.readBatch(ctx, sub, filter, after, fn)
		if err != nil || !more {
			return err
		}
		after = last
	}
}

// directGet is the request of JetStream's direct get API, as a batch (NATS ADR-31).
type directGet struct {
	Seq        uint64 `json:"seq"`
	NextBySubj string `json:"next_by_subj"`
	Batch      int    `json:"batch"`
	MaxBytes   int    `json:"max_bytes"`
}

func (l *Log) readBatch(ctx context.Context, sub *nats.Subscription, filter string, after uint64, fn func(Entry) error) (last uint64, more bool, err error) {
	ask, err := json.Marshal(directGet{Seq: after + 1, NextBySubj: filter, Batch: readBatch, MaxBytes: readBytes})
	if err != nil {
		return after, false, fmt.Errorf("encoding a request: %w", err)
	}
	if err := l.conn.PublishRequest("$JS.API.DIRECT.GET."+l.stream, sub.Subject, ask); err != nil {
		return after, false, fmt.Errorf("asking for replies: %w", err)
	}
	for last = after; ; {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return last, false, fmt.Errorf("reading replies: %w", err)
		}
		switch status := m.Header.Get("Status"); status {
		case "":
		case "204": // the end of the batch
			return last, m.Header.Get("Nats-Num-Pending") != "0", nil
		case "404":
			return last, false, nil
		default:
			return last, false, fmt.Errorf("reading replies: %s %s", status, m.Header.Get("Description"))
		}
		sequence, err := strconv.ParseUint(m.Header.Get("Nats-Sequence"), 10, 64)
		if err != nil {
			return last, false, fmt.Errorf("reading replies: %w", err)
		}
		last = sequence
		if err := fn(newEntry(m, sequence)); err != nil {
			return last, false, err
		}
	}
}

func newEntry(m *nats.Msg, sequence uint64) Entry {
	return Entry{Subject: subject.Published(m.Header.Get("Nats-Subject")), Sequence: sequence, Data: m.Data, Elsewhere: !bus.MeantFor(m.Header, durable)}
}
