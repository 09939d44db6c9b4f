package bus

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/parley-chat/parley/proto-events/subject"
)

// Acknowledgements, as JetStream wants them on a delivery's reply subject.
const (
	ackDone     = "+ACK"
	ackProgress = "+WPI" // not yet, but it is being worked on: do not deliver it again
	ackRetry    = "-NAK" // deliver it again now
	ackTerm     = "+TERM"
)

// task is a delivery in this process, from its arrival until its end has been acknowledged. Its fields belong to the
// worker that has it, except for the last four, which the ledger guards.
type task struct {
	delivery  Delivery
	delivered int // by the server, this time included
	key       string
	partition *partition
	tries     int       // in this process
	started   time.Time // the first of them
	dead      error     // why it goes to DEAD; nil: it does not
	notified  bool      // GaveUp has succeeded
	resumed   bool      // the next call of the handler is not another try (apperr.Error.Ready)

	skipped atomic.Bool // an operator wants no other try

	place   uint64    // in the order of arrival here
	reply   string    // where the server wants to hear of it; changes when it is delivered again
	touched time.Time // the last delivery or progress acknowledgement
	failed  *failure  // the last try; nil: none has failed
}

// failure is a failed try, for the answers of [Bus.Progress].
type failure struct {
	attempt int
	reason  string
	next    time.Time
}

// identity tells deliveries apart, also when a stream was made anew and counts from one again.
type identity struct {
	sequence uint64
	at       int64
}

func (t *task) identity() identity {
	return identity{t.delivery.Sequence, t.delivery.Time.UnixNano()}
}

// ledger holds every delivery of this process, and the last ones that are done: an acknowledgement may get lost with the connection, and then
// the delivery is redelivered though nothing is left to do.
type ledger struct {
	send func(reply, ack string)

	mu   sync.Mutex
	came uint64 // how many new deliveries there were
	held map[identity]*task
	done map[identity]ending
	last []identity // a ring of what is in done
	next int

	remember int // how large the ring may get
}

// ending is how a task ended.
type ending struct {
	ack      string
	attempts int
}

func newLedger(remember int, send func(reply, ack string)) *ledger {
	return &ledger{
		send: send,
		held: make(map[identity]*task),
		done: make(map[identity]ending),

		remember: remember,
	}
}

// take adds a delivery and reports whether it is new here. A redelivery gives the task its new reply subject; that of a task that is done is
// acknowledged again.
func (l *ledger) take(t *task) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	id := t.identity()
	if end, ok := l.done[id]; ok {
		l.send(t.reply, end.ack)
		return false
	}
	if known, ok := l.held[id]; ok {
		known.reply, known.touched = t.reply, t.touched
		return false
	}
	l.came++
	t.place = l.came
	l.held[id] = t
	return true
}

// finish acknowledges a task and remembers it. Without a connection the acknowledgement is made up for when the
// server delivers the task again.
func (l *ledger) finish(t *task, ack string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id := t.identity()
	delete(l.held, id)
	l.note(id, ending{ack, t.delivery.Attempt})
	l.send(t.reply, ack)
}

// note remembers how a task ended. It is called with the lock held.
func (l *ledger) note(id identity, end ending) {
	l.done[id] = end
	if len(l.last) < l.remember {
		l.last = append(l.last, id)
		return
	}
	delete(l.done, l.last[l.next])
	l.last[l.next] = id
	l.next = (l.next + 1) % len(l.last)
}

// lowest returns the lowest sequence that is held.
func (l *ledger) lowest() (sequence uint64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id := range l.held {
		if !ok || id.sequence < sequence {
			sequence, ok = id.sequence, true
		}
	}
	return sequence, ok
}

// fail records a failed try.
func (l *ledger) fail(t *task, f failure) {
	l.mu.Lock()
	defer l.mu.Unlock()
	t.failed = &f
}

// giveBack returns a task that was not handled to the server, for the next reader.
func (l *ledger) giveBack(t *task) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.held, t.identity())
	l.send(t.reply, ackRetry)
}

// touch sends the server a progress acknowledgement for every task that has been here for longer than age. It returns the time at which the
// stream stored the oldest task; zero if there is none.
func (l *ledger) touch(now time.Time, age time.Duration) (oldest time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, t := range l.held {
		oldest = earlier(oldest, t.delivery.Time)
		if now.Sub(t.touched) >= age {
			t.touched = now
			l.send(t.reply, ackProgress)
		}
	}
	return oldest
}

// mark is a point in the order of arrivals, for stillHeld.
func (l *ledger) mark() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.came
}

// stillHeld counts the tasks that arrived before mark and are still held: the server counts them as pending all that time.
func (l *ledger) stillHeld(mark uint64) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, t := range l.held {
		if t.place <= mark {
			n++
		}
	}
	return n
}

// newTask reads a delivery. The second result is its place in the order in which the server has sent this consumer's
// deliveries.
func newTask(m *nats.Msg, now time.Time) (*task, uint64, error) {
	meta, err := m.Metadata()
	if err != nil {
		return nil, 0, err
	}
	delete(m.Header, headerPin) // between the server and the consumer, not part of the event
	return &task{
		delivery: Delivery{
			Stream:   meta.Stream,
			Subject:  subject.Published(m.Subject),
			Data:     m.Data,
			Header:   m.Header,
			ID:       m.Header.Get(headerMsgID),
			Sequence: meta.Sequence.Stream,
			Time:     meta.Timestamp.UTC(),

			TraceParent: m.Header.Get(headerTraceParent),
		},
		delivered: int(meta.NumDelivered),
		reply:     m.Reply,
		touched:   now,
	}, meta.Sequence.Consumer, nil
}
