package bus

// The deliveries that a partition holds, and their acknowledgements. Readers add to it, the workers of the
// queue finish.

import (
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Acknowledgements of JetStream, published on a delivery's reply subject.
const (
	ackDone     = "+ACK"
	ackProgress = "+WPI" // in progress: restarts the AckWait timer
	ackRetry    = "-NAK" // redeliver now
	ackTerm     = "+TERM"
)

// task is a delivery in this process, from its arrival until it is finished. Its fields belong to the worker
// that runs it, except for skipped (atomic) and the last four, which the ledger guards.
type task struct {
	delivery  Delivery
	delivered int // by the server, including this delivery
	key       string
	of        shareKey // whose it is
	partition *partition
	tries     int       // within this process
	started   time.Time // start of the first try
	dead      error     // reason for the dead letter; nil: the group has not given up
	notified  bool      // GaveUp has succeeded or panicked

	skipped atomic.Bool // an operator has requested to give up

	arrival uint64    // number in the order of arrival
	reply   string    // subject of acknowledgements; a redelivery replaces it
	touched time.Time // time of the last delivery or progress acknowledgement
	failed  *failure  // the last failure; nil: none
}

// failure is a failed try, as reported by [Bus.Progress].
type failure struct {
	attempt int
	reason  string
	next    time.Time
}

// identity distinguishes deliveries, also after the stream was recreated and its sequences start over.
type identity struct {
	sequence uint64
	at       int64
}

// bytes returns the memory of a task.
func (t *task) bytes() int64 { return int64(len(t.delivery.Data)) + taskBytes }

func (t *task) identity() identity {
	return identity{t.delivery.Sequence, t.delivery.Time.UnixNano()}
}

// ledger holds the unfinished deliveries of a partition and how the most recent ones were finished: an
// acknowledgement may be lost with the connection, and then the server redelivers a finished delivery.
type ledger struct {
	send func(reply, ack string) // called with mu held; it must not block

	mu       sync.Mutex // guards the fields below and the last four of the held tasks
	accepted uint64     // number of new deliveries
	held     map[identity]*task
	done     map[identity]completion
	ring     []identity // ring buffer of the keys of done
	next     int

	capacity int // capacity of the ring
}

// completion is how a task was finished. It is small: a ledger holds thousands.
type completion struct {
	dead     bool
	attempts int32
}

// ack returns the acknowledgement of a completion.
func (c completion) ack() string {
	if c.dead {
		return ackTerm
	}
	return ackDone
}

// newLedger returns the ledger of a partition with that many unacknowledged deliveries at most.
func newLedger(maxAckPending int, send func(reply, ack string)) *ledger {
	return &ledger{
		send: send,
		held: make(map[identity]*task),
		done: make(map[identity]completion),

		capacity: max(2*defaultMaxAckPending, maxAckPending),
	}
}

// accept adds a delivery and reports whether it is new. A redelivery updates the reply subject of the held
// task. If the task is finished, accept repeats its acknowledgement.
func (l *ledger) accept(t *task) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	id := t.identity()
	if end, ok := l.done[id]; ok {
		l.send(t.reply, end.ack())
		return false
	}
	if known, ok := l.held[id]; ok {
		known.reply = t.reply
		known.touched = t.touched
		return false
	}
	l.accepted++
	t.arrival = l.accepted
	l.held[id] = t
	return true
}

// finish removes a task, records its completion and sends ack: ackDone or ackTerm. If ack is lost with the
// connection, accept repeats it when the server redelivers.
func (l *ledger) finish(t *task, ack string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	id := t.identity()
	delete(l.held, id)
	l.record(id, completion{dead: ack == ackTerm, attempts: int32(t.delivery.Attempt)})
	l.send(t.reply, ack)
}

// record stores the completion of a task and drops the oldest one. Callers must hold mu.
func (l *ledger) record(id identity, end completion) {
	l.done[id] = end
	if len(l.ring) < l.capacity {
		l.ring = append(l.ring, id)
		return
	}
	delete(l.done, l.ring[l.next])
	l.ring[l.next] = id
	l.next = (l.next + 1) % len(l.ring)
}

// lowest returns the lowest sequence held; ok is false if none is.
func (l *ledger) lowest() (sequence uint64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id := range l.held {
		if !ok || id.sequence < sequence {
			sequence = id.sequence
			ok = true
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

// nak removes a task that was not handled and asks the server to redeliver it to the next reader.
func (l *ledger) nak(t *task) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.held, t.identity())
	l.send(t.reply, ackRetry)
}

// sendProgress sends a progress acknowledgement for each task whose last one is at least age old. It returns
// the time at which the stream stored the oldest held task; zero if none is held.
func (l *ledger) sendProgress(now time.Time, age time.Duration) (oldest time.Time) {
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

// arrivals returns the number of deliveries accepted so far, for stillHeld.
func (l *ledger) arrivals() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.accepted
}

// stillHeld counts the held tasks among the first arrivals. The server has counted them as pending ever since
// [ledger.arrivals] returned that number.
func (l *ledger) stillHeld(arrivals uint64) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	n := 0
	for _, t := range l.held {
		if t.arrival <= arrivals {
			n++
		}
	}
	return n
}

// find returns the held task of a sequence, or nil.
func (l *ledger) find(sequence uint64) *task {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, t := range l.held {
		if id.sequence == sequence {
			return t
		}
	}
	return nil
}

// lastFailure returns the error of the last failed try of a task; nil: none has failed.
func (l *ledger) lastFailure(t *task) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t.failed == nil {
		return nil
	}
	return errors.New(t.failed.reason)
}

// progress returns the progress of a delivery. The linear search is fine: only operators use it.
func (l *ledger) progress(sequence uint64) (Progress, bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, t := range l.held {
		if id.sequence != sequence {
			continue
		}
		if t.failed == nil {
			return Progress{State: ProgressWaiting, Attempts: t.delivered}, true
		}
		return Progress{
			State:     ProgressRetrying,
			Attempts:  t.failed.attempt,
			LastError: t.failed.reason,
			NextTry:   t.failed.next.UTC(),
		}, true
	}
	for id, end := range l.done {
		if id.sequence != sequence {
			continue
		}
		if end.dead {
			return Progress{State: ProgressDead, Attempts: int(end.attempts)}, true
		}
		return Progress{State: ProgressDone, Attempts: int(end.attempts)}, true
	}
	return Progress{}, false
}

// newTask returns the task of a delivery.
func newTask(m *nats.Msg, meta *jetstream.MsgMetadata, now time.Time) *task {
	delete(m.Header, headerPin) // transport header, not part of the event
	d := newDelivery(meta.Stream, m, meta.Sequence.Stream, meta.Timestamp)
	d.TraceParent = m.Header.Get(headerTraceParent)
	return &task{
		delivery:  d,
		delivered: int(meta.NumDelivered),
		reply:     m.Reply,
		touched:   now,
	}
}
