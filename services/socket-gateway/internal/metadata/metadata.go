// Package metadata is what gateways send each other beside an event: the sockets do not get it, and no reader has to look for it in
// the event's JSON.
package metadata

import (
	"strconv"

	"github.com/parley-chat/parley/pkg/socketio"
)

// Keys of a broadcast's metadata.
const (
	keyOffset      = "offset"
	keyReceipt     = "receipt" // the message's id
	keyChat        = "chat"
	keyPart        = "part" // the message's id
	keyNumber      = "n"
	keyTraceParent = "traceparent"
)

// Metadata describes an event. It is zero for events that other programs emit.
type Metadata struct {
	// Offset is the sequence of a reply in its stream; 0: it is no reply.
	Offset uint64
	// Receipt says that the sender of the reply wants to know when it was delivered.
	Receipt Receipt
	// Part says which part of which message this is.
	Part Part
	// TraceParent is the span in which the event is emitted, as a W3C traceparent.
	TraceParent string
}

// Receipt names the message that a receipt is wanted for; the zero value wants none.
type Receipt struct {
	MessageID, ChatID string
}

// Part is the number of a part of a message; the zero value is none.
type Part struct {
	MessageID string
	N         int32
}

// Covers reports whether another part is not after this one.
func (p Part) Covers(other Part) bool {
	return p.MessageID == other.MessageID && other.N <= p.N
}

// Of reads a broadcast's metadata. What is malformed counts as missing.
func Of(b *socketio.Broadcast) (m Metadata) {
	if len(b.Metadata) == 0 {
		return m
	}
	if offset, err := strconv.ParseUint(b.Metadata[keyOffset], 10, 64); err == nil {
		m.Offset = offset
	}
	if id := b.Metadata[keyReceipt]; id != "" {
		m.Receipt = Receipt{id, b.Metadata[keyChat]}
	}
	if n, err := strconv.ParseInt(b.Metadata[keyNumber], 10, 32); err == nil {
		m.Part = Part{b.Metadata[keyPart], int32(n)}
	}
	m.TraceParent = b.Metadata[keyTraceParent]
	return m
}

// Put makes m the metadata of a broadcast.
func (m Metadata) Put(b *socketio.Broadcast) {
	b.Metadata = make(map[string]string, 4)
	if m.Offset != 0 {
		b.Metadata[keyOffset] = strconv.FormatUint(m.Offset, 10)
	}
	if m.Receipt != (Receipt{}) {
		b.Metadata[keyReceipt], b.Metadata[keyChat] = m.Receipt.MessageID, m.Receipt.ChatID
	}
	if m.Part != (Part{}) {
		b.Metadata[keyPart], b.Metadata[keyNumber] = m.Part.MessageID, strconv.FormatInt(int64(m.Part.N), 10)
	}
	if m.TraceParent != "" {
		b.Metadata[keyTraceParent] = m.TraceParent
	}
}
