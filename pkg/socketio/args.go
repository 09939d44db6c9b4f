package socketio

// From the JSON of an event to the arguments of its handler.

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// ErrArgument is returned if an argument is missing.
var ErrArgument = errors.New("socketio: no such argument")

// Args are the arguments of an event or of an acknowledgement, as the client sent them.
type Args struct {
	values      []json.RawMessage
	attachments [][]byte
}

// Len returns the number of arguments.
func (a Args) Len() int { return len(a.values) }

// JSON returns argument i as received; binary data is replaced by placeholder objects. It returns nil
// if the argument is missing.
func (a Args) JSON(i int) json.RawMessage {
	if i < 0 || i >= len(a.values) {
		return nil
	}
	return a.values[i]
}

// Bytes returns argument i if it is binary.
func (a Args) Bytes(i int) ([]byte, bool) {
	v, err := a.value(i)
	if err != nil {
		return nil, false
	}
	b, ok := v.([]byte)
	return b, ok
}

// String returns argument i if it is a string, otherwise "".
func (a Args) String(i int) string {
	var s string
	_ = a.Decode(i, &s) // on an error s stays ""
	return s
}

// Decode stores argument i in the value that dst points to, as encoding/json does. Binary data, including
// that inside objects, is stored in values of type []byte.
func (a Args) Decode(i int, dst any) error {
	v, err := a.value(i)
	if err != nil {
		return err
	}
	raw, ok := v.(json.RawMessage)
	if !ok { // contains binary data: encoding/json encodes []byte as base64
		raw, err = json.Marshal(v)
		if err != nil {
			return err
		}
	}
	return json.Unmarshal(raw, dst)
}

// Bind decodes the first arguments into dsts, in order. The dst of a missing argument is not changed.
func (a Args) Bind(dsts ...any) error {
	for i := range min(len(dsts), a.Len()) {
		if err := a.Decode(i, dsts[i]); err != nil {
			return fmt.Errorf("argument %d: %w", i, err)
		}
	}
	return nil
}

// Values returns the arguments in a form that can be passed to Emit.
func (a Args) Values() []any {
	out := make([]any, len(a.values))
	for i := range a.values {
		out[i], _ = a.value(i) // validated when the packet was decoded
	}
	return out
}

// value returns argument i: []byte if it is binary, a decoded tree if it contains binary data, otherwise
// json.RawMessage.
func (a Args) value(i int) (any, error) {
	if i < 0 || i >= len(a.values) {
		return nil, ErrArgument
	}
	raw := a.values[i]
	if len(a.attachments) == 0 || !bytes.Contains(raw, []byte(`"_placeholder"`)) {
		return raw, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	var tree any
	if err := decoder.Decode(&tree); err != nil {
		return nil, fmt.Errorf("%w: %w", errPacket, err)
	}
	return reconstruct(tree, a.attachments)
}

// reconstruct replaces the placeholders inside v by their attachments.
func reconstruct(v any, attachments [][]byte) (any, error) {
	var err error
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i], err = reconstruct(v[i], attachments)
			if err != nil {
				return nil, err
			}
		}
	case map[string]any:
		if v["_placeholder"] == true {
			return attachment(v["num"], attachments)
		}
		for k := range v {
			v[k], err = reconstruct(v[k], attachments)
			if err != nil {
				return nil, err
			}
		}
	}
	return v, nil
}

// attachment returns the attachment that a placeholder names by its number.
func attachment(num any, attachments [][]byte) (any, error) {
	n, _ := num.(json.Number)
	i, err := n.Int64()
	if err != nil || i < 0 || i >= int64(len(attachments)) {
		return nil, fmt.Errorf("%w: placeholder without an attachment", errPacket)
	}
	return attachments[i], nil
}
