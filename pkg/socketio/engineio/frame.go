package engineio

// WebSocket frames (RFC 6455 §5): pure functions and the assembler, which websocket.go feeds with what it
// reads.
// Nothing here knows a connection or a session.

import (
	"encoding/binary"
	"errors"
	"unicode/utf8"
)

// opcode is the type of a WebSocket frame (RFC 6455 §5.2).
type opcode byte

const (
	opContinuation opcode = 0x0
	opText         opcode = 0x1
	opBinary       opcode = 0x2
	opClose        opcode = 0x8
	opPing         opcode = 0x9
	opPong         opcode = 0xa
)

// control reports whether the frame controls the connection: close, ping or pong (RFC 6455 §5.5).
func (op opcode) control() bool { return op&0x8 != 0 }

// closeCode is the status of a WebSocket close frame (RFC 6455 §7.4.1).
type closeCode uint16

const (
	closeNormal        closeCode = 1000
	closeGoingAway     closeCode = 1001
	closeProtocolError closeCode = 1002
	closeInvalidData   closeCode = 1007
	closePolicy        closeCode = 1008
	closeTooBig        closeCode = 1009
)

const (
	maxFrameHeader    = 10 // server frames have no mask
	maxControlPayload = 125
)

var (
	errFrame    = errors.New("websocket: malformed frame")
	errUTF8     = errors.New("websocket: text is not UTF-8")
	errTooBig   = errors.New("websocket: message exceeds the maximum payload")
	errTooMany  = errors.New("websocket: too many frames in a second")
	errPeerLeft = errors.New("websocket: close frame received")
)

// appendFrameHeader appends the header of an unmasked, unfragmented frame.
func appendFrameHeader(dst []byte, op opcode, n int) []byte {
	dst = append(dst, 0x80|byte(op))
	switch {
	case n <= maxControlPayload:
		return append(dst, byte(n))
	case n <= 0xffff:
		return binary.BigEndian.AppendUint16(append(dst, 126), uint16(n))
	default:
		return binary.BigEndian.AppendUint64(append(dst, 127), uint64(n))
	}
}

// frameHeader is the header of a frame from a client.
type frameHeader struct {
	op   opcode
	fin  bool
	rsv1 bool // the message is compressed
	mask [4]byte
	size int // bytes of the header
	n    int // bytes of the payload
}

// parseFrameHeader decodes the header at the start of b; ok is false if more bytes are needed. A
// client's frame must be masked.
func parseFrameHeader(b []byte, maxPayload int) (h frameHeader, ok bool, err error) {
	if len(b) < 2 {
		return h, false, nil
	}
	h.fin = b[0]&0x80 != 0
	h.rsv1 = b[0]&rsv1 != 0
	h.op = opcode(b[0] & 0x0f)
	reserved := b[0]&0x30 != 0 // RSV2 and RSV3, of extensions that are not negotiated
	masked := b[1]&0x80 != 0
	if reserved || !masked || !validOpcode(h.op) {
		return h, false, errFrame
	}
	// The length is in the second byte or, if that is 126 or 127, in the following 2 or 8 (RFC 6455 §5.2).
	n := uint64(b[1] & 0x7f)
	size := 2
	switch n {
	case 126:
		size = 4
		if len(b) < size {
			return h, false, nil
		}
		n = uint64(binary.BigEndian.Uint16(b[2:]))
	case 127:
		size = 10
		if len(b) < size {
			return h, false, nil
		}
		n = binary.BigEndian.Uint64(b[2:])
	}
	if h.op.control() && (!h.fin || n > maxControlPayload) {
		return h, false, errFrame
	}
	if n > uint64(maxPayload) {
		return h, false, errTooBig
	}
	h.n = int(n)
	h.size = size + len(h.mask)
	if len(b) < h.size {
		return h, false, nil
	}
	copy(h.mask[:], b[size:])
	return h, true, nil
}

// validOpcode reports whether the opcode is defined; the others are reserved (RFC 6455 §5.2).
func validOpcode(op opcode) bool {
	return op <= opBinary || (op >= opClose && op <= opPong)
}

