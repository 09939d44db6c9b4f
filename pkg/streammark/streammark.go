// Package streammark keeps the mark of each stream in the store, which outlives what NATS may lose: at a start after a
// stop of everything it shows which streams have lost messages. A bus notices losses while it runs by itself.
package streammark

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/store"
)

const (
	// keepInterval bounds how much a stream may lose unnoticed, in the time before a stop of everything.
	keepInterval = time.Second
	// lastKeepTimeout bounds the write at the stop.
	lastKeepTimeout = 2 * time.Second
	// maxRetryWait bounds the pause between two attempts of [Keeper.Await].
	maxRetryWait = 2 * time.Second
)

// Keeper keeps the marks of a bus. It is not safe for concurrent use: a process calls Await or Notice first, then Run.
type Keeper struct {
	bus     *bus.Bus
	streams store.Streams
	log     *slog.Logger
	kept    map[string]uint64 // the sequence of each mark that Run has written
}

// New returns a keeper.
func New(b *bus.Bus, streams store.Streams, log *slog.Logger) *Keeper {
	return &Keeper{bus: b, streams: streams, log: log, kept: make(map[string]uint64)}
}

// Await is [Keeper.Notice], repeated until NATS and the store answer or ctx ends.
func (k *Keeper) Await(ctx context.Context) ([]bus.LostTail, error) {
	for wait := 50 * time.Millisecond; ; wait = min(2*wait, maxRetryWait) {
		losses, err := k.Notice(ctx)
		if err == nil {
			return losses, nil
		}
		k.log.DebugContext(ctx, "comparing the streams with their marks failed, retrying", "error", err)
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(wait):
		}
	}
}

// Notice compares every stream with its stored mark and records what is lost. It returns the losses since the marks
// were written: each start finds them until [Keeper.Settle].
func (k *Keeper) Notice(ctx context.Context) ([]bus.LostTail, error) {
	var losses []bus.LostTail
	for _, stream := range bus.MarkedStreams() {
		m, err := k.streams.StreamMark(ctx, stream)
		if apperr.Is(err, apperr.NotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		l, lost, err := k.bus.NoticeLoss(ctx, bus.StreamMark(m))
		if err != nil {
			return nil, fmt.Errorf("comparing %s with its mark: %w", stream, err)
		}
		if lost {
			losses = append(losses, l)
		}
	}
	return losses, nil
}

// Settle writes the mark that follows from a loss: what the stream has kept.
func (k *Keeper) Settle(ctx context.Context, l bus.LostTail) error {
	return k.streams.PutStreamMark(ctx, store.StreamMark{
		Stream: l.Stream, Epoch: l.Noticed, Sequence: l.From - 1, At: l.Noticed,
	})
}

// Run writes the marks that have changed, once a second and when ctx ends.
func (k *Keeper) Run(ctx context.Context) {
	tick := time.NewTicker(keepInterval)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			k.keep(ctx)
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastKeepTimeout)
			defer cancel()
			k.keep(last)
			return
		}
	}
}

// keep writes the marks that have changed. What fails is written the next time.
func (k *Keeper) keep(ctx context.Context) {
	for _, stream := range bus.MarkedStreams() {
		m, ok := k.bus.Mark(stream)
		if !ok || m.Sequence == k.kept[stream] {
			continue
		}
		if err := k.streams.PutStreamMark(ctx, store.StreamMark(m)); err != nil {
			k.log.DebugContext(ctx, "writing the mark of a stream failed, retrying", "stream", stream, "error", err)
			continue
		}
		k.kept[stream] = m.Sequence
	}
}
