package bus

import (
	"context"
	"errors"
	"fmt"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/proto-events/subject"
)

// Notify sends a notice on a core NATS subject. Nothing keeps it: a replica that is disconnected at that moment does not hear it.
func (b *Bus) Notify(_ context.Context, subj string, data []byte) error {
	if err := b.conn.Publish(subj, data); err != nil {
		return fmt.Errorf("sending a notice: %w", apperr.Away("NATS", err))
	}
	return nil
}

// OnNotice calls heard, one call at a time, for every notice on a subject, those of this bus included, until stop is called.
func (b *Bus) OnNotice(subj string, heard func(data []byte)) (stop func(), err error) {
	sub, err := b.conn.Subscribe(subj, func(m *nats.Msg) { heard(m.Data) })
	if err != nil {
		return nil, fmt.Errorf("listening for notices: %w", apperr.Away("NATS", err))
	}
	return func() { _ = sub.Unsubscribe() }, nil // fails only if the connection, and with it the subscription, is gone
}

// Bounds returns the first and the last sequence of what a stream holds, or has held: of an empty stream the first is one more than the
// last.
func (b *Bus) Bounds(ctx context.Context, stream string) (first, last uint64, err error) {
	if !b.conn.IsConnected() {
		return 0, 0, apperr.Away("NATS", nats.ErrDisconnected)
	}
	ctx, cancel := context.WithTimeout(ctx, apiTimeout)
	defer cancel()
	s, err := b.js.Stream(ctx, stream)
	if err != nil {
		return 0, 0, readError(stream, err)
	}
	state := s.CachedInfo().State
	return state.FirstSeq, state.LastSeq, nil
}

// Purge removes from a stream what was published on a subject, or on the subjects of a filter, and returns how many messages that were.
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

// PurgeWhere removes from DEAD and OUTBOUND, whose subjects name no chat, the events that about accepts, and returns how many those were. It
// reads both streams.
func (b *Bus) PurgeWhere(ctx context.Context, about func(subj string, data []byte) bool) (removed int, err error) {
	for _, stream := range []string{subject.Dead, subject.Outbound} {
		for d, err := range b.Read(ctx, Span{Stream: stream}) {
			if apperr.Is(err, apperr.NotFound) {
				break
			}
			if err != nil {
				return removed, err
			}
			if !about(d.Subject, d.Data) {
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
