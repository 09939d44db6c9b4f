package main

import (
	"encoding/binary"
	"errors"
)

const (
	opText  = 0x1
	opClose = 0x8
	final   = 0x80
	masked  = 0x80
)

// errFragmented is returned for a fragmented frame, which no contender sends.
var errFragmented = errors.New("a fragmented frame")

// appendClientFrame appends a client's text frame. Its masking key is zero, which leaves the payload unchanged: the
// same work for the server, and none for the generator.
func appendClientFrame(dst []byte, payload string) []byte {
	dst = appendHead(dst, len(payload), masked)
	dst = append(dst, 0, 0, 0, 0)
	return append(dst, payload...)
}

// appendServerFrame appends a server's text frame.
func appendServerFrame(dst, payload []byte) []byte {
	return append(appendHead(dst, len(payload), 0), payload...)
}

func appendHead(dst []byte, length int, mask byte) []byte {
	dst = append(dst, final|opText)
	switch {
	case length < 126:
		return append(dst, mask|byte(length))
	case length < 1<<16:
		return binary.BigEndian.AppendUint16(append(dst, mask|126), uint16(length))
	default:
		return binary.BigEndian.AppendUint64(append(dst, mask|127), uint64(length))
	}
}

// nextFrame splits the first server frame off b. Unless ok, b contains only a part of it.
func nextFrame(b []byte) (opcode byte, payload, rest []byte, ok bool, err error) {
	if len(b) < 2 {
		return 0, nil, b, false, nil
	}
	if opcode = b[0] & 0x0f; b[0]&final == 0 || opcode == 0 {
		return 0, nil, b, false, errFragmented
	}
	head, length := 2, int(b[1]&0x7f)
	switch {
	case length == 126 && len(b) >= 4:
		head, length = 4, int(binary.BigEndian.Uint16(b[2:]))
	case length == 127 && len(b) >= 10:
		head, length = 10, int(binary.BigEndian.Uint64(b[2:]))
	case length >= 126:
		return 0, nil, b, false, nil
	}
	if length < 0 || length > len(b)-head {
		return 0, nil, b, false, nil
	}
	return opcode, b[head : head+length], b[head+length:], true, nil
}
