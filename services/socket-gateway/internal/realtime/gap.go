package realtime

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/socketio"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/services/socket-gateway/internal/metadata"
)

const (
	// gapMargin is how much longer a message may have been on its way when the connection was last known to be good.
	gapMargin = 3 * time.Second
	// gapNotice is how long a dead connection may go unnoticed, at the very most.
	gapNotice = 20 * time.Second
	gapPause  = 200 * time.Millisecond
	gapRead   = 30 * time.Second
)

// Gap replays to the rooms here the replies that were published while the subscriptions at Redis were lost. Deliveries are held back from
// the loss until the missing ones have been read from the log.
type Gap struct {
	rooms  *Rooms
	log    *Log
	floors *Floors
	logger *slog.Logger

	wake chan struct{} // holds at most one

	mu    sync.Mutex
	open  bool     // something is missing
	first bool     // and that since the last loss
	lost  bool     // the subscriptions are not back yet
	from  []uint64 // by partition: everything up to here has arrived
}

// NewGap returns a gap that is closed by Run.
func NewGap(rooms *Rooms, log *Log, floors *Floors, logger *slog.Logger) *Gap {
	return &Gap{rooms: rooms, log: log, floors: floors, logger: logger, wake: make(chan struct{}, 1)}
}

// Lost is called when the subscriptions are lost, before they are made again.
func (g *Gap) Lost() {
	from, _ := g.floors.At(time.Now().Add(-gapNotice))
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.first = !g.open; g.first {
		g.from = from
	}
	g.open, g.lost = true, true
	g.rooms.Hold()
}

// Back is called when all subscriptions are there again; since is when the connection was last known to be good.
func (g *Gap) Back(since time.Time) {
	g.mu.Lock()
	if from, ok := g.floors.At(since.Add(-gapMargin)); ok && g.first {
		g.from = highest(g.from, from)
	}
	g.first, g.lost = false, false
	g.mu.Unlock()
	select {
	case g.wake <- struct{}{}:
	default:
	}
}

// Run closes gaps until ctx is done.
func (g *Gap) Run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.wake:
			g.close(ctx)
		}
	}
}

// close replays until nothing is missing, or the subscriptions are lost again; then Back calls it again.
func (g *Gap) close(ctx context.Context) {
	losses := g.rooms.Losses()
	g.mu.Lock()
	reached, lost := g.from, g.lost
	g.mu.Unlock()
	if lost {
		return
	}
	began, count := time.Now(), 0
	for ctx.Err() == nil && g.rooms.Losses() == losses {
		n, last, upTo, err := g.replay(ctx, reached)
		reached, count = last, count+n
		if err != nil {
			if ctx.Err() == nil {
				g.logger.WarnContext(ctx, "replies that were missed without Redis cannot be read, trying again", "error", err)
			}
			pause(ctx, gapPause)
			continue
		}
		if g.finish(upTo, losses) {
			g.logger.InfoContext(ctx, "delivered what was missed without Redis", "deliveries", count, "after", time.Since(began).String())
			return
		}
	}
}

func (g *Gap) finish(reached uint64, losses int) bool {
	if !g.rooms.Release(reached, losses) {
		return false
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open = g.lost // lost again since: that is another gap, which has begun with what is known now
	return true
}

// replay reads each partition from a position to its end. It returns the position reached in each, also on failure, and up to
// which sequence nothing is missing any more.
func (g *Gap) replay(ctx context.Context, after []uint64) (deliveries int, last []uint64, upTo uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, gapRead)
	defer cancel()
	state, err := g.log.State(ctx)
	if err != nil {
		return 0, after, 0, err
	}
	partitions, err := g.log.bus.Partitions(ctx, subject.Replies)
	if err != nil {
		return 0, after, 0, err
	}
	last = highest(after, make([]uint64, partitions))
	for p := range partitions {
		filter := subject.Reply("*", "*")
		if partitions > 1 {
			filter = subject.InPartition(filter, p)
		}
		n, err := g.replayPartition(ctx, filter, &last[p], state.Replicas > 1)
		deliveries += n
		if err != nil {
			return deliveries, last, 0, err
		}
	}
	return deliveries, last, state.Last, nil
}

// replayPartition reads until the end, and where replicas answer until what the stream's leader has.
func (g *Gap) replayPartition(ctx context.Context, filter string, last *uint64, replicated bool) (deliveries int, err error) {
	for {
		err := g.log.read(ctx, filter, *last, func(d bus.Delivery) error {
			*last = d.Sequence
			deliveries += g.deliver(d)
			return nil
		})
		if err != nil || !replicated {
			return deliveries, err
		}
		end, err := g.log.lastOf(ctx, filter)
		if err != nil || end <= *last {
			return deliveries, err
		}
		pause(ctx, replicaPause)
	}
}

func (g *Gap) deliver(d bus.Delivery) int {
	appID, chatUserID, ok := subject.ParseReply(d.Subject)
	room := Room(appID, chatUserID)
	if !ok || emitted(d) || !g.rooms.Wants(room, d.Sequence) {
		return 0
	}
	reply, err := event.Decode[event.Reply](d.Subject, d.Data)
	if err != nil {
		return 0 // the consumer makes it a dead letter
	}
	b := &socketio.Broadcast{Selection: socketio.Selection{Rooms: []string{room}}, Data: encodeReply(&reply, d.Sequence, len(d.Data))}
	metadata.Metadata{Offset: d.Sequence, Receipt: receiptOf(&reply)}.Put(b)
	return g.rooms.Replay(b)
}

// pause waits, but not beyond the end of ctx.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
