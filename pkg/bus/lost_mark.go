package bus

// The highest message of each stream that a bus has seen: publish_ack.go and consume_group.go report messages,
// lost_tail.go compares the stream with them.

import (
	"bytes"
	"strconv"
	"sync"
	"time"

	"github.com/parley-chat/parley/proto-events/subject"
)

// StreamMark is the highest message of a stream that a bus has seen. A stream that ends below it, or has another
// message there, has lost it.
type StreamMark struct {
	Stream   string
	Epoch    time.Time // of the stream; see [StreamState]
	Sequence uint64
	// MessageID is the Nats-Msg-Id; empty: unknown.
	MessageID string
	At        time.Time // when the stream stored it, or soon after
}

// streamMarks are the marks of all marked streams. The map never changes.
type streamMarks map[string]*streamMark

// streamMark is the mark of one stream. An acknowledgement tells only the sequence of a message, a delivery also its
// id: both count. While NATS is disconnected, and until the stream was compared, the mark stays as it is: the stream
// may have lost what it has seen.
type streamMark struct {
	adopting sync.RWMutex // held by NoticeLoss, which changes the epoch in POSITIONS and here; locked before mu

	mu        sync.Mutex // guards the fields below
	acked     StreamMark
	delivered StreamMark
	epoch     time.Time // zero: unknown
	lost      LostTail  // the last one, as last read
	frozen    bool
}

func newStreamMarks() streamMarks {
	marks := make(streamMarks)
	for _, name := range MarkedStreams() {
		marks[name] = &streamMark{acked: StreamMark{Stream: name}, delivered: StreamMark{Stream: name}}
	}
	return marks
}

// MarkedStreams returns the streams that have marks: all event streams but the short ones, whose messages may be lost.
func MarkedStreams() []string {
	var names []string
	for _, s := range subject.Streams() {
		if !s.LastOnly && !s.Short {
			names = append(names, s.Name)
		}
	}
	return names
}

// of returns the mark of a stream; nil if it has none.
func (all streamMarks) of(stream string) *streamMark { return all[stream] }

// freeze keeps all marks as they are until their streams were compared.
func (all streamMarks) freeze() {
	for _, m := range all {
		m.mu.Lock()
		m.frozen = true
		m.mu.Unlock()
	}
}

// acknowledged reports the acknowledgement of a message.
func (all streamMarks) acknowledged(ack []byte) {
	stream, sequence := storedAs(ack)
	m := all[string(stream)]
	if m == nil || sequence == 0 {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.frozen && sequence > m.acked.Sequence {
		m.acked.Sequence = sequence
		m.acked.At = time.Now()
	}
}

// received reports a delivery.
func (all streamMarks) received(d Delivery) {
	m := all[d.Stream]
	if m == nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.frozen && d.Sequence > m.delivered.Sequence {
		m.delivered.Sequence = d.Sequence
		m.delivered.MessageID = d.ID
		m.delivered.At = d.Time
	}
}

// enter sets the epoch if it is not known yet, and returns the known one.
func (m *streamMark) enter(epoch time.Time) (known time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.epoch.IsZero() {
		m.epoch = epoch
	}
	return m.epoch
}

// reset begins an epoch, in which nothing was seen yet.
func (m *streamMark) reset(epoch time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	stream := m.acked.Stream
	m.acked = StreamMark{Stream: stream}
	m.delivered = StreamMark{Stream: stream}
	m.epoch = epoch
	m.frozen = false
}

func (m *streamMark) setLostTail(l LostTail) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.lost = l
}

func (m *streamMark) lostTail() LostTail {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lost
}

// confirm ends [streamMarks.freeze]: the stream has everything that the mark has seen.
func (m *streamMark) confirm() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.frozen = false
}

// highest returns the highest messages that were seen, of the acknowledged and of the delivered ones. The first is the
// higher one.
func (m *streamMark) highest() []StreamMark {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.acked.Sequence > m.delivered.Sequence {
		return []StreamMark{m.acked, m.delivered}
	}
	return []StreamMark{m.delivered}
}

// Mark returns the highest message of a stream that consumers of this bus have received; false: none yet, or the stream
// was not compared with it since the connection was lost.
func (b *Bus) Mark(stream string) (StreamMark, bool) {
	m := b.marks.of(stream)
	if m == nil {
		return StreamMark{}, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	mark := m.delivered
	mark.Epoch = m.epoch
	return mark, mark.Sequence > 0 && !mark.Epoch.IsZero() && !m.frozen
}

var ackSequence = []byte(`"seq":`)

// storedAs returns the stream and the sequence in a positive acknowledgement, as nats-server writes it; zero values for
// anything else.
func storedAs(ack []byte) (stream []byte, sequence uint64) {
	rest, ok := bytes.CutPrefix(ack, ackStart)
	if !ok {
		return nil, 0
	}
	stream, rest, _ = bytes.Cut(rest, []byte(`"`))
	_, rest, ok = bytes.Cut(rest, ackSequence)
	if !ok {
		return nil, 0
	}
	rest = bytes.TrimLeft(rest, " ")
	end := 0
	for end < len(rest) && rest[end] >= '0' && rest[end] <= '9' {
		end++
	}
	sequence, err := strconv.ParseUint(string(rest[:end]), 10, 64)
	if err != nil {
		return nil, 0
	}
	return stream, sequence
}
