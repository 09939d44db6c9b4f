package bus

// Removing messages from streams, for the erasure of a visitor.

import (
	"context"
	"errors"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/proto-events/subject"
)

// Purge removes the messages on a published subject or filter from a stream and returns their number.
func (b *Bus) Purge(ctx context.Context, stream, filter string) (removed int, err error) {
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	s, err := b.js.Stream(ctx, stream)
	if err != nil {
		return 0, readError(stream, err)
	}
	stored, err := b.Stored(ctx, stream, filter)
	if err != nil {
		return 0, err
	}
	info, err := s.Info(ctx, jetstream.WithSubjectFilter(stored))
	if err != nil {
		return 0, readError(stream, err)
	}
	for _, n := range info.State.Subjects {
		removed += int(n)
	}
	if removed == 0 {
		return 0, nil
	}
	if err := s.Purge(ctx, jetstream.WithPurgeSubject(stored)); err != nil {
		return 0, readError(stream, err)
	}
	return removed, nil
}

// PurgeWhere removes the events for which match returns true from DEAD and OUTBOUND, whose subjects do not
// identify the chat, and returns their number. It scans both streams.
func (b *Bus) PurgeWhere(ctx context.Context, match func(subj string, data []byte) bool) (removed int, err error) {
	for _, stream := range []string{subject.Dead, subject.Outbound} {
		for d, err := range b.Read(ctx, Range{Stream: stream}) {
			if apperr.Is(err, apperr.NotFound) {
				break
			}
			if err != nil {
				return removed, err
			}
			if !match(d.Subject, d.Data) {
				continue
			}
			s, err := b.js.Stream(ctx, stream)
			if err != nil {
				return removed, readError(stream, err)
			}
			if err := s.SecureDeleteMsg(ctx, d.Sequence); err != nil && !errors.Is(err, jetstream.ErrMsgNotFound) {
				return removed, readError(stream, err)
			}
			removed++
		}
	}
	return removed, nil
}
