package legacy

import (
	"sync"
	"time"

	"github.com/googollee/go-socket.io/engineio/frame"
	"github.com/googollee/go-socket.io/engineio/packet"
	"github.com/googollee/go-socket.io/engineio/transport"
)

const (
	// noopEvery is how often a client that upgrades gets its poll answered, as the official server does it.
	noopEvery = 50 * time.Millisecond
	// retries are how many errors of a connection that closed during an upgrade the session is asked to disregard: it may be
	// reading or writing when the connection changes. If the error repeats, the connection has not changed.
	retries = 8
)

// upgrade is the way of a polling connection to a websocket. The library would refuse everything from the moment at which the
// client asks whether a websocket works; but the client sends until it has the answer, and gave up when it was refused. So
// the connection goes on, its polls are answered with NOOPs, for the client waits for the last of them, and when the session
// has changed to the websocket, it is told to try again there.
type upgrade struct {
	mu       sync.Mutex
	done     chan struct{} // not nil while the client upgrades
	replaced bool          // closed during an upgrade
	retried  int
}

// begin answers the client's polls until the end.
func (u *upgrade) begin(conn transport.Conn) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.done != nil {
		return // one upgrade at a time gets the NOOPs; each needs them only to have its polls answered
	}
	u.done = make(chan struct{})
	go answerPolls(conn, u.done)
}

func answerPolls(conn transport.Conn, done <-chan struct{}) {
	for {
		w, err := conn.NextWriter(frame.String, packet.NOOP) // waits for a poll
		if err != nil || w.Close() != nil {
			return
		}
		select {
		case <-done:
			return
		case <-time.After(noopEvery):
		}
	}
}

// end ends the upgrade if there is one; closed reports that the connection has ended.
func (u *upgrade) end(closed bool) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.done == nil {
		return
	}
	close(u.done)
	u.done, u.replaced = nil, closed
}

// outcome makes an error of the connection one after which the session looks for its connection again, if that may have changed.
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

// upgradedError is what the library's sessions take for a reason to try again.
type upgradedError struct{ error }

// Temporary implements payload.Error.
func (upgradedError) Temporary() bool { return true }

// Unwrap returns what happened to the connection.
func (e upgradedError) Unwrap() error { return e.error }
