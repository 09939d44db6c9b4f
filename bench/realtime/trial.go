package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/bench/internal/rig"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
)

// patience is how long the generator waits without deliveries before the rest counts as lost: an overloaded gateway is
// slow, not down.
const patience = 4 * time.Second

// mark identifies the reply of a delivery. It is a string in the reply's data, which every gateway passes on unchanged.
type mark struct {
	trial    int
	room     int
	sequence int           // from 1 in its room
	planned  time.Duration // since the trial began
}

var markBegin = []byte(`"mark":"`)

// data returns the data of a marked reply.
func (m mark) data() json.RawMessage {
	const text = "Your order 4711 has left our warehouse. It will be with you tomorrow before noon."
	return fmt.Appendf(nil, `{"text":%q,"mark":"%d.%d.%d.%d."}`,
		text, m.trial, m.room, m.sequence, m.planned.Microseconds())
}

// parseMark finds the mark in an event.
func parseMark(packet []byte) (m mark, ok bool) {
	_, rest, ok := bytes.Cut(packet, markBegin)
	if !ok {
		return mark{}, false
	}
	var parts [4]int
	part := 0
	for _, c := range rest {
		switch {
		case c == '.':
			if part++; part == len(parts) {
				return mark{parts[0], parts[1], parts[2], time.Duration(parts[3]) * time.Microsecond}, true
			}
		case '0' <= c && c <= '9':
			parts[part] = parts[part]*10 + int(c-'0')
		default:
			return mark{}, false
		}
	}
	return mark{}, false
}

// trial is one load of replies.
type trial struct {
	id        int
	began     time.Time
	delivered atomic.Int64 // each reply counted once per client
}

// tally is what one client received of a trial. The client's lock guards it.
type tally struct {
	trial       *trial
	room        int
	highest     int
	got         map[int]bool // by sequence
	latencies   []time.Duration
	doubled     int
	outOfOrder  int // delivered after a later one of the same room
	misdirected int // of another room, or not one of our replies
	last        time.Time
}

// note counts one delivery.
func (t *tally) note(packet []byte) {
	m, ok := parseMark(packet)
	switch {
	case ok && m.trial != t.trial.id:
		return // a straggler of an earlier trial, already counted as lost
	case !ok || m.room != t.room:
		t.misdirected++
		return
	case t.got[m.sequence]:
		t.doubled++
		return
	}
	t.got[m.sequence] = true
	if m.sequence < t.highest {
		t.outOfOrder++
	}
	t.highest = max(t.highest, m.sequence)
	t.last = time.Now()
	t.latencies = append(t.latencies, t.last.Sub(t.trial.began)-m.planned)
	t.trial.delivered.Add(1)
}

// outcome is the result of a trial.
type outcome struct {
	expected, delivered              int
	doubled, outOfOrder, misdirected int
	p50, p99                         time.Duration // endless if too many were lost
	took                             time.Duration // from the first publication to the last delivery
	cpu                              time.Duration // of the gateways
	engines                          time.Duration // CPU of Redis and NATS
}

// endless is the latency of lost replies.
const endless = time.Duration(math.MaxInt64)

func (o outcome) lost() int { return o.expected - o.delivered }

// faults counts all that a delivery must not be.
func (o outcome) faults() int { return o.lost() + o.doubled + o.outOfOrder + o.misdirected }

// rate returns deliveries per second.
func (o outcome) rate() float64 { return float64(o.delivered) / o.took.Seconds() }

// replies publishes total replies to the rooms of the visitors at a rate (0: as fast as possible), and waits for their
// deliveries.
func (d *deployment) replies(ctx context.Context, rate, total int) (outcome, error) {
	d.trials++
	t := &trial{id: d.trials, began: time.Now()}
	tallies := make([]*tally, len(d.clients))
	expected := 0
	for i, c := range d.clients {
		tallies[i] = &tally{trial: t, room: c.room, got: map[int]bool{}}
		c.setReceiver(tallies[i].note)
		expected += total / len(d.visitors)
		if c.room < total%len(d.visitors) {
			expected++
		}
	}
	cpu, engines := d.cpu()
	err := rig.Publish(ctx, d.bus, rig.Load{
		Keys: len(d.visitors), Rate: rate, Total: total,
		Event: func(room, n int, planned time.Time) event.Event {
			return d.reply(mark{trial: t.id, room: room, sequence: n, planned: planned.Sub(t.began)})
		},
	})
	if err != nil {
		return outcome{}, err
	}
	if err := t.await(ctx, expected); err != nil {
		return outcome{}, err
	}
	for _, c := range d.clients {
		c.setReceiver(nil)
	}
	o := t.sum(tallies, expected)
	gatewaysNow, enginesNow := d.cpu()
	o.cpu = gatewaysNow - cpu
	o.engines = enginesNow - engines
	return o, nil
}

func (d *deployment) reply(m mark) event.Event {
	v := d.visitors[m.room]
	return event.Reply{
		CompanyID: d.rig.Demo.CompanyID, AppID: d.rig.Demo.AppID, ChatUserID: v.id, ChatID: v.chatID,
		Message: chat.Message{
			ID:            uuid.Must(uuid.NewV7()).String(),
			CreatedAt:     time.Now(),
			Type:          chat.Text,
			Data:          m.data(),
			NameOfSender:  "Support",
			IsFromSupport: true,
		},
	}
}

// await returns when all expected deliveries have arrived, and a moment later for duplicates, or after patience without
// a delivery.
func (t *trial) await(ctx context.Context, expected int) error {
	progress, at := int64(-1), time.Now()
	for {
		n := t.delivered.Load()
		if n != progress {
			progress, at = n, time.Now()
		}
		waited := time.Since(at)
		if waited > patience || n >= int64(expected) && waited > 200*time.Millisecond {
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func (t *trial) sum(tallies []*tally, expected int) outcome {
	o := outcome{expected: expected, delivered: int(t.delivered.Load())}
	latencies := make([]time.Duration, 0, expected)
	for _, c := range tallies {
		o.doubled += c.doubled
		o.outOfOrder += c.outOfOrder
		o.misdirected += c.misdirected
		o.took = max(o.took, c.last.Sub(t.began))
		latencies = append(latencies, c.latencies...)
	}
	slices.Sort(latencies)
	for len(latencies) < expected {
		latencies = append(latencies, endless)
	}
	o.p50 = rig.Quantile(latencies, 0.50)
	o.p99 = rig.Quantile(latencies, 0.99)
	return o
}
