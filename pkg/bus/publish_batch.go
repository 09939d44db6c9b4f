package bus

// The writes of concurrent publishers to the connection, together. publish.go posts.

import (
	"runtime"
	"slices"
	"sync"

	"github.com/nats-io/nats.go"
)

// outbox writes messages of concurrent publishers in one batch. The connection flushes as soon as it has
// data, and a system call per message, on both sides, is a large part of the cost of a publish. The first
// publisher writes for all.
type outbox struct {
	handOver func(*nats.Msg) error
	refused  func(m *nats.Msg, reason error) // called if handOver fails

	mu      sync.Mutex // guards waiting and leading; locked inside sending
	waiting []*nats.Msg
	leading bool // a publisher is about to write the waiting messages: others only append theirs

	sending sync.Mutex // guards batch; held while a batch is handed over
	batch   []*nats.Msg
}

// post writes the message to the connection, unless another publisher is about to write it.
func (o *outbox) post(m *nats.Msg) {
	o.mu.Lock()
	o.waiting = append(o.waiting, m)
	leads := !o.leading
	o.leading = true
	o.mu.Unlock()
	if !leads {
		return
	}
	runtime.Gosched() // let concurrent publishers post first; free if there are none
	for o.sendBatch() {
	}
}

// sendBatch writes the waiting messages. It returns false if there were none; then the next publisher leads.
func (o *outbox) sendBatch() bool {
	o.sending.Lock()
	defer o.sending.Unlock()
	o.mu.Lock()
	free := o.batch[:0] // the two slices take turns, so that none is allocated per batch
	o.batch = o.waiting
	o.waiting = free
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

// withdraw removes a message that is still waiting, and returns when the message is no longer in use.
func (o *outbox) withdraw(m *nats.Msg) {
	o.mu.Lock()
	o.waiting = slices.DeleteFunc(o.waiting, func(other *nats.Msg) bool { return other == m })
	o.mu.Unlock()
	o.sending.Lock() // wait for a batch that contains it
	defer o.sending.Unlock()
}
