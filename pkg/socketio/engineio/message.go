package engineio

import "sync/atomic"

// Message is a group of packets in wire form: WebSocket frames with their headers, from which the
// polling form is derived when needed. It is immutable, so one Message serves any number of sessions,
// and its packets reach a client without anything between them.
type Message struct {
	wire  []byte
	first span
	rest  []span

	deflated atomic.Pointer[[]byte] // wire with compressed frames, once a session has asked for it
}

// span marks one packet inside the wire form.
type span struct {
	start, end int
	binary     bool
}

// NewMessage encodes text as a message packet, followed by one binary packet per attachment.
func NewMessage(text []byte, attachments ...[]byte) *Message {
	return NewMessageOf(nil, text, attachments...)
}

// NewMessageOf is NewMessage with a text in two parts, which saves joining them before.
func NewMessageOf(head, text []byte, attachments ...[]byte) *Message {
	size := maxFrameHeader + 1 + len(head) + len(text)
	for _, a := range attachments {
		size += maxFrameHeader + len(a)
	}
	m := &Message{wire: make([]byte, 0, size)}
	m.addText(MessageType, head, text)
	for _, a := range attachments {
		m.addBinary(a)
	}
	return m
}

// newControl encodes a packet that is not a message.
func newControl(t PacketType, data string) *Message {
	m := &Message{}
	m.addText(t, nil, []byte(data))
	return m
}

// newRawFrame holds a WebSocket control frame, which has no polling form.
func newRawFrame(op opcode, data []byte) *Message {
	return &Message{wire: append(appendFrameHeader(nil, op, len(data)), data...)}
}

func (m *Message) addText(t PacketType, head, data []byte) {
	m.wire = appendFrameHeader(m.wire, opText, 1+len(head)+len(data))
	start := len(m.wire)
	m.wire = append(append(append(m.wire, byte(t)), head...), data...)
	m.addSpan(span{start: start, end: len(m.wire)})
}

func (m *Message) addBinary(data []byte) {
	m.wire = appendFrameHeader(m.wire, opBinary, len(data))
	start := len(m.wire)
	m.wire = append(m.wire, data...)
	m.addSpan(span{start: start, end: len(m.wire), binary: true})
}

func (m *Message) addSpan(s span) {
	if m.first == (span{}) {
		m.first = s
		return
	}
	m.rest = append(m.rest, s)
}

// messageOverhead is what a waiting message takes beside its bytes: the Message and its place in a queue.
const messageOverhead = 128

// Size is the number of bytes on the wire.
func (m *Message) Size() int { return len(m.wire) }

// cost is what the message counts against a session's send buffer while it waits.
func (m *Message) cost() int { return len(m.wire) + messageOverhead }

// Packets calls fn for each packet of the message in order.
func (m *Message) Packets(fn func(Packet)) {
	if m.first == (span{}) {
		return
	}
	fn(m.packet(m.first))
	for _, s := range m.rest {
		fn(m.packet(s))
	}
}

func (m *Message) packet(s span) Packet {
	p, _ := ParsePacket(m.wire[s.start:s.end], s.binary) // our own encoding always parses
	return p
}

// appendPayload appends the polling form.
func (m *Message) appendPayload(payload []byte) []byte {
	m.Packets(func(p Packet) { payload = AppendPayloadPacket(payload, p) })
	return payload
}
