package bus

import (
	"runtime"
	"slices"
	"sync"

	"github.com/nats-io/nats.go"
)

// outbox writes messages that are published at the same moment together: the connection flushes as soon as it has one, and a system
// call for each message, on both sides, is a large part of the cost of a publish. The first publisher writes for all.
type outbox struct {
	handOver func(*nats.Msg) error
	refused  func(m *nats.Msg, reason error) // the connection did not take it

	mu      sync.Mutex
	waiting []*nats.Msg
	leading bool // a publisher is about to write what waits

	sending sync.Mutex // held while a batch is handed over
	batch   []*nats.Msg
}

// post returns when the message has been written to the connection, or another publisher is about to write it.
func (o *outbox) post(m *nats.Msg) {
	o.mu.Lock()
	o.waiting = append(o.waiting, m)
	leads := !o.leading
	o.leading = true
	o.mu.Unlock()
	if !leads {
		return
	}
	runtime.Gosched() // let concurrent publishers post first; without any it costs nothing
	for o.sendBatch() {
	}
}

// sendBatch writes what waits. It returns false if nothing waited; then the next publisher leads.
func (o *outbox) sendBatch() bool {
	o.sending.Lock()
	defer o.sending.Unlock()
	o.mu.Lock()
	o.batch, o.waiting = o.waiting, o.batch[:0]
	o.leading = len(o.batch) > 0
	o.mu.Unlock()
	for _, m := range o.batch {
		if err := o.handOver(m); err != nil {
			o.refused(m, err)
		}
	}
	clear(o.batch)
	return len(o.batch) > 0
}

// withdraw returns when the message is no longer in use. A message that still waits is not written.
func (o *outbox) withdraw(m *nats.Msg) {
	o.mu.Lock()
	o.waiting = slices.DeleteFunc(o.waiting, func(other *nats.Msg) bool { return other == m })
	o.mu.Unlock()
	o.sending.Lock() // a batch that it was in has been handed over
	defer o.sending.Unlock()
}
