package legacy

import (
	"sync"
	"time"

	"github.com/googollee/go-socket.io/engineio/frame"
	"github.com/googollee/go-socket.io/engineio/packet"
	"github.com/googollee/go-socket.io/engineio/transport"
)

const (
	// noopInterval is the interval at which polls are answered during an upgrade, as in the official server.
	noopInterval = 50 * time.Millisecond
	// retries bounds the temporary errors returned by a connection that closed during an upgrade: the session may be
	// reading or writing when its connection is replaced. If the errors continue, it was not replaced.
	retries = 8
)

// upgrade handles the upgrade of a polling connection to a WebSocket. The library refuses all requests from
// the probe on, but the client keeps sending until the probe is answered, and disconnects if it is refused.
// Therefore the polling connection stays open, polls are answered with NOOPs, since the client waits for the
// last poll, and when the session has switched to the WebSocket, pending reads and writes return a temporary
// error so that the session retries them there.
type upgrade struct {
	mu       sync.Mutex
	done     chan struct{} // not nil during an upgrade
	replaced bool          // closed during an upgrade
	retried  int
}

// begin starts answering the client's polls, until end is called.
func (u *upgrade) begin(conn transport.Conn) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.done != nil {
		return // a concurrent upgrade; its polls are answered already
	}
	u.done = make(chan struct{})
	go answerPolls(conn, u.done)
}

// answerPolls answers polls with NOOPs until done is closed or the connection has ended.
func answerPolls(conn transport.Conn, done <-chan struct{}) {
	for {
		w, err := conn.NextWriter(frame.String, packet.NOOP) // waits for a poll
		if err != nil || w.Close() != nil {
			return
		}
		select {
		case <-done:
			return
		case <-time.After(noopInterval):
		}
	}
}

// end ends the upgrade, if any; closed tells whether the connection was closed.
func (u *upgrade) end(closed bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.done == nil {
		return
	}
	close(u.done)
	u.done, u.replaced = nil, closed
}

// outcome wraps an error as temporary if the connection may have been replaced, so that the session retries
// on its current connection.
func (u *upgrade) outcome(err error) error {
	if err == nil {
		return nil
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.replaced || u.retried >= retries {
		return err
	}
	u.retried++
	return upgradedError{err}
}

// upgradedError is a temporary error, after which the library's sessions retry.
type upgradedError struct{ error }

// Temporary implements payload.Error.
func (upgradedError) Temporary() bool { return true }

// Unwrap returns the error of the connection.
func (e upgradedError) Unwrap() error { return e.error }