// unmask applies the client's mask in place (RFC 6455 §5.3).
func unmask(b []byte, mask [4]byte) {
	m := binary.LittleEndian.Uint32(mask[:])
	m64 := uint64(m)<<32 | uint64(m)
	for len(b) >= 8 {
		binary.LittleEndian.PutUint64(b, binary.LittleEndian.Uint64(b)^m64)
		b = b[8:]
	}
	for i := range b {
		b[i] ^= mask[i&3]
	}
}

// assembler decodes the bytes of a connection, in pieces of any size, into messages. It buffers only the received
// bytes of an incomplete frame or message.
type assembler struct {
	pending    []byte // an incomplete frame
	message    []byte // the fragments of an incomplete message
	op         opcode // of the incomplete message; opContinuation: none
	compressed bool   // the incomplete message is compressed
	maxPayload int
	deflaters  *deflaters // nil unless permessage-deflate was negotiated
	maxFrames  int        // per second; not positive: no limit
	frames     int        // in the current second; reset by the owner
	messages   int        // delivered so far
}

// unfinished reports whether a frame or a message is incomplete.
func (a *assembler) unfinished() bool { return len(a.pending) > 0 || a.op != opContinuation }

// feed consumes in, which it may modify, and calls fn for each complete message or control frame. The
// data passed to fn is valid only during the call. feed stops at the first error.
func (a *assembler) feed(in []byte, fn func(op opcode, data []byte) error) error {
	held := len(a.pending) > 0
	if held {
		a.pending = append(a.pending, in...)
		in = a.pending
	}
	for {
		h, ok, err := parseFrameHeader(in, a.maxPayload)
		if err != nil {
			return err
		}
		if !ok || len(in) < h.size+h.n {
			break
		}
		a.frames++
		if a.maxFrames > 0 && a.frames > a.maxFrames {
			return errTooMany
		}
		data := in[h.size : h.size+h.n]
		unmask(data, h.mask)
		if err := a.frame(h, data, fn); err != nil {
			return err
		}
		in = in[h.size+h.n:]
	}
	a.keep(in, held)
	return nil
}

// keep stores the incomplete rest. If rest is empty, it frees the buffer, so that an idle connection
// has none.
func (a *assembler) keep(rest []byte, held bool) {
	switch {
	case len(rest) == 0:
		a.pending = nil
	case held && len(rest) == len(a.pending):
		// Nothing was consumed. Copying here would make a long frame in short pieces take quadratic time.
	case held:
		a.pending = append(a.pending[:0], rest...)
	default:
		a.pending = append([]byte(nil), rest...)
	}
}

// frame handles one unmasked frame. It joins the fragments of a message; control frames may come between them
// (RFC 6455 §5.4).
func (a *assembler) frame(h frameHeader, data []byte, fn func(opcode, []byte) error) error {
	switch {
	case h.rsv1 && (a.deflaters == nil || h.op.control() || h.op == opContinuation):
		return errFrame // only the first frame of a message may have RSV1 (RFC 7692 §6.1)
	case h.op.control():
		return fn(h.op, data)
	case (h.op == opContinuation) != (a.op != opContinuation):
		return errFrame // continuation without a message, or a new message inside another
	case h.fin && a.op == opContinuation:
		return a.complete(h.op, data, h.rsv1, fn)
	}
	if h.op != opContinuation {
		a.op = h.op
		a.compressed = h.rsv1
	}
	if len(a.message)+len(data) > a.maxPayload {
		return errTooBig
	}
	a.message = append(a.message, data...)
	if !h.fin {
		return nil
	}
	op := a.op
	whole := a.message
	a.op = opContinuation
	a.message = nil
	return a.complete(op, whole, a.compressed, fn)
}

// complete passes a complete message to fn, inflated and, if it is text, checked for UTF-8.
func (a *assembler) complete(op opcode, data []byte, compressed bool, fn func(opcode, []byte) error) error {
	if compressed {
		inflated, err := a.deflaters.inflate(data, a.maxPayload)
		if err != nil {
			return err
		}
		data = inflated
	}
	if op == opText && !utf8.Valid(data) {
		return errUTF8
	}
	a.messages++
	return fn(op, data)
}
