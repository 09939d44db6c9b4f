package redisadapter

import (
	"encoding/binary"
	"math"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// Extension types of the encoder that the official adapter uses.
const (
	extUndefined = 0 // one byte; longer ones are binary data
	extTimestamp = -1
)

// isoMillis is how JavaScript shows a Date in JSON.
const isoMillis = "2006-01-02T15:04:05.000Z"

// jsonWriter turns MessagePack into JSON; binary values become placeholders.
type jsonWriter struct {
	dst         []byte
	attachments [][]byte
}

// value appends the next value of r.
func (w *jsonWriter) value(r *reader, depth int) error {
	t, err := r.next()
	if err != nil {
		return err
	}
	if depth > maxDepth {
		return errMsgpack
	}
	switch t.kind {
	case kindArray:
		return w.array(r, t.n, depth)
	case kindMap:
		return w.object(r, t.n, depth)
	case kindString:
		w.quote(t.s)
	case kindBinary:
		w.attach([]byte(t.s))
	case kindExt:
		return w.extension(t)
	default:
		w.scalar(t)
	}
	return nil
}

func (w *jsonWriter) scalar(t token) {
	switch t.kind {
	case kindBool:
		w.dst = strconv.AppendBool(w.dst, t.u == 1)
	case kindInt:
		w.dst = strconv.AppendInt(w.dst, t.i, 10)
	case kindUint:
		w.dst = strconv.AppendUint(w.dst, t.u, 10)
	case kindFloat:
		w.dst = appendJSONFloat(w.dst, t.f)
	default:
		w.dst = append(w.dst, "null"...)
	}
}

// appendJSONFloat writes a number as JavaScript does; what is no number becomes null there too.
func appendJSONFloat(dst []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(dst, "null"...)
	}
	return append(dst, jsontext.Float(f).String()...)
}

func (w *jsonWriter) array(r *reader, n, depth int) error {
	w.dst = append(w.dst, '[')
	for i := range n {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		if err := w.value(r, depth+1); err != nil {
			return err
		}
	}
	w.dst = append(w.dst, ']')
	return nil
}

func (w *jsonWriter) object(r *reader, n, depth int) error {
	w.dst = append(w.dst, '{')
	for i := range n {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		if err := w.key(r); err != nil {
			return err
		}
		w.dst = append(w.dst, ':')
		if err := w.value(r, depth+1); err != nil {
			return err
		}
	}
	w.dst = append(w.dst, '}')
	return nil
}

// key appends the name of a member; numbers become text, as in JavaScript.
func (w *jsonWriter) key(r *reader) error {
	t, err := r.next()
	if err != nil {
		return err
	}
	switch t.kind {
	case kindString:
		w.quote(t.s)
		return nil
	case kindInt, kindUint, kindFloat, kindBool:
		w.dst = append(w.dst, '"')
		w.scalar(t)
		w.dst = append(w.dst, '"')
		return nil
	}
	return errMsgpack
}

// quote appends a string; AppendQuote replaces what is not UTF-8, and its error only says so.
func (w *jsonWriter) quote(s string) {
	if plain(s) {
		w.dst = append(append(append(w.dst, '"'), s...), '"')
		return
	}
	w.dst, _ = jsontext.AppendQuote(w.dst, s)
}

// plain reports whether s is the same in JSON; it may return false for such strings too.
func plain(s string) bool {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

func (w *jsonWriter) attach(b []byte) {
	w.dst = append(w.dst, `{"_placeholder":true,"num":`...)
	w.dst = append(strconv.AppendInt(w.dst, int64(len(w.attachments)), 10), '}')
	w.attachments = append(w.attachments, b)
}

func (w *jsonWriter) extension(t token) error {
	switch {
	case t.ext == extUndefined && len(t.s) == 1:
		w.dst = append(w.dst, "null"...)
	case t.ext == extUndefined:
		w.attach([]byte(t.s))
	case t.ext == extTimestamp:
		at, err := timestamp([]byte(t.s))
		if err != nil {
			return err
		}
		w.dst = at.UTC().AppendFormat(append(w.dst, '"'), isoMillis)
		w.dst = append(w.dst, '"')
	default:
		return errMsgpack
	}
	return nil
}

// timestamp decodes the three sizes of the MessagePack timestamp extension.
func timestamp(b []byte) (time.Time, error) {
	switch len(b) {
	case 4:
		return time.Unix(int64(binary.BigEndian.Uint32(b)), 0), nil
	case 8:
		n := binary.BigEndian.Uint64(b)
		return time.Unix(int64(n&(1<<34-1)), int64(n>>34)), nil
	case 12:
		nanos, secs := binary.BigEndian.Uint32(b), int64(binary.BigEndian.Uint64(b[4:]))
		if secs < -62135596800 || secs > 253402300799 { // the years 1 to 9999
			return time.Time{}, errMsgpack
		}
		return time.Unix(secs, int64(nanos)), nil
	}
	return time.Time{}, errMsgpack
}
