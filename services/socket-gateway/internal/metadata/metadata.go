// Package metadata encodes the fields that gateways send each other in addition to an event. Sockets do not
// receive them, and gateways need not parse the event's JSON for them.
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

// Metadata describes an event. It is zero for events emitted by other programs.
type Metadata struct {
	// Offset is the stream sequence of a reply; 0 for other events.
	Offset uint64
	// Receipt is set if the sender of the reply requested a delivery receipt.
	Receipt Receipt
	// Part identifies a part of a message.
	Part Part
	// TraceParent is the span in which the event is emitted, as a W3C traceparent.
	TraceParent string
}

// Receipt identifies the message to report as delivered; the zero value requests no receipt.
type Receipt struct {
	MessageID, ChatID string
}

// Part identifies a part of a message by its number; the zero value is no part.
type Part struct {
	MessageID string
	N         int32
}

// Covers reports whether other belongs to the same message and is not after p.
func (p Part) Covers(other Part) bool {
	return p.MessageID == other.MessageID && other.N <= p.N
}

// Of returns a broadcast's metadata. Malformed fields count as missing.
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

// Put replaces the metadata of a broadcast with m.
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
