package redisadapter

import (
	"bufio"
	"errors"
	"io"
	"slices"
	"strconv"
)

// What publishing and subscribing need of RESP2 (redis.io, "Redis serialization protocol specification").

const (
	linkBuffer = 32 << 10
	// maxLongRead bounds what is allocated ahead of the bytes that a length announces.
	maxLongRead = 1 << 20
	// maxElements is more than any message of a subscription has.
	maxElements = 16
)

// errRESP is returned for bytes that are not RESP2, or nothing that was asked for.
var errRESP = errors.New("redisadapter: unexpected answer of Redis")

// redisError is an error that Redis answers with.
type redisError string

func (e redisError) Error() string { return "redisadapter: " + string(e) }

func appendCommand(dst []byte, words ...string) []byte {
	dst = appendHeadRESP(dst, '*', len(words))
	for _, w := range words {
		dst = appendBulk(dst, w)
	}
	return dst
}

func appendHeadRESP(dst []byte, kind byte, n int) []byte {
	return append(strconv.AppendInt(append(dst, kind), int64(n), 10), '\r', '\n')
}

func appendBulk[T string | []byte](dst []byte, s T) []byte {
	dst = append(appendHeadRESP(dst, '$', len(s)), s...)
	return append(dst, '\r', '\n')
}

// respReader reads answers. What it returns is valid until its next call.
type respReader struct {
	in      *bufio.Reader
	used    int    // bytes of in that were returned and are to be dropped
	channel []byte // of the last push
	long    []byte // a payload that does not fit into in
}

func newRESPReader(r io.Reader) *respReader {
	return &respReader{in: bufio.NewReaderSize(r, linkBuffer)}
}

// line reads up to the end of the line, which it leaves out.
func (r *respReader) line() ([]byte, error) {
	line, err := r.in.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) || err == nil && (len(line) < 3 || line[len(line)-2] != '\r') {
		return nil, errRESP
	}
	if err != nil {
		return nil, err
	}
	return line[:len(line)-2], nil
}

// status reads an answer that is one line: a number, a word or an error of Redis.
func (r *respReader) status() (refusal, err error) {
	line, err := r.line()
	if err != nil {
		return nil, err
	}
	switch line[0] {
	case ':', '+':
		return nil, nil
	case '-':
		return redisError(line[1:]), nil
	}
	return nil, errRESP
}

func number(digits []byte) (n int, err error) {
	if len(digits) == 0 || len(digits) > 10 {
		return 0, errRESP
	}
	for _, c := range digits {
		if c < '0' || c > '9' {
			return 0, errRESP
		}
		n = 10*n + int(c-'0')
	}
	return n, nil
}

// bulk reads a string; nil, a number or a word count as strings too.
func (r *respReader) bulk() ([]byte, error) {
	line, err := r.line()
	if err != nil {
		return nil, err
	}
	switch {
	case line[0] == ':' || line[0] == '+':
		return line[1:], nil
	case string(line) == "$-1":
		return nil, nil
	case line[0] != '$':
		return nil, errRESP
	}
	n, err := number(line[1:])
	if err != nil {
		return nil, err
	}
	if n+2 > r.in.Size() {
		return r.readLong(n)
	}
	b, err := r.in.Peek(n + 2)
	if err != nil {
		return nil, noEOF(err)
	}
	r.used = n + 2
	return r.ended(b)
}

// readLong allocates as the bytes come, not as they are announced.
func (r *respReader) readLong(n int) ([]byte, error) {
	b := r.long[:0]
	for left := n + 2; left > 0; {
		step := min(left, maxLongRead)
		b = slices.Grow(b, step)
		m, err := io.ReadFull(r.in, b[len(b):len(b)+step])
		if err != nil {
			return nil, noEOF(err)
		}
		b, left = b[:len(b)+m], left-m
	}
	if r.long = b; cap(b) > maxLongRead {
		r.long = nil
	}
	return r.ended(b)
}

func (r *respReader) ended(b []byte) ([]byte, error) {
	n := len(b) - 2
	if b[n] != '\r' || b[n+1] != '\n' {
		return nil, errRESP
	}
	return b[:n], nil
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// drop gives the bytes back that were returned last.
func (r *respReader) drop() {
	_, _ = r.in.Discard(r.used) // they are there
	r.used = 0
}

// pushKind says what Redis tells a subscriber.
type pushKind uint8

const (
	pushOther pushKind = iota // only a sign of life
	pushMessage
	pushSubscribed
	pushUnsubscribed
)

func pushKindOf(word []byte) pushKind {
	switch string(word) {
	case "message", "smessage":
		return pushMessage
	case "subscribe", "ssubscribe":
		return pushSubscribed
	case "unsubscribe", "sunsubscribe":
		return pushUnsubscribed
	}
	return pushOther
}

// push is a message of a subscription, or a word about one.
type push struct {
	kind             pushKind
	channel, payload []byte
}

// push reads what comes next on a connection with subscriptions. An error of Redis is an error here.
func (r *respReader) push() (p push, err error) {
	r.drop()
	line, err := r.line()
	if err != nil {
		return p, err
	}
	switch line[0] {
	case '+', ':':
		return p, nil
	case '-':
		return p, redisError(line[1:])
	case '*', '>':
	default:
		return p, errRESP
	}
	n, err := number(line[1:])
	if err != nil || n < 1 || n > maxElements {
		return p, errRESP
	}
	for i := range n {
		r.drop()
		b, err := r.bulk()
		if err != nil {
			return p, err
		}
		switch i {
		case 0:
			p.kind = pushKindOf(b)
		case 1:
			r.channel = append(r.channel[:0], b...)
			p.channel = r.channel
		case 2:
			p.payload = b
		}
	}
	return p, p.check(n)
}

// check refuses a message that is not whole. More than its three elements would make its payload invalid.
func (p push) check(n int) error {
	if p.kind != pushOther && n != 3 {
		return errRESP
	}
	return nil
}
