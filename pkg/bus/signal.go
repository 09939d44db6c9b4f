package bus

import "sync"

// signal wakes all waiters at its next occurrence. The zero value is ready to use.
type signal struct {
	mu   sync.Mutex
	next chan struct{}
}

// wait returns a channel that closes at the next send.
func (b *signal) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next == nil {
		b.next = make(chan struct{})
	}
	return b.next
}

func (b *signal) send() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next != nil {
		close(b.next)
		b.next = nil
	}
}
