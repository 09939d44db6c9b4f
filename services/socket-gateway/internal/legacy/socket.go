package legacy

import (
	"io"
	"sync"

	"github.com/googollee/go-socket.io/engineio/session"
)

const (
	maxQueued = 1 << 20 // bytes that may wait for one client

	// Packets of Socket.IO 2 as they stand in an Engine.IO message.
	packetDisconnect = `1` + namespace
	packetEvent      = `2` + namespace + `,`
	packetError      = `4` + namespace + `,`
)

// connection is what the library has of a client.
type connection interface {
	io.Closer
	ID() string
	NextReader() (session.FrameType, io.ReadCloser, error)
	NextWriter(session.FrameType) (io.WriteCloser, error)
}

// socket is one client in its room. Writing to the library's connection may take long, so that each socket has a queue and a
// goroutine that empties it.
type socket struct {
	conn connection
	room string

	mu     sync.Mutex
	queue  [][]byte
	queued int
	ending bool // close when the queue is empty
	closed bool
	work   chan struct{} // has room for one call to work
}

func newSocket(conn connection, room string) *socket {
	return &socket{conn: conn, room: room, work: make(chan struct{}, 1)}
}

// send queues a packet. A client for which too much waits is closed.
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
		go func() { _ = s.conn.Close() }() // it may wait for a write
		return
	}
	s.wake()
}

// disconnect tells the client that it is put out, after what waits for it.
func (s *socket) disconnect() {
	s.send([]byte(packetDisconnect))
	s.mu.Lock()
	s.ending = true
	s.mu.Unlock()
	s.wake()
}

// stop ends run; the connection is closed already.
func (s *socket) stop() {
	s.mu.Lock()
	s.closed = true
	s.mu.Unlock()
	s.wake()
}

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

// take returns the next packet, nil where there is none yet; more is false when no other packet follows.
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
		go func() { _ = s.conn.Close() }() // calls stop, and this lock is ours
		return nil, false
	}
	return nil, true
}

// write writes one message and returns when the client has taken it, or its connection has.
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
