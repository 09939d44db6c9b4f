package main

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
)

// publisher publishes replies like a processing layer: to JetStream, with CloudEvents headers. It publishes
// asynchronously and counts the acknowledgements.
type publisher struct {
	nc       *nats.Conn
	inbox    string
	accepted atomic.Int64
	refused  atomic.Int64
	payload  []byte
}

// openPublisher connects and declares the streams, as `parleyctl streams apply` does.
func openPublisher(ctx context.Context, url string) (*publisher, error) {
	nc, err := nats.Connect(url)
	if err != nil {
		return nil, fmt.Errorf("connecting to NATS: %w", err)
	}
	p := &publisher{nc: nc, inbox: nats.NewInbox()}
	if _, err = nc.Subscribe(p.inbox, p.acknowledged); err == nil {
		err = declareStreams(ctx, url)
	}
	if err != nil {
		nc.Close()
		return nil, err
	}
	return p, nil
}

func declareStreams(ctx context.Context, url string) error {
	b, err := bus.Open(bus.Config{URL: url, Name: "benchmark", Observe: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return fmt.Errorf("declaring the streams: %w", err)
	}
	defer b.Close()
	if _, err = b.ApplyStreams(ctx, bus.StreamSettings{}); err != nil {
		return fmt.Errorf("declaring the streams: %w", err)
	}
	return nil
}

func (p *publisher) close() { p.nc.Close() }

func (p *publisher) acknowledged(m *nats.Msg) {
	if bytes.Contains(m.Data, []byte(`"error"`)) {
		p.refused.Add(1)
		return
	}
	p.accepted.Add(1)
}

// load is a load of replies: message i goes to room i modulo the number of rooms.
type load struct {
	rooms []*visitor // visitor i is room i
	rate  int        // per second; 0: as fast as possible
	total int
	// drafts are the messages that bots are writing, one per room; nil: the load is replies.
	drafts []draft
}

// publish publishes a load with the marks of a trial, on schedule regardless of the gateways. It returns when JetStream
// has acknowledged or rejected all.
func (p *publisher) publish(ctx context.Context, l load, trial int, epoch time.Time) (refused int, err error) {
	p.accepted.Store(0)
	p.refused.Store(0)
	start := time.Since(epoch)
	for sent := 0; sent < l.total; {
		now := time.Since(epoch)
		for due := l.due(now - start); sent < due; sent++ {
			if err := p.send(l, sent, trial, l.planned(start, now, sent)); err != nil {
				return 0, err
			}
		}
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
		if sent < l.total {
			time.Sleep(time.Millisecond)
		}
	}
	return p.settled(ctx, l.total)
}

func (l load) due(passed time.Duration) int {
	if l.rate == 0 {
		return l.total
	}
	return min(l.total, int(passed.Seconds()*float64(l.rate))+1)
}

func (l load) planned(start, now time.Duration, i int) time.Duration {
	if l.rate == 0 {
		return now
	}
	return start + time.Duration(i)*time.Second/time.Duration(l.rate)
}

func (p *publisher) send(l load, i, trial int, planned time.Duration) error {
	room := i % len(l.rooms)
	v, m := l.rooms[room], mark{trial, room, i/len(l.rooms) + 1, planned}
	now := time.Now()
	if l.drafts != nil {
		part := l.drafts[room].next(v, m, now)
		return p.event(part.Subject(), part, now)
	}
	return p.event(v.subject, event.Reply{
		CompanyID:  v.companyID,
		AppID:      v.appID,
		ChatUserID: v.id,
		ChatID:     v.chatID,
		Message: chat.Message{
			ID:            uuid.Must(uuid.NewV7()).String(),
			CreatedAt:     now,
			Type:          chat.Text,
			Data:          m.appendData(nil),
			NameOfSender:  "Support",
			IsFromSupport: true,
		},
	}, now)
}

func (p *publisher) event(subject string, e event.Event, now time.Time) error {
	p.payload = e.AppendJSON(p.payload[:0])
	err := p.nc.PublishMsg(&nats.Msg{
		Subject: subject,
		Reply:   p.inbox,
		Data:    p.payload,
		Header: nats.Header{
			nats.MsgIdHdr:    {e.EventID()},
			"ce-id":          {e.EventID()},
			"ce-type":        {e.Type()},
			"ce-source":      {"/processor"},
			"ce-time":        {now.UTC().Format(chat.TimeFormat)},
			"ce-specversion": {"1.0"},
		},
	})
	if err != nil {
		return fmt.Errorf("publishing: %w", err)
	}
	return nil
}

// settled waits until JetStream has acknowledged or rejected total publications.
func (p *publisher) settled(ctx context.Context, total int) (refused int, err error) {
	deadline := time.Now().Add(20 * time.Second)
	for p.accepted.Load()+p.refused.Load() < int64(total) {
		if ctx.Err() != nil || time.Now().After(deadline) {
			return 0, fmt.Errorf("JetStream acknowledged %d of %d publications", p.accepted.Load()+p.refused.Load(), total)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return int(p.refused.Load()), nil
}
