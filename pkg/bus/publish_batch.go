package bus

import (
	"runtime"
	"slices"
	"sync"

	"github.com/nats-io/nats.go"
)

// outbox hands messages over to the connection, those of one moment together: the connection writes as soon as it has one, and
// a system call for each, on both sides, is a good part of what a publish costs. Whoever comes first hands over for all.
type outbox struct {
	handOver func(*nats.Msg) error
	refused  func(m *nats.Msg, reason error) // the connection did not take it

	mu      sync.Mutex
	waiting []*nats.Msg
	leading bool // somebody is about to hand over what waits

	sending sync.Mutex // held while a batch is handed over
	batch   []*nats.Msg
}

// post returns when the message has been handed over, or when somebody else is about to do it.
func (o *outbox) post(m *nats.Msg) {
	o.mu.Lock()
	o.waiting = append(o.waiting, m)
	leads := !o.leading
	o.leading = true
	o.mu.Unlock()
	if !leads {
		return
	}
	runtime.Gosched() // those who are about to post do so first; where there is nobody it costs nothing
	for o.sendBatch() {
	}
}

// sendBatch hands over what waits. It returns false when that was nothing, and the next to post leads.
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

// withdraw returns when nobody uses the message any more. If it waits it is not handed over.
func (o *outbox) withdraw(m *nats.Msg) {
	o.mu.Lock()
	o.waiting = slices.DeleteFunc(o.waiting, func(other *nats.Msg) bool { return other == m })
	o.mu.Unlock()
	o.sending.Lock() // a batch that it was in has been handed over
	defer o.sending.Unlock()
}
