package inspect

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/proto-events/subject"
)

// Stream is the state of a stream in display form.
type Stream struct {
	Name      string    `json:"name"`
	Messages  uint64    `json:"messages"`
	Bytes     uint64    `json:"bytes"`
	MaxBytes  int64     `json:"maxBytes"`
	MaxAge    string    `json:"maxAge"`
	Replicas  int       `json:"replicas"`
	FirstSeq  uint64    `json:"firstSequence"`
	LastSeq   uint64    `json:"lastSequence"`
	FirstTime chat.Time `json:"firstTime,omitzero"`
	LastTime  chat.Time `json:"lastTime,omitzero"`
	Consumers int       `json:"consumers"`
}

// Consumer is the progress of a consumer group in display form.
type Consumer struct {
	Stream       string    `json:"stream"`
	Name         string    `json:"name"`
	Filters      []string  `json:"filters"`
	Partitions   int       `json:"partitions"`
	Lag          uint64    `json:"lag"`
	Unacked      int       `json:"unacknowledged"`
	Redelivered  int       `json:"redelivered"`
	Delivered    uint64    `json:"deliveredSequence"`
	AckFloor     uint64    `json:"ackFloorSequence"`
	LastActivity chat.Time `json:"lastActivity,omitzero"`
	Read         bool      `json:"active"`
}

// Streams returns the streams that exist.
func Streams(ctx context.Context, b *bus.Bus) (all []Stream, err error) {
	for _, name := range StreamNames() {
		s, err := OpenStream(ctx, b, name)
		if apperr.Is(err, apperr.NotFound) {
			continue // stream not created yet
		}
		if err != nil {
			return nil, err
		}
		all = append(all, streamOf(s.CachedInfo()))
	}
	return all, nil
}

// OpenStream returns the JetStream handle of a stream. Errors: NotFound; Unavailable if NATS is unreachable.
func OpenStream(ctx context.Context, b *bus.Bus, name string) (jetstream.Stream, error) {
	s, err := b.Stream(ctx, name)
	switch {
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return nil, apperr.StreamNotFound.WithMessage("Stream not found: " + name)
	case err != nil:
		return nil, apperr.Unreachable("NATS", err)
	}
	return s, nil
}

func streamOf(info *jetstream.StreamInfo) Stream {
	v := Stream{
		Name:      info.Config.Name,
		Messages:  info.State.Msgs,
		Bytes:     info.State.Bytes,
		MaxBytes:  info.Config.MaxBytes,
		MaxAge:    strings.TrimSuffix(strings.TrimSuffix(info.Config.MaxAge.String(), "0s"), "0m"),
		Replicas:  info.Config.Replicas,
		FirstSeq:  info.State.FirstSeq,
		LastSeq:   info.State.LastSeq,
		Consumers: info.State.Consumers,
	}
	if info.State.Msgs > 0 {
		v.FirstTime = chat.Time(info.State.FirstTime)
		v.LastTime = chat.Time(info.State.LastTime)
	}
	return v
}

// ConsumerOf returns the display form of a consumer group.
func ConsumerOf(g bus.GroupInfo) Consumer {
	total := g.Total()
	v := Consumer{
		Stream:      g.Stream,
		Name:        g.Name,
		Filters:     g.Filters,
		Partitions:  len(g.Partitions),
		Lag:         total.Pending,
		Unacked:     total.AckPending,
		Redelivered: total.Redelivered,
		Delivered:   total.Delivered,
		AckFloor:    total.AckFloor,
		Read:        total.Read,
	}
	if !total.Active.IsZero() {
		v.LastActivity = chat.Time(total.Active)
	}
	return v
}

// MaxOutboundWait is how long a message may wait for a channel connector; the alert ParleyOutboundWaits has the same.
const MaxOutboundWait = time.Hour

// Waiting is a subject of OUTBOUND with a message that no channel connector has taken for too long, in display form.
type Waiting struct {
	Channel   string    `json:"channel"`
	CompanyID string    `json:"companyId"`
	Since     chat.Time `json:"since"` // when the oldest one was stored
}

// WaitingForChannels returns the subjects of which a message has waited longer than [MaxOutboundWait], oldest first.
func WaitingForChannels(ctx context.Context, b *bus.Bus, now time.Time) ([]Waiting, error) {
	unclaimed, err := b.Unclaimed(ctx, subject.Outbound)
	if err != nil {
		return nil, err
	}
	late := []Waiting{}
	for _, u := range unclaimed {
		if now.Sub(u.Since) <= MaxOutboundWait {
			continue
		}
		w := Waiting{Since: chat.Time(u.Since)}
		w.Channel, w.CompanyID, _ = subject.ParseOutbound(u.Subject)
		late = append(late, w)
	}
	return late, nil
}
