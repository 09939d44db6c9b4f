package redisadapter

// From MessagePack to JSON: what other nodes send becomes the event that sockets receive. tomsgpack.go is the inverse.

import (
	"errors"
	"math"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/tinylib/msgp/msgp"
)

// extUndefined is the extension type for undefined in the official adapter's encoder, if one byte long;
// longer values are binary data.
const extUndefined = 0

// isoMillis is the layout of a Date in JSON written by JavaScript.
const isoMillis = "2006-01-02T15:04:05.000Z"

// errMsgpack is returned for malformed or too deeply nested MessagePack.
var errMsgpack = errors.New("redisadapter: malformed MessagePack")

// maxDepth is the maximum nesting of values from the network.
const maxDepth = 200

// jsonWriter converts MessagePack to JSON and replaces binary values by placeholders. Attachments alias the input.
type jsonWriter struct {
	dst         []byte
	attachments [][]byte
}

// value appends the value at the start of b and returns the rest of b.
func (w *jsonWriter) value(b []byte, depth int) (rest []byte, err error) {
	if depth > maxDepth {
		return nil, errMsgpack
	}
	var part []byte
	switch msgp.NextType(b) {
	case msgp.ArrayType:
		return w.array(b, depth)
	case msgp.MapType:
		return w.object(b, depth)
	case msgp.StrType:
		part, rest, err = msgp.ReadStringZC(b)
		w.quote(part)
		return rest, err
	case msgp.BinType:
		part, rest, err = msgp.ReadBytesZC(b)
		w.attach(part)
		return rest, err
	case msgp.TimeType, msgp.ExtensionType:
		return w.extension(b)
	}
	return w.scalar(b)
}

// scalar appends a value that is neither a container nor a string nor binary.
func (w *jsonWriter) scalar(b []byte) (rest []byte, err error) {
	switch msgp.NextType(b) {
	case msgp.NilType:
		w.dst = append(w.dst, "null"...)
		return msgp.ReadNilBytes(b)
	case msgp.BoolType:
		v, rest, err := msgp.ReadBoolBytes(b)
		w.dst = strconv.AppendBool(w.dst, v)
		return rest, err
	case msgp.IntType:
		v, rest, err := msgp.ReadInt64Bytes(b)
		w.dst = strconv.AppendInt(w.dst, v, 10)
		return rest, err
	case msgp.UintType:
		v, rest, err := msgp.ReadUint64Bytes(b)
		w.dst = strconv.AppendUint(w.dst, v, 10)
		return rest, err
	case msgp.Float32Type, msgp.Float64Type:
		v, rest, err := msgp.ReadFloat64Bytes(b)
		w.dst = appendJSONFloat(w.dst, v)
		return rest, err
	}
	return nil, errMsgpack
}

// appendJSONFloat appends a number in JavaScript's format; NaN and infinities become null, as in JavaScript.
func appendJSONFloat(dst []byte, f float64) []byte {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return append(dst, "null"...)
	}
	return append(dst, jsontext.Float(f).String()...)
}

// array appends an array. On an error the output is useless, so its end need not be skipped.
func (w *jsonWriter) array(b []byte, depth int) ([]byte, error) {
	n, b, err := msgp.ReadArrayHeaderBytes(b)
	w.dst = append(w.dst, '[')
	for i := uint32(0); err == nil && i < n; i++ {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		b, err = w.value(b, depth+1)
	}
	w.dst = append(w.dst, ']')
	return b, err
}

// object appends a map.
func (w *jsonWriter) object(b []byte, depth int) ([]byte, error) {
	n, b, err := msgp.ReadMapHeaderBytes(b)
	w.dst = append(w.dst, '{')
	for i := uint32(0); err == nil && i < n; i++ {
		if i > 0 {
			w.dst = append(w.dst, ',')
		}
		b, err = w.key(b)
		if err == nil {
			w.dst = append(w.dst, ':')
			b, err = w.value(b, depth+1)
		}
	}
	w.dst = append(w.dst, '}')
	return b, err
}

// key appends a member name; numbers become strings, as in JavaScript.
func (w *jsonWriter) key(b []byte) ([]byte, error) {
	switch msgp.NextType(b) {
	case msgp.StrType:
		s, rest, err := msgp.ReadStringZC(b)
		w.quote(s)
		return rest, err
	case msgp.NilType:
		return nil, errMsgpack
	}
	w.dst = append(w.dst, '"')
	b, err := w.scalar(b)
	w.dst = append(w.dst, '"')
	return b, err
}

// quote appends a string. AppendQuote replaces invalid UTF-8, which is the only error it returns.
func (w *jsonWriter) quote(s []byte) {
	if plain(s) {
		w.dst = append(w.dst, '"')
		w.dst = append(w.dst, s...)
		w.dst = append(w.dst, '"')
		return
	}
	w.dst, _ = jsontext.AppendQuote(w.dst, s)
}

// plain reports whether s needs no escaping in JSON. It may return false negatives.
func plain(s []byte) bool {
	for _, c := range s {
		if c < ' ' || c == '"' || c == '\\' || c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// attach appends a placeholder and keeps the binary value as the next attachment.
func (w *jsonWriter) attach(b []byte) {
	w.dst = append(w.dst, `{"_placeholder":true,"num":`...)
	w.dst = strconv.AppendInt(w.dst, int64(len(w.attachments)), 10)
	w.dst = append(w.dst, '}')
	w.attachments = append(w.attachments, b)
}

// extension appends a value of an extension type: undefined, binary data, or a time.
func (w *jsonWriter) extension(b []byte) ([]byte, error) {
	e := msgp.RawExtension{Type: extUndefined}
	rest, err := msgp.ReadExtensionBytes(b, &e)
	switch {
	case err != nil: // another extension type; NextType does not distinguish them at the end of the input
		return w.timestamp(b)
	case len(e.Data) == 1:
		w.dst = append(w.dst, "null"...)
	default:
		w.attach(e.Data)
	}
	return rest, nil
}

// timestamp appends a Date.
func (w *jsonWriter) timestamp(b []byte) ([]byte, error) {
	at, rest, err := msgp.ReadTimeUTCBytes(b)
	year := at.Year()
	if err != nil || year < 1 || year > 9999 { // no four digits
		return nil, errMsgpack
	}
	w.dst = append(w.dst, '"')
	w.dst = at.AppendFormat(w.dst, isoMillis)
	w.dst = append(w.dst, '"')
	return rest, nil
}
