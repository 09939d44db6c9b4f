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
	// firstClockTries and clockTries bound the requests of the measurement before the bus is ready, and of each later
	// one, which continues it. They end with an error below goodClock: an answer of the bot takes longer.
	firstClockTries = 20
	clockTries      = 5
	goodClock       = 500 * time.Microsecond
)

// clock estimates the clock of the server that leads REPLIES. It continues by the monotonic clock of this process, which
// no one sets.
type clock struct {
	now func() time.Time // of this machine

	mu   sync.Mutex
	base time.Time // of this machine, with a monotonic reading; zero: not measured yet
	// The server's clock at base is between earliest and latest: that is what all answers have in common. One tells by a
	// fast way there, another by a fast way back.
	earliest, latest time.Time
}

// Now returns the time by the clock of the stream REPLIES, so that times of all processes are comparable with those of
// stored replies, whatever the machines' clocks say. The error is at most half of the fastest round trip to NATS; what
// follows from something takes longer. Before NATS has answered, and if the bus does not use REPLIES, it is the time of
// this machine.
func (b *Bus) Now() time.Time { return b.clock.read() }

func (c *clock) read() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	now := c.now()
	if c.base.IsZero() {
		return now.UTC()
	}
	middle := c.earliest.Add(c.latest.Sub(c.earliest) / 2)
	return middle.Add(now.Sub(c.base))
}

// learn takes an answer of the server into account: its clock was at there between two moments of this process. It
// reports whether the estimate is good.
func (c *clock) learn(sent, received, there time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	earliest, latest := there, there.Add(received.Sub(sent))
	if !c.base.IsZero() {
		elapsed := received.Sub(c.base)
		drift := time.Duration(elapsed.Seconds() * float64(clockDrift))
		earliest = later(earliest, c.earliest.Add(elapsed-drift))
		latest = earlier(latest, c.latest.Add(elapsed+drift))
	}
	if latest.Before(earliest) { // another leader has another clock, and an operator may set one
		earliest, latest = there, there.Add(received.Sub(sent))
	}
	c.base, c.earliest, c.latest = received, earliest, latest
	return latest.Sub(earliest)/2 <= goodClock
}

// measureClock asks the leader of REPLIES for its time, up to a number of times.
func (b *Bus) measureClock(ctx context.Context, tries int) error {
	for range tries {
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

func (b *Bus) refreshClock(ctx context.Context) error { return b.measureClock(ctx, clockTries) }
