package legacy

// In the child: one client, with a queue of its own.

import (
	"io"
	"sync"

	"github.com/googollee/go-socket.io/engineio/session"
)

const (
	maxQueued = 1 << 20 // bytes queued for one client

	// Socket.IO 2 packets, as the payload of an Engine.IO message.
	packetDisconnect = `1` + namespace
	packetEvent      = `2` + namespace + `,`
	packetError      = `4` + namespace + `,`
)

// connection is the part of the library's connection that is used here.
type connection interface {
	io.Closer
	ID() string
	NextReader() (session.FrameType, io.ReadCloser, error)
	NextWriter(session.FrameType) (io.WriteCloser, error)
}

// socket is one client in its room. Writes to the library's connection may block, so each socket has a queue and a
// goroutine that drains it.
type socket struct {
	conn connection
	room string

	mu     sync.Mutex
	queue  [][]byte
	queued int
	ending bool // close the connection when the queue is empty
	closed bool
	work   chan struct{} // wakes run; capacity 1
}

// newSocket returns a socket whose packets run writes.
func newSocket(conn connection, room string) *socket {
	return &socket{conn: conn, room: room, work: make(chan struct{}, 1)}
}

// send queues a packet. If more than maxQueued bytes are queued, it closes the connection.
func (s *socket) send(packet []byte) {
	s.mu.Lock()
	if s.closed || s.ending {
		s.mu.Unlock()
		return
	}
	s.queue = append(s.queue, packet)
	s.queued += len(packet)
	slow := s.queued > maxQueued
	s.mu.Unlock()
	if slow {
		go func() { _ = s.conn.Close() }() // Close may block on a write
		return
	}
	s.wake()
}

// disconnect sends a DISCONNECT packet and closes the connection after the queue is written.
func (s *socket) disconnect() {
	s.send([]byte(packetDisconnect))
	s.mu.Lock()
	s.ending = true
	s.mu.Unlock()
	s.wake()
}

// stop ends run. The connection must be closed.
func (s *socket) stop() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.wake()
}

// wake makes run look at the queue.
func (s *socket) wake() {
	select {
	case s.work <- struct{}{}:
	default:
	}
}

// run writes queued packets until the socket is stopped.
func (s *socket) run() {
	for range s.work {
		for {
			packet, more := s.take()
			if !more {
				return
			}
			if packet == nil {
				break
			}
			if write(s.conn, packet) != nil {
				_ = s.conn.Close()
				return
			}
		}
	}
}

// take returns the next packet, or nil if the queue is empty; more is false if the socket has ended.
func (s *socket) take() (packet []byte, more bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, false
	case len(s.queue) > 0:
		packet = s.queue[0]
		s.queue = s.queue[1:]
		s.queued -= len(packet)
		return packet, true
	case s.ending:
		go func() { _ = s.conn.Close() }() // Close calls stop, which locks mu
		return nil, false
	}
	return nil, true
}

// write writes one message. It returns when a poll or the socket's send buffer has taken it.
func write(conn connection, message []byte) error {
	w, err := conn.NextWriter(session.TEXT)
	if err != nil {
		return err
	}
	_, err = w.Write(message)
	if closeErr := w.Close(); err == nil {
		err = closeErr
	}
	return err
}
