package socketio

// From the messages of a session to packets: a binary packet is followed by its attachments.

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// reservedEvent reports whether name is an event of the client library itself, which may not be sent.
func reservedEvent(name string) bool {
	switch name {
	case "connect", "connect_error", "disconnect", "disconnecting", "newListener", "removeListener":
		return true
	}
	return false
}

// decoder joins a packet with the attachments that follow it (protocol, "Packet encoding").
type decoder struct {
	maxAttachments int
	waiting        bool
	packet         packet // incomplete; owns its slices
	attachments    [][]byte
}

// addText decodes a text message. complete is false if attachments must follow. The packet aliases
// text only if it is complete.
func (d *decoder) addText(text []byte) (p packet, complete bool, err error) {
	if d.waiting {
		return p, false, fmt.Errorf("%w: text instead of an attachment", errPacket)
	}
	p, err = parsePacket(text, d.maxAttachments)
	if err != nil || p.attachments == 0 {
		return p, err == nil, err
	}
	d.waiting, d.packet = true, p
	d.packet.nsp, d.packet.data = bytes.Clone(p.nsp), bytes.Clone(p.data)
	return p, false, nil
}

// addBinary adds an attachment. After the last one it returns the packet with all attachments.
func (d *decoder) addBinary(data []byte) (p packet, attachments [][]byte, complete bool, err error) {
	if !d.waiting {
		return p, nil, false, fmt.Errorf("%w: attachment without a packet", errPacket)
	}
	d.attachments = append(d.attachments, bytes.Clone(data))
	if len(d.attachments) < d.packet.attachments {
		return p, nil, false, nil
	}
	p = d.packet
	attachments = d.attachments
	d.waiting = false
	d.packet = packet{}
	d.attachments = nil
	return p, attachments, true, nil
}

// decodeArgs validates the payload of an event or acknowledgement.
func decodeArgs(data []byte, attachments [][]byte) (Args, error) {
	var values []json.RawMessage
	if err := json.Unmarshal(data, &values); err != nil || values == nil {
		return Args{}, fmt.Errorf("%w: payload is not an array", errPacket)
	}
	args := Args{values: values, attachments: attachments}
	for i := range values {
		if _, err := args.value(i); err != nil {
			return Args{}, err
		}
	}
	return args, nil
}

// decodeEvent splits the payload of an event into its name and its arguments.
func decodeEvent(data []byte, attachments [][]byte) (name string, args Args, err error) {
	args, err = decodeArgs(data, attachments)
	if err != nil {
		return "", Args{}, err
	}
	if len(args.values) == 0 {
		return "", Args{}, fmt.Errorf("%w: event without a name", errPacket)
	}
	name, err = eventName(args.values[0])
	args.values = args.values[1:]
	return name, args, err
}

// eventName decodes an event name: a string or, as the official clients allow, a number.
func eventName(raw json.RawMessage) (string, error) {
	var name string
	if c := raw[0]; c == '-' || c >= '0' && c <= '9' {
		return string(raw), nil
	}
	if err := json.Unmarshal(raw, &name); err != nil || raw[0] != '"' || reservedEvent(name) {
		return "", fmt.Errorf("%w: bad event name", errPacket)
	}
	return name, nil
}

// decodeAuth validates the payload of a CONNECT packet, which must be empty or an object.
func decodeAuth(data []byte) (json.RawMessage, error) {
	if len(data) == 0 {
		return json.RawMessage("{}"), nil
	}
	if data[0] != '{' || !json.Valid(data) {
		return nil, fmt.Errorf("%w: CONNECT payload is not an object", errPacket)
	}
	return data, nil
}
