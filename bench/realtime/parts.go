package main

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/event"
)

// partsOfDraft is the number of parts of a message, whose length is bounded.
const partsOfDraft = 100

// draft is a message that a bot is writing.
type draft struct {
	id     string
	offset int32
}

// next returns the part with a mark.
func (d *draft) next(v *visitor, m mark, now time.Time) event.MessagePart {
	n := (m.sequence - 1) % partsOfDraft
	if n == 0 {
		*d = draft{id: uuid.Must(uuid.NewV7()).String()}
	}
	part := event.MessagePart{
		CompanyID: v.companyID, AppID: v.appID, ChatUserID: v.id, ChatID: v.chatID, MessageID: d.id, N: int32(n), Offset: d.offset,
		Text: m.text(), CreatedAt: now,
	}
	if n == 0 {
		part.NameOfSender = "Support"
	}
	d.offset += int32(len(part.Text)) // it is ASCII
	return part
}

// partsFigure is [pacedFigure] for parts.
type partsFigure struct {
	latency, cost outcome
	ceiling       int
}

// measureParts measures the cost of parts of streamed answers, a feature of Parley only.
func measureParts(ctx context.Context, b *bench, c contender, f *figures) error {
	if c.name != "parley" {
		return nil
	}
	s, err := b.openStage(ctx, c, 2)
	if err != nil {
		return err
	}
	defer s.close()
	s.parts = true
	if _, err := s.join(ctx, 0, b.rooms, own); err != nil {
		return err
	}
	var p partsFigure
	if _, err = s.pace(ctx, b.rooms, pace{b.latency.rate, b.warm}); err != nil {
		return err
	}
	if p.latency, err = s.pace(ctx, b.rooms, b.latency); err != nil {
		return err
	}
	err = b.profiled(ctx, s, "parts", b.cost.time, func() (err error) {
		p.cost, err = s.pace(ctx, b.rooms, b.cost)
		return err
	})
	if err != nil {
		return err
	}
	if p.ceiling, err = s.ceiling(ctx, b.rooms, b.ceiling, b.soon); err != nil {
		return err
	}
	f.parts = &p
	return nil
}

func reportParts(w *strings.Builder, z sizes, f *figures) {
	if f == nil || f.parts == nil {
		return
	}
	p := f.parts
	fmt.Fprintf(w, "\nParts of streamed answers: 2 gateways, %d visitors with a socket each, in turn.\n\n", z.rooms)
	fmt.Fprint(w, "| parts/s | CPU of the gateways for a part of a socket | NATS and Redis | p50 | p99 | lost, doubled, out of order |\n|---|---|---|---|---|---|\n")
	for _, l := range []struct {
		pace
		outcome
	}{{z.latency, p.latency}, {z.cost, p.cost}} {
		fmt.Fprintf(w, "| %d | %s | %s | %s | %s | %d |\n", l.pace.rate, number(1000*l.cpuPerThousand(), "µs"), number(1000*l.enginesPerThousand(), "µs"),
			number(milliseconds(l.p50), "ms"), number(milliseconds(l.p99), "ms"), l.lost()+l.doubled+l.disordered+l.astray)
	}
	fmt.Fprintf(w, "\nHighest rate with p99 under %v and nothing lost: %d parts/s.\n", z.soon, p.ceiling)
}
