package bus

// The clock of the stream REPLIES, by which messages enter their chats, read from any process.

import (
	"context"
	"sync"
	"time"

	"github.com/parley-chat/parley/proto-events/subject"
)

const (
	// clockDrift bounds how fast two clocks part: quartz keeps within 100 parts in a million.
	clockDrift = 200 * time.Microsecond // a second
	// clockTries and goodClock bound the requests of one measurement.
	clockTries = 5
	goodClock  = time.Millisecond
)

// clock estimates the clock of the server that leads REPLIES. It continues by the monotonic clock of this process, which
// no one sets.
type clock struct {
	now func() time.Time // of this machine

	mu     sync.Mutex
	base   time.Time     // of this machine, with a monotonic reading; zero: not measured yet
	there  time.Time     // the server's clock at base
	margin time.Duration // the error of there, at most
}

// Now returns the time by the clock of the stream REPLIES, so that times of all processes are comparable with those of
// stored replies, whatever the machines' clocks say. The error is at most half of a round trip to NATS; what follows
// from something takes longer. Before NATS has answered, and if the bus does not use REPLIES, it is the time of this
// machine.
func (b *Bus) Now() time.Time { return b.clock.read() }

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if c.base.IsZero() {
		return now.UTC()
	}
	return c.there.Add(now.Sub(c.base))
}

// learn takes an answer of the server into account: its clock was at there between two moments of this process. It
// reports whether the estimate is good.
func (c *clock) learn(sent, received, there time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	half := received.Sub(sent) / 2
	middle := sent.Add(half)
	expected := c.there.Add(middle.Sub(c.base))
	known := c.margin + time.Duration(middle.Sub(c.base).Seconds()*float64(clockDrift))
	// Another leader has another clock, and an operator may set one.
	contradicts := there.Sub(expected).Abs() > known+half
	if c.base.IsZero() || half <= known || contradicts {
		c.base, c.there, c.margin = middle, there, half
	}
	return c.margin <= goodClock
}

// measureClock asks the leader of REPLIES for its time.
func (b *Bus) measureClock(ctx context.Context) error {
	for range clockTries {
		sent := b.clock.now()
		s, err := b.js.Stream(ctx, subject.Replies)
		if err != nil {
			return err
		}
		if b.clock.learn(sent, b.clock.now(), s.CachedInfo().TimeStamp) {
			return nil
		}
	}
	return nil
}
