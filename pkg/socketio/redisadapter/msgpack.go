package redisadapter

import (
	"encoding/binary"
	"errors"
	"math"
)

// errMsgpack is returned for bytes that are not MessagePack, or nested too deeply.
var errMsgpack = errors.New("redisadapter: malformed MessagePack")

// maxDepth bounds the nesting of values from the network.
const maxDepth = 200

// kind is the type of the next value.
type kind uint8

const (
	kindNil kind = iota
	kindBool
	kindInt
	kindUint
	kindFloat
	kindString
	kindBinary
	kindArray
	kindMap
	kindExt
)

// token is one value, or the head of an array or map of n elements.
type token struct {
	kind kind
	n    int
	i    int64
	u    uint64
	f    float64
	s    string // string, binary and ext; part of the input
	ext  int8
}

// reader reads MessagePack tokens. It checks each length against what is there. Its input is a string, as
// the Redis client gives it, so that the strings inside cost no copies.
type reader struct{ s string }

func (r *reader) take(n uint64) (string, error) {
	if n > uint64(len(r.s)) {
		return "", errMsgpack
	}
	out := r.s[:n]
	r.s = r.s[n:]
	return out, nil
}

// number reads a big-endian integer of size bytes.
func (r *reader) number(size int) (uint64, error) {
	b, err := r.take(uint64(size))
	if err != nil {
		return 0, err
	}
	var n uint64
	for i := range len(b) {
		n = n<<8 | uint64(b[i])
	}
	return n, nil
}

func (r *reader) next() (token, error) {
	head, err := r.take(1)
	if err != nil {
		return token{}, err
	}
	switch c := head[0]; {
	case c < 0x80:
		return token{kind: kindUint, u: uint64(c)}, nil
	case c < 0x90:
		return r.container(kindMap, uint64(c&0x0f))
	case c < 0xa0:
		return r.container(kindArray, uint64(c&0x0f))
	case c < 0xc0:
		return r.run(kindString, uint64(c&0x1f))
	case c >= 0xe0:
		return token{kind: kindInt, i: int64(int8(c))}, nil
	default:
		return r.long(c)
	}
}

// long reads a value whose head is followed by a size or a payload.
func (r *reader) long(c byte) (token, error) {
	switch c {
	case 0xc0:
		return token{kind: kindNil}, nil
	case 0xc2, 0xc3:
		return token{kind: kindBool, u: uint64(c & 1)}, nil
	case 0xc4, 0xc5, 0xc6:
		return r.sized(kindBinary, 1<<(c-0xc4))
	case 0xc7, 0xc8, 0xc9:
		return r.extSized(1 << (c - 0xc7))
	case 0xca:
		n, err := r.number(4)
		return token{kind: kindFloat, f: float64(math.Float32frombits(uint32(n)))}, err
	case 0xcb:
		n, err := r.number(8)
		return token{kind: kindFloat, f: math.Float64frombits(n)}, err
	case 0xcc, 0xcd, 0xce, 0xcf:
		n, err := r.number(1 << (c - 0xcc))
		return token{kind: kindUint, u: n}, err
	case 0xd0, 0xd1, 0xd2, 0xd3:
		size := 1 << (c - 0xd0)
		n, err := r.number(size)
		shift := 64 - 8*size
		return token{kind: kindInt, i: int64(n<<shift) >> shift}, err
	case 0xd4, 0xd5, 0xd6, 0xd7, 0xd8:
		return r.extension(1 << (c - 0xd4))
	case 0xd9, 0xda, 0xdb:
		return r.sized(kindString, 1<<(c-0xd9))
	case 0xdc, 0xdd:
		return r.sized(kindArray, 2<<(c-0xdc))
	case 0xde, 0xdf:
		return r.sized(kindMap, 2<<(c-0xde))
	}
	return token{}, errMsgpack
}

func (r *reader) sized(k kind, size int) (token, error) {
	n, err := r.number(size)
	if err != nil {
		return token{}, err
	}
	if k == kindArray || k == kindMap {
		return r.container(k, n)
	}
	return r.run(k, n)
}

// container refuses more elements than bytes: each takes at least one.
func (r *reader) container(k kind, n uint64) (token, error) {
	if n > uint64(len(r.s)) {
		return token{}, errMsgpack
	}
	return token{kind: k, n: int(n)}, nil
}

