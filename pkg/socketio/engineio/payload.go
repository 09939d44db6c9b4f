package engineio

// The bodies of polling requests (protocol, "Packet encoding, HTTP long-polling"): polling.go decodes POSTs and
// encodes the responses of polls with it.

import (
	"bytes"
	"encoding/base64"
	"unicode/utf8"
)

// separator separates the packets of a payload (protocol, "Packet encoding, HTTP long-polling").
const separator = 0x1e

// binaryPrefix is the prefix of a base64-encoded binary message in a payload.
const binaryPrefix = 'b'

// EachPacket decodes the body of a polling request and calls fn for each packet in order. It returns
// the first error, its own or fn's. Text packets alias body.
func EachPacket(body []byte, fn func(Packet) error) error {
	if !utf8.Valid(body) {
		return ErrPacket
	}
	for more := true; more; {
		var part []byte
		part, body, more = bytes.Cut(body, []byte{separator})
		p, err := parsePayloadPacket(part)
		if err != nil {
			return err
		}
		if err := fn(p); err != nil {
			return err
		}
	}
	return nil
}

// parsePayloadPacket decodes one packet: text, or binary data in base64.
func parsePayloadPacket(part []byte) (Packet, error) {
	if len(part) == 0 || part[0] != binaryPrefix {
		return ParsePacket(part, false)
	}
	data, err := base64.StdEncoding.AppendDecode(nil, part[1:])
	if err != nil {
		return Packet{}, ErrPacket
	}
	return ParsePacket(data, true)
}

// AppendPayloadPacket appends p to a payload, with a separator if the payload is not empty.
func AppendPayloadPacket(payload []byte, p Packet) []byte {
	if len(payload) > 0 {
		payload = append(payload, separator)
	}
	if p.Binary {
		return base64.StdEncoding.AppendEncode(append(payload, binaryPrefix), p.Data)
	}
	return AppendPacket(payload, p)
}
