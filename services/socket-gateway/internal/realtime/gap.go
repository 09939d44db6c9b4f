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
	// gapMargin allows for messages in flight when the connection was last known to work.
	gapMargin = 3 * time.Second
	// gapNotice is an upper bound of the time until a dead connection is detected.
	gapNotice = 20 * time.Second
	gapPause  = 200 * time.Millisecond
	gapRead   = 30 * time.Second
)

// Gap replays into local rooms the replies that were published while the Redis subscriptions were lost. From
// the loss until the missing replies have been read from the log, live deliveries are held back.
type Gap struct {
	rooms  *Rooms
	log    *Log
	floors *Floors
	logger *slog.Logger

	wake chan struct{} // holds at most one

	mu    sync.Mutex
	open  bool     // replies may be missing
	first bool     // the last loss opened the gap
	lost  bool     // subscriptions not restored yet
	from  []uint64 // by partition: all replies up to here have arrived
}

// NewGap returns a Gap. Run does the replays.
func NewGap(rooms *Rooms, log *Log, floors *Floors, logger *slog.Logger) *Gap {
	return &Gap{rooms: rooms, log: log, floors: floors, logger: logger, wake: make(chan struct{}, 1)}
}

// Lost must be called when subscriptions are lost, before they are restored.
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

// Back must be called when all subscriptions are restored; since is the time at which the connection was last
// known to work.
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

// Run replays after each loss until ctx is done.
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

// close replays until no reply is missing or the subscriptions are lost again; in that case the next Back
// triggers it again.
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
				g.logger.WarnContext(ctx, "reading replies missed while Redis was unavailable failed, retrying", "error", err)
			}
			pause(ctx, gapPause)
			continue
		}
		if g.finish(upTo, losses) {
			g.logger.InfoContext(
				ctx, "delivered replies missed while Redis was unavailable", "deliveries", count, "after",
				time.Since(began).String(),
			)
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
	g.open = g.lost // if lost again meanwhile, the gap stays open with the positions of that loss
	return true
}

// replay reads each partition from a position to its end. It returns the position reached in each partition,
// also on error, and upTo, the sequence up to which no reply is missing.
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

// replayPartition reads a partition to its end; on a replicated stream to the last sequence of the leader,
// since replicas may lag.
func (g *Gap) replayPartition(
	ctx context.Context,
	filter string,
	last *uint64,
	replicated bool,
) (deliveries int, err error) {
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
		return 0 // malformed: the consumer makes it a dead letter
	}
	b := &socketio.Broadcast{
		Selection: socketio.Selection{Rooms: []string{room}},
		Data:      encodeReply(&reply, d.Sequence, len(d.Data)),
	}
	metadata.Metadata{Offset: d.Sequence, Receipt: receiptOf(&reply)}.Put(b)
	return g.rooms.Replay(b)
}

// pause waits for d or until ctx is done.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
