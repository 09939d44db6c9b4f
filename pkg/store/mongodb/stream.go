package mongodb

import (
	"context"
	"errors"
	"time"

	"github.com/parley-chat/parley/pkg/store"
)

// streamDocument is [store.StreamMark]. Its times are RFC 3339: BSON dates have no nanoseconds.
type streamDocument struct {
	Stream    string `bson:"_id"`
	Epoch     string `bson:"epoch"`
	Sequence  uint64 `bson:"sequence"`
	MessageID string `bson:"messageId"`
	At        string `bson:"at"`
}

// StreamMark implements [store.Streams].
func (s *Store) StreamMark(ctx context.Context, stream string) (store.StreamMark, error) {
	d, err := get[streamDocument](ctx, s, streams, stream)
	if err != nil {
		return store.StreamMark{}, err
	}
	epoch, epochErr := time.Parse(time.RFC3339Nano, d.Epoch)
	at, atErr := time.Parse(time.RFC3339Nano, d.At)
	m := store.StreamMark{Stream: d.Stream, Epoch: epoch, Sequence: d.Sequence, MessageID: d.MessageID, At: at}
	return m, errors.Join(epochErr, atErr)
}

// PutStreamMark implements [store.Streams].
func (s *Store) PutStreamMark(ctx context.Context, m store.StreamMark) error {
	return s.put(ctx, streams, m.Stream, streamDocument{
		Stream:    m.Stream,
		Epoch:     m.Epoch.UTC().Format(time.RFC3339Nano),
		Sequence:  m.Sequence,
		MessageID: m.MessageID,
		At:        m.At.UTC().Format(time.RFC3339Nano),
	})
}