// run reads the n bytes of a string or of binary data.
func (r *reader) run(k kind, n uint64) (token, error) {
	s, err := r.take(n)
	return token{kind: k, s: s}, err
}

func (r *reader) extSized(size int) (token, error) {
	n, err := r.number(size)
	if err != nil {
		return token{}, err
	}
	return r.extension(n)
}

func (r *reader) extension(n uint64) (token, error) {
	t, err := r.take(1)
	if err != nil {
		return token{}, err
	}
	s, err := r.take(n)
	return token{kind: kindExt, ext: int8(t[0]), s: s}, err
}

// skip passes over one whole value.
func (r *reader) skip() error {
	for left := 1; left > 0; left-- {
		t, err := r.next()
		if err != nil {
			return err
		}
		switch t.kind {
		case kindArray:
			left += t.n
		case kindMap:
			left += 2 * t.n
		}
	}
	return nil
}

// expect reads the head of an array or map.
func (r *reader) expect(k kind) (int, error) {
	t, err := r.next()
	if err != nil {
		return 0, err
	}
	if t.kind != k {
		return 0, errMsgpack
	}
	return t.n, nil
}

// text reads a string.
func (r *reader) text() (string, error) {
	t, err := r.next()
	if err != nil {
		return "", err
	}
	if t.kind != kindString {
		return "", errMsgpack
	}
	return t.s, nil
}

func appendNil(dst []byte) []byte { return append(dst, 0xc0) }

func appendBool(dst []byte, v bool) []byte {
	if v {
		return append(dst, 0xc3)
	}
	return append(dst, 0xc2)
}

func appendString[T string | []byte](dst []byte, s T) []byte {
	switch n := len(s); {
	case n < 32:
		dst = append(dst, 0xa0|byte(n))
	case n <= math.MaxUint8:
		dst = append(dst, 0xd9, byte(n))
	case n <= math.MaxUint16:
		dst = binary.BigEndian.AppendUint16(append(dst, 0xda), uint16(n))
	default:
		dst = binary.BigEndian.AppendUint32(append(dst, 0xdb), uint32(n))
	}
	return append(dst, s...)
}

func appendBinary(dst, b []byte) []byte {
	switch n := len(b); {
	case n <= math.MaxUint8:
		dst = append(dst, 0xc4, byte(n))
	case n <= math.MaxUint16:
		dst = binary.BigEndian.AppendUint16(append(dst, 0xc5), uint16(n))
	default:
		dst = binary.BigEndian.AppendUint32(append(dst, 0xc6), uint32(n))
	}
	return append(dst, b...)
}

func appendUint(dst []byte, u uint64) []byte {
	switch {
	case u < 0x80:
		return append(dst, byte(u))
	case u <= math.MaxUint8:
		return append(dst, 0xcc, byte(u))
	case u <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(dst, 0xcd), uint16(u))
	case u <= math.MaxUint32:
		return binary.BigEndian.AppendUint32(append(dst, 0xce), uint32(u))
	default:
		return binary.BigEndian.AppendUint64(append(dst, 0xcf), u)
	}
}

func appendInt(dst []byte, i int64) []byte {
	switch {
	case i >= 0:
		return appendUint(dst, uint64(i))
	case i >= -0x20:
		return append(dst, byte(i))
	case i >= math.MinInt8:
		return append(dst, 0xd0, byte(i))
	case i >= math.MinInt16:
		return binary.BigEndian.AppendUint16(append(dst, 0xd1), uint16(i))
	case i >= math.MinInt32:
		return binary.BigEndian.AppendUint32(append(dst, 0xd2), uint32(i))
	default:
		return binary.BigEndian.AppendUint64(append(dst, 0xd3), uint64(i))
	}
}

func appendFloat(dst []byte, f float64) []byte {
	return binary.BigEndian.AppendUint64(append(dst, 0xcb), math.Float64bits(f))
}

func appendArrayHead(dst []byte, n int) []byte { return appendHead(dst, 0x90, 0xdc, n) }

func appendMapHead(dst []byte, n int) []byte { return appendHead(dst, 0x80, 0xde, n) }

func appendHead(dst []byte, short, long byte, n int) []byte {
	switch {
	case n < 16:
		return append(dst, short|byte(n))
	case n <= math.MaxUint16:
		return binary.BigEndian.AppendUint16(append(dst, long), uint16(n))
	default:
		return binary.BigEndian.AppendUint32(append(dst, long+1), uint32(n))
	}
}
