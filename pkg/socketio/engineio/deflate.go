package engineio

// Compression of messages (RFC 7692): handshake.go negotiates it, frame.go inflates, message.go and websocket.go
// use the compressed form of a message, which is made once for all connections.

import (
	"bytes"
	"compress/flate"
	"errors"
	"io"
	"strings"
	"sync"
)

const (
	deflateName = "permessage-deflate"
	// deflateAnswer disables context takeover: no connection needs a window of 32 KB, and a message is
	// compressed once for all connections (RFC 7692 §7.1.1).
	deflateAnswer = deflateName + "; server_no_context_takeover; client_no_context_takeover"
	// deflateTail is removed by the sender from the end of each message (RFC 7692 §7.2.1). The receiver also appends
	// a final empty block, which makes the reader return EOF.
	deflateTail      = "\x00\x00\xff\xff"
	deflateTailFinal = deflateTail + "\x01\x00\x00\xff\xff"
	// rsv1 marks the first frame of a compressed message (RFC 7692 §6).
	rsv1 = 0x40
)

// negotiateDeflate returns the response to a client's extension offers, or "" if no offer is
// acceptable (RFC 7692 §5).
func negotiateDeflate(offers []string) string {
	for _, line := range offers {
		for offer := range strings.SplitSeq(line, ",") {
			if answer, ok := acceptDeflate(offer); ok {
				return answer
			}
		}
	}
	return ""
}

// acceptDeflate declines offers with unknown parameters, as required, and with a smaller server window, which the
// compressor does not support.
func acceptDeflate(offer string) (answer string, ok bool) {
	name, params, _ := strings.Cut(offer, ";")
	if strings.TrimSpace(name) != deflateName {
		return "", false
	}
	answer = deflateAnswer
	seen := make(map[string]bool)
	for param := range strings.SplitSeq(params, ";") {
		key, value, given := strings.Cut(strings.TrimSpace(param), "=")
		value = strings.Trim(value, `"`)
		switch {
		case seen[key]:
			return "", false
		case key == "" && params == "":
		case !given && (key == "server_no_context_takeover" || key == "client_no_context_takeover"):
		case key == "client_max_window_bits" && (!given || validWindow(value)):
		case key == "server_max_window_bits" && value == "15":
			answer += "; server_max_window_bits=15"
		default:
			return "", false
		}
		seen[key] = true
	}
	return answer, true
}

// validWindow reports whether the size of a window is one that RFC 7692 §7.1.2 allows.
func validWindow(bits string) bool {
	switch bits {
	case "8", "9", "10", "11", "12", "13", "14", "15":
		return true
	}
	return false
}

// deflaters pools compressors and decompressors, whose state is large.
type deflaters struct {
	writers sync.Pool // *flate.Writer
	readers sync.Pool // io.ReadCloser that is a flate.Resetter
}

// appendDeflated appends the compressed form of data.
func (d *deflaters) appendDeflated(dst, data []byte) []byte {
	out := bytes.NewBuffer(dst)
	w, ok := d.writers.Get().(*flate.Writer)
	if ok {
		w.Reset(out)
	} else {
		w, _ = flate.NewWriter(out, flate.BestSpeed) // fails only for an invalid level
	}
	_, _ = w.Write(data) // never fails
	_ = w.Flush()
	d.writers.Put(w)
	return bytes.TrimSuffix(out.Bytes(), []byte(deflateTail))
}

// inflate decompresses a message. It returns an error if the content is longer than limit.
func (d *deflaters) inflate(data []byte, limit int) ([]byte, error) {
	in := io.MultiReader(bytes.NewReader(data), strings.NewReader(deflateTailFinal))
	r, ok := d.readers.Get().(io.ReadCloser)
	if ok {
		_ = r.(flate.Resetter).Reset(in, nil) // cannot fail
	} else {
		r = flate.NewReader(in)
	}
	defer d.readers.Put(r)
	content, err := io.ReadAll(io.LimitReader(r, int64(limit)+1))
	switch {
	case err != nil:
		return nil, errors.Join(errFrame, err)
	case len(content) > limit:
		return nil, errTooBig
	}
	return content, nil
}

// compress compresses m once for all sessions with compression. Frames shorter than from
// bytes, and those that would not shrink, stay uncompressed.
func (m *Message) compress(d *deflaters, from int) {
	if m.deflated.Load() != nil || m.first == (span{}) {
		return
	}
	wire := make([]byte, 0, len(m.wire)/2)
	for _, s := range append([]span{m.first}, m.rest...) {
		wire = m.appendCompressed(wire, s, d, from)
	}
	m.deflated.CompareAndSwap(nil, &wire)
}

func (m *Message) appendCompressed(wire []byte, s span, d *deflaters, from int) []byte {
	op, data := opText, m.wire[s.start:s.end]
	if s.binary {
		op = opBinary
	}
	if len(data) >= from {
		if short := d.appendDeflated(nil, data); len(short) < len(data) {
			return append(appendFrameHeader(wire, op|rsv1, len(short)), short...)
		}
	}
	return append(appendFrameHeader(wire, op, len(data)), data...)
}

// wireFor returns the bytes of m for c, compressed if c negotiated compression.
func (m *Message) wireFor(c *wsConn) []byte {
	if c.in.deflaters != nil {
		if deflated := m.deflated.Load(); deflated != nil {
			return *deflated
		}
	}
	return m.wire
}
