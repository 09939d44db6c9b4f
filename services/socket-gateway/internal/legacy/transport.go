package legacy

// In the child: the library's transports, wrapped where they have defects.

import (
	"errors"
	"io"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/googollee/go-socket.io/engineio/frame"
	"github.com/googollee/go-socket.io/engineio/packet"
	"github.com/googollee/go-socket.io/engineio/transport"
	"github.com/googollee/go-socket.io/engineio/transport/polling"
	"github.com/googollee/go-socket.io/engineio/transport/websocket"
)

const (
	// addWait bounds how long the handshake response waits for the library to register the session.
	addWait = 5 * time.Second
)

var errTooBig = errors.New("message is too big")

// counts are counters shared by all transports.
type counts struct {
	open   atomic.Int64 // connections
	leaked atomic.Int64 // sessions that the library never releases
}

// newTransports returns the library's transports with workarounds.
func newTransports(c *counts) []transport.Transport {
	anyOrigin := func(*http.Request) bool { return true }
	return []transport.Transport{
		&pollingTransport{Transport: &polling.Transport{CheckOrigin: anyOrigin}, counts: c},
		&webSocketTransport{Transport: &websocket.Transport{CheckOrigin: anyOrigin}, counts: c},
	}
}

// pollingTransport wraps the connections of the library's polling transport.
type pollingTransport struct {
	*polling.Transport
	counts *counts
}

// Accept implements transport.Transport.
func (t *pollingTransport) Accept(w http.ResponseWriter, r *http.Request) (transport.Conn, error) {
	conn, err := t.Transport.Accept(w, r)
	if err != nil {
		return nil, err
	}
	t.counts.open.Add(1)
	return &pollingConn{libraryPolling: conn.(libraryPolling), counts: t.counts, added: make(chan struct{})}, nil
}

// libraryPolling is the part of the library's polling connection that is used; Pause is replaced, see upgrade.go.
type libraryPolling interface {
	transport.Conn
	http.Handler
}

// pollingConn works around three defects: the handshake response was sent before the library registered the
// session, so the next request failed; the session of a client that did not send another request was never
// released; requests during an upgrade were refused.
type pollingConn struct {
	libraryPolling
	counts  *counts
	upgrade upgrade

	writers   atomic.Int32 // NextWriter calls: the first is for the OPEN packet, the second for the first CONNECT
	connected atomic.Bool
	added     chan struct{} // closed when the library has registered the session
	handshake sync.Once
	closing   sync.Once
}

// NextWriter implements transport.Conn.
func (c *pollingConn) NextWriter(ft frame.Type, pt packet.Type) (io.WriteCloser, error) {
	n := c.writers.Add(1)
	if n == 2 {
		close(c.added)
	}
	w, err := c.libraryPolling.NextWriter(ft, pt)
	if err == nil && n >= 2 {
		c.connected.Store(true)
	}
	return w, c.upgrade.outcome(err)
}

// NextReader implements transport.Conn. Bodies are limited by the gateway.
func (c *pollingConn) NextReader() (frame.Type, packet.Type, io.ReadCloser, error) {
	ft, pt, r, err := c.libraryPolling.NextReader()
	return ft, pt, r, c.upgrade.outcome(err)
}

// Pause implements session.Pauser: the client has started an upgrade.
func (c *pollingConn) Pause() { c.upgrade.begin(c.libraryPolling) }

// Resume implements session.Pauser: the upgrade failed.
func (c *pollingConn) Resume() { c.upgrade.end(false) }

// ServeHTTP serves a request; the first is the handshake.
func (c *pollingConn) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	first := false
	c.handshake.Do(func() { first = true })
	c.libraryPolling.ServeHTTP(w, r)
	if !first {
		return
	}
	select {
	case <-c.added:
	case <-r.Context().Done():
	case <-time.After(addWait):
	}
}

// Close implements transport.Conn.
func (c *pollingConn) Close() error {
	c.closing.Do(func() {
		c.counts.open.Add(-1)
		if !c.connected.Load() {
			c.counts.leaked.Add(1)
		}
		c.upgrade.end(true)
	})
	return c.libraryPolling.Close()
}

// webSocketTransport wraps the connections of the library's WebSocket transport.
type webSocketTransport struct {
	*websocket.Transport
	counts *counts
}

// Accept implements transport.Transport.
func (t *webSocketTransport) Accept(w http.ResponseWriter, r *http.Request) (transport.Conn, error) {
	conn, err := t.Transport.Accept(w, r)
	if err != nil {
		return nil, err
	}
	t.counts.open.Add(1)
	return &webSocketConn{libraryWebSocket: conn.(libraryWebSocket), counts: t.counts}, nil
}

// libraryWebSocket is the part of the library's WebSocket that is used.
type libraryWebSocket interface {
	transport.Conn
	http.Handler
}

// webSocketConn limits the size of a client's messages.
type webSocketConn struct {
	libraryWebSocket
	counts  *counts
	closing sync.Once
}

// NextReader implements transport.Conn.
func (c *webSocketConn) NextReader() (frame.Type, packet.Type, io.ReadCloser, error) {
	ft, pt, r, err := c.libraryWebSocket.NextReader()
	if err != nil {
		return ft, pt, r, err
	}
	return ft, pt, &limitedReader{ReadCloser: r, left: maxBody, tooBig: c.Close}, nil
}

// Close implements transport.Conn.
func (c *webSocketConn) Close() error {
	c.closing.Do(func() { c.counts.open.Add(-1) })
	return c.libraryWebSocket.Close()
}

// limitedReader closes the connection if a message is too big: closing only the message would read the rest of it.
type limitedReader struct {
	io.ReadCloser
	left   int
	tooBig func() error
}

// Read implements io.Reader.
func (l *limitedReader) Read(p []byte) (int, error) {
	if l.left <= 0 {
		_ = l.tooBig()
		return 0, errTooBig
	}
	n, err := l.ReadCloser.Read(p[:min(len(p), l.left)])
	l.left -= n
	return n, err
}
