package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/parley-chat/parley/pkg/event"
)

// mark identifies a message of a trial wherever it arrives. It stands in the message's text, which every gateway and
// bot passes on unchanged.
type mark struct {
	trial    int
	room     int
	sequence int           // from 1 in its room
	planned  time.Duration // since the trial began
}

// data returns the data of a marked message.
func (m mark) data() string {
	return fmt.Sprintf(`{"text":"%s mark:%d.%d.%d.%d."}`,
		messageText, m.trial, m.room, m.sequence, m.planned.Microseconds())
}

// parseMark finds the mark in an event.
func parseMark(packet []byte) (m mark, ok bool) {
	_, rest, ok := bytes.Cut(packet, []byte("mark:"))
	if !ok {
		return mark{}, false
	}
	var parts [4]int
	for i := range parts {
		digits, after, found := bytes.Cut(rest, []byte("."))
		n, err := strconv.Atoi(string(digits))
		if !found || err != nil {
			return mark{}, false
		}
		parts[i] = n
		rest = after
	}
	return mark{parts[0], parts[1], parts[2], time.Duration(parts[3]) * time.Microsecond}, true
}

// trial is one load of marked messages, and what came of it. From the marks each delivery is classified as in order,
// out of order, doubled or misdirected; missing ones are lost.
type trial struct {
	id        int
	began     time.Time
	tallies   []*tally     // of all receivers
	delivered atomic.Int64 // each message counted once per receiver
}

func (d *deployment) newTrial() *trial {
	d.trials++
	return &trial{id: d.trials, began: time.Now()}
}

// publishers is the number of replies that wait for their acknowledgement at once.
const publishers = 256

// pace is the rate of a load and its number of replies.
type pace struct {
	rate  int // per second; 0: as fast as possible
	total int
}

// publish publishes marked replies at a pace, on schedule regardless of their readers. Reply i is for visitor i modulo
// their number; those of one visitor are published in order, each after the acknowledgement of the one before.
func (d *deployment) publish(ctx context.Context, t *trial, p pace) {
	began := time.Now()
	rooms := len(d.visitors)
	workers := min(publishers, rooms)
	group, ctx := errgroup.WithContext(ctx)
	for w := range workers {
		group.Go(func() error {
			for round := 0; round*rooms < p.total; round++ {
				for room := w; room < rooms && round*rooms+room < p.total; room += workers {
					planned := time.Now()
					if p.rate > 0 {
						i := round*rooms + room
						planned = began.Add(time.Duration(i) * time.Second / time.Duration(p.rate))
						time.Sleep(time.Until(planned))
					}
					m := mark{trial: t.id, room: room, sequence: round + 1, planned: planned.Sub(t.began)}
					if err := d.reply(ctx, m); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	d.check(group.Wait())
}

func (d *deployment) reply(ctx context.Context, m mark) error {
	v := d.visitors[m.room]
	return d.bus.Publish(ctx, event.Derived(), event.Reply{
		CompanyID: d.demo.CompanyID, AppID: d.demo.AppID, ChatUserID: v.id, ChatID: v.chatID,
		Message: newMessage(m.data()),
	})
}

// tally is what one receiver in a room has got. mu guards it.
type tally struct {
	trial    *trial
	room     int
	answered chan struct{} // signals each delivery; nil: nobody waits for them

	mu          sync.Mutex
	highest     int
	got         map[int]bool // by sequence
	deliveries  []delivery
	doubled     int
	outOfOrder  int // delivered after a later one of the same room
	misdirected int // of another room, or not one of our messages
}

// delivery is when a message arrived, and its latency. That counts from the time for which its publication was planned,
// so that a slow generator cannot improve it.
type delivery struct {
	at   time.Time
	wait time.Duration
}

// newTally adds a receiver.
func (t *trial) newTally(room int) *tally {
	c := &tally{trial: t, room: room, got: map[int]bool{}}
	t.tallies = append(t.tallies, c)
	return c
}

// note counts a delivery.
func (t *tally) note(packet []byte, at time.Time) {
	m, ok := parseMark(packet)
	t.mu.Lock()
	defer t.mu.Unlock()
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
	t.deliveries = append(t.deliveries, delivery{at: at, wait: at.Sub(t.trial.began) - m.planned})
	t.trial.delivered.Add(1)
	if t.answered != nil {
		t.answered <- struct{}{}
	}
}

// outcome is the result of a trial.
type outcome struct {
	expected, delivered              int
	doubled, outOfOrder, misdirected int
	p99, longest                     time.Duration // endless if too many were lost
	took                             time.Duration
	last                             time.Time     // delivery
	cpu                              time.Duration // of the gateways
	engines                          time.Duration // CPU of Redis and NATS
}

// endless is the latency of lost messages.
const endless = time.Duration(math.MaxInt64)

func (o outcome) lost() int { return o.expected - o.delivered }

// faults counts all that a delivery must not be.
func (o outcome) faults() int { return o.lost() + o.doubled + o.outOfOrder + o.misdirected }

// rate returns deliveries per second.
func (o outcome) rate() float64 { return float64(o.delivered) / o.took.Seconds() }

// outcome returns what arrived from one time until another, of a number of expected messages. Faults are those of the
// whole trial.
func (t *trial) outcome(from, until time.Time, expected int) outcome {
	o := outcome{expected: expected, took: until.Sub(from)}
	waits := make([]time.Duration, 0, expected)
	for _, c := range t.tallies {
		c.mu.Lock()
		o.doubled += c.doubled
		o.outOfOrder += c.outOfOrder
		o.misdirected += c.misdirected
		for _, d := range c.deliveries {
			if !d.at.Before(from) && !d.at.After(until) {
				waits = append(waits, d.wait)
				if d.at.After(o.last) {
					o.last = d.at
				}
			}
		}
		c.mu.Unlock()
	}
	o.delivered = len(waits)
	slices.Sort(waits)
	for len(waits) < expected {
		waits = append(waits, endless)
	}
	o.p99 = quantile(waits, 0.99)
	o.longest = quantile(waits, 1)
	return o
}
