package engineio

// One WebSocket of a session: it reads frames and gives their packets to the session, and it writes what the
// session queues. session_write.go writes, session.go closes it; the poller wakes it when bytes arrive.

import (
	"encoding/binary"
	"errors"
	"net"
	"os"
	"sync"
	"time"
)

const (
	readBufferSize = 4 << 10
	writeBatchSize = 64 << 10
)

// pools holds the buffers of active connections.
type pools struct {
	reads   sync.Pool // *[]byte of readBufferSize
	batches sync.Pool // *[]byte with room for writeBatchSize
	writes  sync.Pool // *rawWrite

	deflaters deflaters
}

// newPools returns the buffers that all connections of a server share.
func newPools() *pools {
	return &pools{
		reads:   sync.Pool{New: func() any { b := make([]byte, readBufferSize); return &b }},
		batches: sync.Pool{New: func() any { b := make([]byte, 0, writeBatchSize); return &b }},
		writes:  sync.Pool{New: func() any { return newRawWrite() }},
	}
}

// wsConn is a WebSocket. Its reader calls the session; only the goroutine with the session's write turn
// writes.
type wsConn struct {
	conn    net.Conn
	raw     *rawConn // nil: non-blocking writes are not supported
	session *Session
	in      assembler
	probing bool // true until the client's upgrade packet; used only by the reader
	watched watched

	// Used only by the reader.
	second     time.Duration // start of the second in which frames are counted
	unfinished bool          // the last value passed to Session.await
}

var errWouldBlock = errors.New("engineio: nothing to read yet")

// newWSConn returns the WebSocket of a session over conn. start begins to read it.
func newWSConn(conn net.Conn, s *Session) *wsConn {
	return &wsConn{
		conn:    conn,
		raw:     newRawConn(conn, s.srv.pools),
		session: s,
		in:      assembler{maxPayload: s.srv.opts.MaxPayload, maxFrames: s.srv.opts.MaxFrames},
	}
}

// start starts reading. early holds bytes that arrived with the handshake. The caller must have added c to the
// server's wait group; the goroutine that ends c calls Done.
func (c *wsConn) start(early []byte) {
	if len(early) == 0 && c.watch() {
		return
	}
	go c.readLoop(early)
}

// watch adds c to the server's poller, if any, so that c needs no goroutine while it is idle. A
// probe is not watched: its read deadline needs a blocked reader.
func (c *wsConn) watch() bool {
	p := c.session.srv.poller
	return p != nil && c.raw != nil && !c.probing && p.add(c)
}

// readLoop reads until the connection ends or the poller watches it.
func (c *wsConn) readLoop(early []byte) {
	err := c.feed(early)
	for err == nil {
		if c.watch() {
			return
		}
		err = c.readOnce()
	}
	c.ended(err)
	c.session.srv.wg.Done()
}

// ended must be called by the reader of c when it stops.
func (c *wsConn) ended(err error) {
	c.session.readerEnded(c, err)
	c.conn.Close()
}

// readBurst reads all available bytes. It returns nil if c should be watched again.
func (c *wsConn) readBurst() error {
	buf := c.session.srv.pools.reads.Get().(*[]byte)
	defer c.session.srv.pools.reads.Put(buf)
	for {
		n, err := c.raw.readNow(*buf)
		if errors.Is(err, errWouldBlock) {
			return nil
		}
		if err != nil {
			return err
		}
		if err := c.feed((*buf)[:n]); err != nil {
			return err
		}
		if n < len(*buf) {
			return nil
		}
	}
}

// feed decodes received bytes and handles their messages.
func (c *wsConn) feed(b []byte) error {
	now := c.session.srv.wheel.now()
	if now-c.second >= time.Second {
		c.second = now
		c.in.frames = 0
	}
	before := c.in.messages
	if err := c.in.feed(b, c.onFrame); err != nil {
		return err
	}
	if c.probing {
		return nil // a probe has its own timeout
	}
	unfinished := c.in.unfinished()
	another := unfinished && c.in.messages != before // the timeout begins again with each message
	if unfinished != c.unfinished || another {
		c.unfinished = unfinished
		c.session.await(restOfMessage, unfinished)
	}
	return nil
}

