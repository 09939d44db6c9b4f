package engineio

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

// pools holds the buffers that connections take while they have something to do.
type pools struct {
	reads   sync.Pool // *[]byte of readBufferSize
	batches sync.Pool // *[]byte with room for writeBatchSize
	writes  sync.Pool // *rawWrite

	deflaters deflaters
}

func newPools() *pools {
	return &pools{
		reads:   sync.Pool{New: func() any { b := make([]byte, readBufferSize); return &b }},
		batches: sync.Pool{New: func() any { b := make([]byte, 0, writeBatchSize); return &b }},
		writes:  sync.Pool{New: func() any { return newRawWrite() }},
	}
}

// wsConn is one WebSocket. Its reader calls the session; writes are made by the goroutine that holds the session's
// write turn.
type wsConn struct {
	conn    net.Conn
	raw     *rawConn // nil if the connection cannot be written without waiting
	session *Session
	in      assembler
	probing bool // true until the client's upgrade packet; touched by the reader only
	watched watched

	// Touched by the reader only.
	second     time.Duration // when the count of frames began
	unfinished bool          // the session knows that a message is incomplete
}

var errWouldBlock = errors.New("engineio: nothing to read yet")

func newWSConn(conn net.Conn, s *Session) *wsConn {
	return &wsConn{
		conn:    conn,
		raw:     newRawConn(conn, s.srv.pools),
		session: s,
		in:      assembler{maxPayload: s.srv.opts.MaxPayload, maxFrames: s.srv.opts.MaxFrames},
	}
}

// start begins to read. early holds bytes that arrived with the handshake. The caller has counted c in the
// server's wait group; the goroutine that ends c takes it out.
func (c *wsConn) start(early []byte) {
	if len(early) == 0 && c.watch() {
		return
	}
	go c.readLoop(early)
}

// watch leaves c to the server's poller, if it has one, so that c needs no goroutine while it is idle. A
// probe has a time limit that only a waiting reader observes.
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

// ended is called by the reader of c at its end.
func (c *wsConn) ended(err error) {
	c.session.readerEnded(c, err)
	c.conn.Close()
}

// readBurst reads what has arrived. It returns nil when c should be watched again.
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

// feed takes bytes that have arrived.
func (c *wsConn) feed(b []byte) error {
	now := c.session.srv.wheel.now()
	if now-c.second >= time.Second {
		c.second, c.in.frames = now, 0
	}
	before := c.in.messages
	if err := c.in.feed(b, c.onFrame); err != nil {
		return err
	}
	// A probe has a time limit of its own.
	if unfinished := c.in.unfinished(); !c.probing && (unfinished != c.unfinished || unfinished && c.in.messages != before) {
		c.unfinished = unfinished
		c.session.await(restOfMessage, unfinished)
	}
	return nil
}

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

func (c *wsConn) read() (*[]byte, int, error) {
	if c.raw != nil {
		return c.raw.readReady()
	}
	buf := c.session.srv.pools.reads.Get().(*[]byte)
	n, err := c.conn.Read(*buf)
	return buf, n, err
}

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
			c.session.srv.retire(c.session) // before the client hears of the end
			c.session.sendRaw(closeFrame(closeNormal))
		}
		return errPeerLeft
	}
	return nil
}

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

// writeNow writes without waiting as much as the socket takes.
func (c *wsConn) writeNow(b []byte) (int, error) {
	if c.raw == nil {
		return 0, nil
	}
	return c.raw.writeNow(b)
}

// writeAll waits for the socket, at most until the deadline.
func (c *wsConn) writeAll(b []byte, deadline time.Time) error {
	if err := c.conn.SetWriteDeadline(deadline); err != nil {
		return err
	}
	if _, err := c.conn.Write(b); err != nil {
		return err
	}
	return c.conn.SetWriteDeadline(time.Time{})
}

// finish ends our side after the last byte; the client gets a moment to end its own: closing at once
// would reset the connection and could take the last messages with it. It reports whether it was closed.
func (c *wsConn) finish() (closed bool) {
	half, ok := c.conn.(interface{ CloseWrite() error })
	if !ok || half.CloseWrite() != nil {
		c.conn.Close()
		return true
	}
	return false
}

// drain reads and drops what the client still sends, until it ends or the session is terminated.
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

// ending says what the end of a reader means: the reason of the session's close and the status that
// the client gets.
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

// writeFailure says what a failed write means.
func writeFailure(err error) Reason {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return ReasonSlow
	}
	return ReasonTransportClose
}
