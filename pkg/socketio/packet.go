package socketio

// The text of Socket.IO packets (protocol 5, "Packet encoding"): pure functions.

import (
	"errors"
	"fmt"
	"strconv"
)

// packetType is the first character of a Socket.IO packet (protocol, "Exchange protocol").
type packetType byte

const (
	typeConnect      packetType = '0'
	typeDisconnect   packetType = '1'
	typeEvent        packetType = '2'
	typeAck          packetType = '3'
	typeConnectError packetType = '4'
	typeBinaryEvent  packetType = '5'
	typeBinaryAck    packetType = '6'
)

// rootNamespace is omitted in packets.
const rootNamespace = "/"

// errPacket is returned for malformed Socket.IO packets.
var errPacket = errors.New("socketio: malformed packet")

// packet is a decoded packet, without its attachments. Its slices alias the text.
type packet struct {
	typ         packetType
	attachments int
	nsp         []byte
	id          uint64
	hasID       bool
	data        []byte // JSON, not validated yet; may be empty
}

// binary reports whether attachments follow the packet.
func (t packetType) binary() bool { return t == typeBinaryEvent || t == typeBinaryAck }

// parsePacket decodes a packet from text (protocol, "Packet encoding, Format").
func parsePacket(text []byte, maxAttachments int) (p packet, err error) {
	if len(text) == 0 || text[0] < byte(typeConnect) || text[0] > byte(typeBinaryAck) {
		return p, fmt.Errorf("%w: unknown type", errPacket)
	}
	p.typ = packetType(text[0])
	text = text[1:]
	if p.typ.binary() {
		text, err = p.takeAttachments(text, maxAttachments)
		if err != nil {
			return p, err
		}
	}
	text = p.takeNamespace(text)
	p.data, err = p.takeID(text)
	if err != nil {
		return p, err
	}
	return p, nil
}

// takeAttachments reads the number of attachments, which must be in 1 to limit, and returns the rest of text.
func (p *packet) takeAttachments(text []byte, limit int) ([]byte, error) {
	n, rest := leadingDigits(text)
	count, err := strconv.ParseUint(string(text[:n]), 10, 32)
	if err != nil || len(rest) == 0 || rest[0] != '-' || count < 1 || count > uint64(max(limit, 0)) {
		return nil, fmt.Errorf("%w: illegal number of attachments", errPacket)
	}
	p.attachments = int(count)
	return rest[1:], nil
}

// takeNamespace reads the namespace, which is "/" if it is missing, and returns the rest of text.
func (p *packet) takeNamespace(text []byte) []byte {
	p.nsp = []byte(rootNamespace)
	if len(text) == 0 || text[0] != '/' {
		return text
	}
	for i, c := range text {
		if c == ',' {
			p.nsp = text[:i]
			return text[i+1:]
		}
	}
	p.nsp = text
	return nil
}

// takeID reads the acknowledgement id, if any, and returns the rest of text.
func (p *packet) takeID(text []byte) ([]byte, error) {
	n, rest := leadingDigits(text)
	if n == 0 {
		return text, nil
	}
	id, err := strconv.ParseUint(string(text[:n]), 10, 64)
	if err != nil {
		return nil, fmt.Errorf("%w: acknowledgement id out of range", errPacket)
	}
	p.id, p.hasID = id, true
	return rest, nil
}

// leadingDigits returns the number of digits at the start of text, and what follows them.
func leadingDigits(text []byte) (n int, rest []byte) {
	for n < len(text) && text[n] >= '0' && text[n] <= '9' {
		n++
	}
	return n, text[n:]
}

// appendPacket appends p encoded as text.
func appendPacket(dst []byte, p packet) []byte {
	return append(appendHeader(dst, p), p.data...)
}

// appendHeader appends all of p except data.
func appendHeader(dst []byte, p packet) []byte {
	dst = append(dst, byte(p.typ))
	if p.typ.binary() {
		dst = append(strconv.AppendInt(dst, int64(p.attachments), 10), '-')
	}
	if len(p.nsp) > 0 && string(p.nsp) != rootNamespace {
		dst = append(append(dst, p.nsp...), ',')
	}
	if p.hasID {
		dst = strconv.AppendUint(dst, p.id, 10)
	}
	return dst
}