// readOnce waits for bytes and handles them.
func (c *wsConn) readOnce() error {
	buf, n, err := c.read()
	if n > 0 {
		if feedErr := c.feed((*buf)[:n]); feedErr != nil {
			err = feedErr
		}
	}
	if buf != nil {
		c.session.srv.pools.reads.Put(buf)
	}
	return err
}

// read waits for bytes. The buffer is one of the pool of reads.
func (c *wsConn) read() (*[]byte, int, error) {
	if c.raw != nil {
		return c.raw.readReady()
	}
	buf := c.session.srv.pools.reads.Get().(*[]byte)
	n, err := c.conn.Read(*buf)
	return buf, n, err
}

// onFrame handles a message or control frame.
func (c *wsConn) onFrame(op opcode, data []byte) error {
	switch op {
	case opText, opBinary:
		return c.onPacket(data, op == opBinary)
	case opPing:
		if !c.probing {
			c.session.sendPong(data)
		}
	case opClose:
		if !c.probing {
			c.session.srv.retire(c.session) // before the client is notified
			c.session.sendRaw(closeFrame(closeNormal))
		}
		return errPeerLeft
	}
	return nil
}

// onPacket gives the packet in a message to the session, or to the probe of an upgrade.
func (c *wsConn) onPacket(data []byte, binary bool) error {
	p, err := ParsePacket(data, binary)
	if err != nil {
		return err
	}
	if c.probing {
		return c.session.onProbe(c, p)
	}
	return c.session.onPacket(p)
}

// writeNow writes as many bytes as the socket accepts without blocking.
func (c *wsConn) writeNow(b []byte) (int, error) {
	if c.raw == nil {
		return 0, nil
	}
	return c.raw.writeNow(b)
}

// writeAll writes all of b and blocks at most until the deadline.
func (c *wsConn) writeAll(b []byte, deadline time.Time) error {
	if err := c.conn.SetWriteDeadline(deadline); err != nil {
		return err
	}
	if _, err := c.conn.Write(b); err != nil {
		return err
	}
	return c.conn.SetWriteDeadline(time.Time{})
}

// finish closes the write side after the last byte. The client gets closeGrace to close its side: closing the
// connection immediately could reset it and lose the last messages. It returns true if it closed the
// connection because half-close is not supported.
func (c *wsConn) finish() (closed bool) {
	half, ok := c.conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		c.conn.Close()
		return true
	}
	return false
}

// drain reads and discards input until the client closes or the session is terminated.
func (c *wsConn) drain() {
	buf := c.session.srv.pools.reads.Get().(*[]byte)
	defer c.session.srv.pools.reads.Put(buf)
	for {
		if _, err := c.conn.Read(*buf); err != nil {
			return
		}
	}
}

// closeFrame encodes a WebSocket close frame.
func closeFrame(code closeCode) *Message {
	return newRawFrame(opClose, binary.BigEndian.AppendUint16(nil, uint16(code)))
}

// ending translates a reader's error to the reason of the session's close and the close code for
// the client.
func ending(err error) (Reason, closeCode) {
	switch {
	case errors.Is(err, errPeerLeft):
		return ReasonTransportClose, closeNormal
	case errors.Is(err, errTooBig):
		return ReasonTransportError, closeTooBig
	case errors.Is(err, errTooMany):
		return ReasonTransportError, closePolicy
	case errors.Is(err, errFrame):
		return ReasonTransportError, closeProtocolError
	case errors.Is(err, errUTF8):
		return ReasonTransportError, closeInvalidData
	case errors.Is(err, errHeartbeat):
		return ReasonTransportError, closeNormal
	case errors.Is(err, ErrPacket):
		return ReasonParseError, closeNormal
	default:
		return ReasonTransportClose, closeNormal
	}
}

// writeFailure translates a write error to a close reason.
func writeFailure(err error) Reason {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return ReasonSlow
	}
	return ReasonTransportClose
}
