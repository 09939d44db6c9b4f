package processor

// What the stream of replies has for a visitor, for the bot.

import (
	"context"
	"iter"
	"slices"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/proto-events/subject"
)

const (
	// keptReadings is the number of visitors whose last reading is kept, keptReplies that of the replies in one. A
	// reading of keptReplies has about 12 KiB, most have a few replies.
	keptReadings = 4096
	keptReplies  = 256
)

// replies reads the stream of replies for the bot. To find those to one visitor NATS goes through the replies to all,
// and meanwhile serves nothing else on this connection. The later questions of a visitor with many, which wait long,
// would each go through the same replies again: a reading goes on where the one before ended. A process without a
// recorder has no mark of the stream, by which it would notice that sequences begin again, and reads all each time.
type replies struct {
	bus   *bus.Bus
	known *lru.Cache[string, reading] // by the subject of the visitor's replies
}

// reading is which replies to a visitor the stream has. It is not changed.
type reading struct {
	since   time.Time // begins with what was stored at that time
	through uint64    // ends with the reply of that sequence; 0: there is none
	epoch   time.Time // of the sequence; see [bus.StreamState]
	ids     []string  // of these replies
}

func newReplies(b *bus.Bus) replies {
	known, _ := lru.New[string, reading](keptReadings) // fails only for a size of zero
	return replies{b, known}
}

// Published implements [bot.ReplyLog].
func (r replies) Published(ctx context.Context, appID, chatUserID, id string, since time.Time) (bool, error) {
	visitor := subject.Reply(appID, chatUserID)
	mark, compared := r.bus.Mark(subject.Replies) // its epoch is that of the sequences now
	read, found := r.known.Get(visitor)
	if !found || !compared || mark.Epoch != read.epoch || since.Before(read.since) {
		read = reading{since: since, epoch: mark.Epoch}
	}
	read.ids = slices.Clip(read.ids) // another question of the visitor may read at the same time
	for d, err := range r.unread(ctx, visitor, read) {
		if err != nil {
			return false, err
		}
		read.ids = append(read.ids, d.EventID())
		read.through = d.Sequence
	}
	switch {
	case len(read.ids) > keptReplies:
		r.known.Remove(visitor) // the next one begins later
	case compared && read.through > 0:
		r.known.Add(visitor, read)
	}
	return slices.Contains(read.ids, id), nil
}

// unread yields the replies to a visitor that a reading does not have.
func (r replies) unread(ctx context.Context, visitor string, read reading) iter.Seq2[bus.Delivery, error] {
	if read.through == 0 {
		return r.bus.Since(ctx, subject.Replies, visitor, read.since)
	}
	stored, err := r.bus.Stored(ctx, subject.Replies, visitor)
	if err != nil {
		return func(yield func(bus.Delivery, error) bool) { yield(bus.Delivery{}, err) }
	}
	return r.bus.After(ctx, subject.Replies, stored, read.through)
}
