package engineio

// Messages are encoded once, as the frames of a WebSocket, and shared by all sessions that they are sent to.

import "sync/atomic"

// Message is a group of encoded packets: WebSocket frames with headers, from which the
// polling payload is derived when needed. It is immutable and can be sent to any number of sessions;
// its packets are sent to a client without other packets in between.
type Message struct {
	wire  []byte
	first span
	rest  []span

	deflated atomic.Pointer[[]byte] // wire with compressed frames; set by the first session that compresses
}

// span is the position of a packet in wire.
type span struct {
	start, end int
	binary     bool
}

// NewMessage encodes text as a message packet, followed by one binary packet per attachment.
func NewMessage(text []byte, attachments ...[]byte) *Message {
	return NewMessageOf(nil, text, attachments...)
}

// NewMessageOf is NewMessage with a text in two parts, which saves a copy.
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

// newRawFrame encodes a WebSocket control frame. It contains no packets for polling.
func newRawFrame(op opcode, data []byte) *Message {
	return &Message{wire: append(appendFrameHeader(nil, op, len(data)), data...)}
}

// addText appends a text frame of a packet with the data of head and data.
func (m *Message) addText(t PacketType, head, data []byte) {
	m.wire = appendFrameHeader(m.wire, opText, 1+len(head)+len(data))
	start := len(m.wire)
	m.wire = append(append(append(m.wire, byte(t)), head...), data...)
	m.addSpan(span{start: start, end: len(m.wire)})
}

// addBinary appends a binary frame.
func (m *Message) addBinary(data []byte) {
	m.wire = appendFrameHeader(m.wire, opBinary, len(data))
	start := len(m.wire)
	m.wire = append(m.wire, data...)
	m.addSpan(span{start: start, end: len(m.wire), binary: true})
}

// addSpan notes the place of a packet in wire. Most messages have one, which needs no slice.
func (m *Message) addSpan(s span) {
	if m.first == (span{}) {
		m.first = s
		return
	}
	m.rest = append(m.rest, s)
}

// messageOverhead is the memory of a queued message in addition to its bytes: the Message and its queue entry.
const messageOverhead = 128

// Size returns the number of bytes on the wire.
func (m *Message) Size() int { return len(m.wire) }

// cost returns the bytes that a queued message counts against a session's send buffer.
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

// packet returns the packet of a frame, for polling.
func (m *Message) packet(s span) Packet {
	p, _ := ParsePacket(m.wire[s.start:s.end], s.binary) // cannot fail
	return p
}

// appendPayload appends the packets to a polling payload.
func (m *Message) appendPayload(payload []byte) []byte {
	m.Packets(func(p Packet) { payload = AppendPayloadPacket(payload, p) })
	return payload
}
