package store

import (
	"context"
	"time"
)

// StreamMark is the highest message of a NATS stream that the deployment has processed: the store outlives what the
// stream may lose.
type StreamMark struct {
	Stream    string
	Epoch     time.Time // of the stream's sequences
	Sequence  uint64
	MessageID string    // empty: unknown
	At        time.Time // when the stream stored the message
}

// Streams stores the marks of the streams. Unlike all other times, those of a mark keep their nanoseconds: NATS
// compares them.
type Streams interface {
	// StreamMark returns the mark of a stream, or NotFound.
	StreamMark(ctx context.Context, stream string) (StreamMark, error)
	// PutStreamMark writes the mark, whether or not it exists.
	PutStreamMark(ctx context.Context, m StreamMark) error
}
