package bus

// How full the streams are, for what must go on when one of them is nearly full: the budgets, which then keep the rest
// for accounts that use little, and dead letters.

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
)

// fills are the shares of the streams' limits that are used, 0 to 1, as last measured. The zero value knows none.
type fills struct {
	byStream atomic.Pointer[map[string]float64]
}

// fullest returns the share of the fullest of these streams. A stream that was not measured counts as empty.
func (f *fills) fullest(streams ...string) float64 {
	known := f.byStream.Load()
	if known == nil {
		return 0
	}
	share := 0.0
	for _, name := range streams {
		share = max(share, (*known)[name])
	}
	return share
}

// measureStreams measures the size and the limit of the streams. One that does not answer keeps its last share.
func (b *Bus) measureStreams(ctx context.Context) error {
	measured := make(map[string]float64, len(b.cfg.Streams))
	var failed error
	for _, name := range b.cfg.Streams {
		info, lost, err := b.inspect(ctx, name)
		if err != nil {
			failed = errors.Join(failed, err)
			measured[name] = b.fills.fullest(name)
			continue
		}
		b.metrics.showLost(name, lost)
		b.metrics.streamBytes.WithLabelValues(name).Set(float64(info.State.Bytes))
		b.metrics.streamLimit.WithLabelValues(name).Set(float64(info.Config.MaxBytes))
		if info.Config.MaxBytes > 0 {
			measured[name] = float64(info.State.Bytes) / float64(info.Config.MaxBytes)
		}
	}
	b.fills.byStream.Store(&measured)
	return failed
}

// besideFill is the fill from which on a stream counts that a payer's events reach only in passing.
const besideFill = 7.0 / 8

// fillFor returns the used share of the fullest stream that the events of a payer reach, directly or through what is
// derived from them. Changes of control by agents in INBOUND, and notices to visitors in REPLIES, are few: these
// streams count when they are nearly full. So a flood of visitors blocks no agents, and one of agents no visitors.
func (b *Bus) fillFor(p event.Payer) float64 {
	fill, beside := 0.0, 0.0
	switch p {
	case event.PayerVisitor:
		fill = b.fills.fullest(subject.Inbound)
		beside = b.fills.fullest(subject.Replies)
	case event.PayerCompany:
		fill = b.fills.fullest(subject.Sends, subject.Replies, subject.Outbound, subject.Status)
	case event.PayerAgent:
		fill = b.fills.fullest(subject.Replies, subject.Outbound, subject.Status)
		beside = b.fills.fullest(subject.Inbound)
	case event.PayerBot:
		fill = b.fills.fullest(subject.Replies, subject.Outbound)
	}
	if beside >= besideFill {
		fill = max(fill, beside)
	}
	return fill
}
