package bus

import "sync"

// broadcast wakes everyone who waits for the next time that something happens. The zero value is ready.
type broadcast struct {
	mu   sync.Mutex
	next chan struct{}
}

// wait returns a channel that closes at the next send.
func (b *broadcast) wait() <-chan struct{} {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next == nil {
		b.next = make(chan struct{})
	}
	return b.next
}

func (b *broadcast) send() {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.next != nil {
		close(b.next)
		b.next = nil
	}
}
