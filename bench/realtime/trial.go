package main

import (
	"context"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/parley-chat/parley/bench/internal/rig"
)

// trial is the tally of one load of replies. The pool's loop writes it; others may read it after the loop has released
// it, and delivered at any time.
type trial struct {
	id        int
	perRoom   int // the highest sequence of a room
	began     time.Time
	seen      []sequence // of each client
	latencies []uint32   // microseconds
	last      time.Time
	delivered atomic.Int64 // each reply counted once per client

	doubled    int
	disordered int // delivered after a later one of the same room
	astray     int // of another room, or not one of our replies
}

// sequence is the set of replies that one client has received.
type sequence struct {
	highest int
	got     []uint64 // one bit per sequence number
}

// newTrial returns a trial for clients that receive at most perRoom replies each.
func newTrial(id, clients, perRoom, expected int, epoch time.Time) *trial {
	words := perRoom/64 + 1
	all := make([]uint64, clients*words)
	t := &trial{
		id:        id,
		perRoom:   perRoom,
		began:     epoch,
		seen:      make([]sequence, clients),
		latencies: make([]uint32, 0, expected),
	}
	for i := range t.seen {
		t.seen[i].got = all[i*words : (i+1)*words]
	}
	return t
}

// note counts one delivery.
func (t *trial) note(c *client, packet []byte) {
	m, ok := parseMark(packet)
	if ok && m.trial != t.id {
		return // a straggler of an earlier trial, already counted as lost
	}
	if !ok || m.room != c.room || m.sequence < 1 || m.sequence > t.perRoom || c.index >= len(t.seen) {
		t.astray++
		return
	}
	s := &t.seen[c.index]
	word, bit := m.sequence/64, uint64(1)<<(m.sequence%64)
	if s.got[word]&bit != 0 {
		t.doubled++
		return
	}
	s.got[word] |= bit
	if m.sequence < s.highest {
		t.disordered++
	} else {
		s.highest = m.sequence
	}
	t.last = time.Now()
	latency := t.last.Sub(t.began) - m.planned
	t.latencies = append(t.latencies, uint32(min(max(latency.Microseconds(), 0), math.MaxUint32)))
	t.delivered.Add(1)
}

// outcome is the result of a trial.
type outcome struct {
	expected, delivered         int
	doubled, disordered, astray int
	p50, p99                    time.Duration // infinite if too many were lost
	took                        time.Duration // from the first publication to the last delivery
	cpu                         time.Duration // of the gateways
	engines                     time.Duration // CPU of Redis and NATS
	refused                     int           // publications that JetStream did not accept
}

func (o outcome) lost() int { return o.expected - o.delivered }

// cpuPerThousand returns CPU seconds of the gateways per 1,000 deliveries.
func (o outcome) cpuPerThousand() float64 { return o.perThousand(o.cpu) }

// enginesPerThousand returns CPU seconds of Redis and NATS per 1,000 deliveries.
func (o outcome) enginesPerThousand() float64 { return o.perThousand(o.engines) }

func (o outcome) perThousand(cpu time.Duration) float64 {
	if o.delivered == 0 {
		return math.NaN()
	}
	return cpu.Seconds() * 1000 / float64(o.delivered)
}

// rate returns deliveries per second.
func (o outcome) rate() float64 { return float64(o.delivered) / o.took.Seconds() }

// endless is the latency of lost replies.
const endless = time.Duration(math.MaxInt64)

func (t *trial) outcome(expected int, start time.Time) outcome {
	slices.Sort(t.latencies)
	return outcome{
		expected:   expected,
		delivered:  len(t.latencies),
		doubled:    t.doubled,
		disordered: t.disordered,
		astray:     t.astray,
		p50:        t.latency(0.50, expected),
		p99:        t.latency(0.99, expected),
		took:       t.last.Sub(start),
	}
}

func (t *trial) latency(q float64, expected int) time.Duration {
	if q*float64(expected) >= float64(len(t.latencies)) {
		return endless
	}
	share := q * float64(expected) / float64(len(t.latencies))
	return time.Duration(rig.Quantile(t.latencies, share)) * time.Microsecond
}

// await returns when all expected deliveries have arrived, and a moment later for duplicates, or after patience without
// a delivery.
func (t *trial) await(ctx context.Context, expected int, patience time.Duration) error {
	progress, at := int64(-1), time.Now()
	for {
		n := t.delivered.Load()
		if n != progress {
			progress, at = n, time.Now()
		}
		if wait := time.Since(at); wait > patience || n >= int64(expected) && wait > 200*time.Millisecond {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}
