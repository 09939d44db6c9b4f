package socketio

// Events of clients, between the reader of the connection and the handlers of the application.

import (
	"fmt"
)

// maxInbox bounds the queued events of one socket; if the inbox is full, the client's reader blocks.
const maxInbox = 64

// inbox queues a socket's events between reader and handlers, so that a handler may wait for an
// acknowledgement, which the reader receives.
type inbox struct {
	items   []func()
	size    int
	running bool          // a goroutine is responsible for the items
	space   chan struct{} // closed when a blocked reader should check for space
}

// full reports whether an event of a size must wait. An empty inbox takes any event. Callers must hold the
// socket's mu.
func (in *inbox) full(size, maxSize int) bool {
	if len(in.items) == 0 {
		return false
	}
	return len(in.items) >= maxInbox || in.size+size > maxSize
}

// freeSpace wakes the blocked reader, if any. Callers must hold the socket's mu.
func (in *inbox) freeSpace() {
	if in.space != nil {
		close(in.space)
		in.space = nil
	}
}

// onEvent decodes an event and queues it for its handler.
func (s *Socket) onEvent(p packet, attachments [][]byte) error {
	name, args, err := decodeEvent(p.data, attachments)
	if err != nil {
		return err
	}
	s.queue(func() { s.handle(name, args, s.ackFunc(p)) }, name, len(p.data))
	return nil
}

// queue adds an item to the inbox and blocks while it is full. An event without a handler is dropped.
func (s *Socket) queue(item func(), event string, size int) {
	shared := s.nsp.handler(event) != nil // before s.mu is locked: the namespace's lock comes first
	s.mu.Lock()
	for s.state != socketClosed && s.inbox.full(size, s.nsp.srv.opts.MaxPayload) {
		if s.inbox.space == nil {
			s.inbox.space = make(chan struct{})
		}
		space := s.inbox.space
		s.mu.Unlock()
		<-space
		s.mu.Lock()
	}
	// While handlers run, one of them may add the handler of this event.
	unhandled := !s.inbox.running && s.handlers[event] == nil && !shared
	if s.state == socketClosed || unhandled {
		s.mu.Unlock()
		return
	}
	s.inbox.items = append(s.inbox.items, item)
	s.inbox.size += size
	s.mu.Unlock()
	s.startInbox()
}

// startInbox starts the goroutine that runs the handlers, unless one is running.
func (s *Socket) startInbox() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inbox.running {
		return
	}
	s.inbox.running = true
	s.nsp.srv.wg.Add(1) // the client still counts in wg
	go func() {
		defer s.nsp.srv.wg.Done()
		s.drainInbox()
	}()
}

// drainInbox runs handlers until the inbox is empty.
func (s *Socket) drainInbox() {
	for {
		s.mu.Lock()
		items := s.inbox.items
		s.inbox.items = nil
		s.inbox.size = 0
		s.inbox.freeSpace()
		if len(items) == 0 {
			s.inbox.running = false
			s.mu.Unlock()
			return
		}
		s.mu.Unlock()
		for _, item := range items {
			item()
		}
	}
}

// handle calls the handler of an event. A handler that panics disconnects its socket.
func (s *Socket) handle(event string, args Args, ack Ack) {
	s.mu.Lock()
	fn := s.handlers[event]
	s.mu.Unlock()
	if fn == nil {
		shared := s.nsp.handler(event)
		if shared == nil {
			return
		}
		fn = func(args Args, ack Ack) { shared(s, args, ack) }
	}
	if !s.nsp.srv.guard(fmt.Sprintf("handler of event %q", event), func() { fn(args, ack) }) {
		s.Disconnect(false)
	}
}

// dispatchDisconnect queues the disconnect handlers after the last event, unless the socket was never
// connected.
func (s *Socket) dispatchDisconnect(reason string) {
	if !s.listed() {
		return
	}
	s.nsp.srv.opts.Metrics.SocketDisconnected(s.nsp.name, reason)
	s.mu.Lock()
	s.inbox.items = append(s.inbox.items, func() { s.runDisconnect(reason) })
	s.mu.Unlock()
	s.startInbox()
}

// runDisconnect calls the disconnect handlers and drops all handlers: none runs after them.
func (s *Socket) runDisconnect(reason string) {
	s.mu.Lock()
	handlers := s.onDisconnect
	s.onDisconnect = nil
	s.handlers = nil
	s.mu.Unlock()
	for _, fn := range handlers {
		s.nsp.srv.guard("disconnect handler", func() { fn(reason) })
	}
}
