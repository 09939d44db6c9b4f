package socketio

// From Go values to the JSON of an event, with placeholders for binary arguments.

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/go-json-experiment/json/jsontext"
)

// ErrEncode is returned for a value that cannot be encoded as JSON.
var ErrEncode = errors.New("socketio: cannot encode argument")

// encodeEvent encodes an event as the JSON array of its name and arguments, and extracts binary data as
// attachments.
func encodeEvent(event string, args []any) (data []byte, attachments [][]byte, err error) {
	dst, err := jsontext.AppendQuote(append(make([]byte, 0, sizeHint(event, args)), '['), event)
	if err != nil {
		return nil, nil, fmt.Errorf("%w: %w", ErrEncode, err)
	}
	return encodeRest(dst, args, true)
}

// encodeArgs encodes the arguments of an acknowledgement.
func encodeArgs(args []any) (data []byte, attachments [][]byte, err error) {
	return encodeRest(append(make([]byte, 0, sizeHint("", args)), '['), args, false)
}

// encodeRest appends the arguments and the end of an array; comma tells whether an element precedes them.
func encodeRest(dst []byte, args []any, comma bool) ([]byte, [][]byte, error) {
	var attachments [][]byte
	var err error
	for _, arg := range args {
		if comma {
			dst = append(dst, ',')
		}
		comma = true
		dst, err = appendArg(dst, arg, &attachments)
		if err != nil {
			return nil, nil, fmt.Errorf("%w: %w", ErrEncode, err)
		}
	}
	return append(dst, ']'), attachments, nil
}

// sizeHint estimates the encoded size, so that the buffer rarely grows.
func sizeHint(event string, args []any) int {
	n := len(event) + 16
	for _, arg := range args {
		switch v := arg.(type) {
		case json.RawMessage:
			n += len(v)
		case string:
			n += len(v)
		}
		n += 16
	}
	return n
}

// appendArg appends one argument, and its binary values to attachments.
func appendArg(dst []byte, arg any, attachments *[][]byte) ([]byte, error) {
	switch v := arg.(type) {
	case json.RawMessage:
		// Unchecked bytes could break the client's parser and, with a separator, a polling payload.
		if !utf8.Valid(v) || !json.Valid(v) {
			return nil, errors.New("json.RawMessage is not valid JSON")
		}
		return append(dst, v...), nil
	case string:
		return jsontext.AppendQuote(dst, v)
	case []byte, []any, map[string]any:
		arg = deconstruct(v, attachments)
	}
	var buf bytes.Buffer
	encoder := json.NewEncoder(&buf)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(arg); err != nil {
		return nil, err
	}
	return append(dst, bytes.TrimSuffix(buf.Bytes(), []byte("\n"))...), nil
}

// deconstruct returns a copy of v with its binary values replaced by placeholders, and appends them to attachments.
func deconstruct(v any, attachments *[][]byte) any {
	switch v := v.(type) {
	case []byte:
		*attachments = append(*attachments, v)
		return json.RawMessage(appendPlaceholder(nil, len(*attachments)-1))
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = deconstruct(v[i], attachments)
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k := range v {
			out[k] = deconstruct(v[k], attachments)
		}
		return out
	}
	return v
}

// appendPlaceholder appends the JSON placeholder of attachment num.
func appendPlaceholder(dst []byte, num int) []byte {
	dst = append(dst, `{"_placeholder":true,"num":`...)
	return append(strconv.AppendInt(dst, int64(num), 10), '}')
}
