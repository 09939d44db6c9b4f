package sqlite

import (
	"context"
	"time"

	"github.com/parley-chat/parley/pkg/store"
)

// StreamMark implements [store.Streams].
func (s *Store) StreamMark(ctx context.Context, stream string) (store.StreamMark, error) {
	return read(ctx, s, "reading the mark of a stream", func(c *conn) (store.StreamMark, error) {
		m := store.StreamMark{Stream: stream}
		var failed error
		found, err := c.first(
			`SELECT epoch, sequence, message_id, at FROM streams WHERE name = ?`,
			func(r *row) {
				var at string
				m.Epoch, failed = time.Parse(time.RFC3339Nano, r.text())
				m.Sequence = uint64(r.int()) //nolint:gosec // written from a sequence
				m.MessageID = r.text()
				at = r.text()
				if failed == nil {
					m.At, failed = time.Parse(time.RFC3339Nano, at)
				}
			},
			stream,
		)
		if err == nil && !found {
			err = store.RecordNotFound()
		}
		if err == nil {
			err = failed
		}
		return m, err
	})
}

// PutStreamMark implements [store.Streams].
func (s *Store) PutStreamMark(ctx context.Context, m store.StreamMark) error {
	_, err := write(ctx, s, "writing the mark of a stream", func(c *conn) (bool, error) {
		return c.insert(
			orReplace, `streams`, `name, epoch, sequence, message_id, at`,
			m.Stream, m.Epoch.UTC().Format(time.RFC3339Nano), int64(m.Sequence), //nolint:gosec // far below 2^63
			m.MessageID, m.At.UTC().Format(time.RFC3339Nano),
		)
	})
	return err
}
