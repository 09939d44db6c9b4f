package realtime

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/services/socket-gateway/internal/metadata"
)

// Replay for this gateway: redis.go of the service reports the loss and the return of the Redis subscriptions,
// and outageReplay reads what was published in between from the stream. For the replay to a client see recover.go.

const (
	// outageMargin allows for messages in flight when the connection was last known to work.
	outageMargin = 3 * time.Second
	// detectionTime is an upper bound of the time until a dead connection is detected.
	detectionTime = 20 * time.Second
	outageRetry   = 200 * time.Millisecond
	outageRead    = 30 * time.Second
)

// outageReplay replays into local rooms the replies that were published while the Redis subscriptions were
// lost. From the loss until the missing replies have been read from the stream, the rooms are paused.
//
// An outage begins with subscriptionsLost and ends in finish, when the stream was replayed to its end. Several
// losses may belong to one outage.
type outageReplay struct {
	rooms      *rooms
	replies    *replyStream
	watermarks *lowWatermarks
	logger     *slog.Logger

	wake chan struct{} // holds at most one

	mu    sync.Mutex // guards the fields below; rooms.mu may be locked under it
	open  bool       // replies may be missing
	first bool       // the last loss began the outage
	lost  bool       // subscriptions not restored yet
	from  []uint64   // by partition: all replies up to here have been received
}

// newOutageReplay returns an outage replay. run does the replays.
func newOutageReplay(rooms *rooms, replies *replyStream, watermarks *lowWatermarks, logger *slog.Logger) *outageReplay {
	return &outageReplay{
		rooms:      rooms,
		replies:    replies,
		watermarks: watermarks,
		logger:     logger,
		wake:       make(chan struct{}, 1),
	}
}

// subscriptionsLost must be called when subscriptions are lost, before they are restored.
func (o *outageReplay) subscriptionsLost() {
	from, _ := o.watermarks.at(time.Now().Add(-detectionTime))
	o.mu.Lock()
	defer o.mu.Unlock()
	o.first = !o.open
	if o.first {
		o.from = from
	}
	o.open = true
	o.lost = true
	o.rooms.pause()
}

// subscriptionsRestored must be called when all subscriptions are restored; since is the time at which the
// connection was last known to work.
func (o *outageReplay) subscriptionsRestored(since time.Time) {
	o.mu.Lock()
	from, ok := o.watermarks.at(since.Add(-outageMargin))
	if ok && o.first {
		o.from = highest(o.from, from) // less to read than from the detection
	}
	o.first = false
	o.lost = false
	o.mu.Unlock()
	select {
	case o.wake <- struct{}{}:
	default: // run is woken already
	}
}

// run replays after each loss until ctx is done.
func (o *outageReplay) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-o.wake:
			o.catchUp(ctx)
		}
	}
}

// catchUp replays until no reply is missing or the subscriptions are lost again; in that case the next
// subscriptionsRestored triggers it again.
func (o *outageReplay) catchUp(ctx context.Context) {
	pauses := o.rooms.pauses()
	o.mu.Lock()
	reached := o.from
	lost := o.lost
	o.mu.Unlock()
	if lost {
		return
	}
	began := time.Now()
	count := 0
	// What was replayed stays replayed: after an error, the next turn reads on from there.
	for ctx.Err() == nil && o.rooms.pauses() == pauses {
		n, last, upTo, err := o.replay(ctx, reached)
		reached = last
		count += n
		if err != nil {
			if ctx.Err() == nil {
				const text = "reading replies missed while Redis was unavailable failed, retrying"
				o.logger.WarnContext(ctx, text, "error", err)
			}
			sleep(ctx, outageRetry)
			continue
		}
		if o.finish(upTo, pauses) {
			o.logger.InfoContext(ctx, "delivered replies missed while Redis was unavailable",
				"deliveries", count, "after", time.Since(began).String())
			return
		}
	}
}

// finish resumes the rooms and ends the outage. It returns false if the stream must be read again.
func (o *outageReplay) finish(reached uint64, pauses int) bool {
	if !o.rooms.resume(reached, pauses) {
		return false
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.open = o.lost // if lost again meanwhile, the outage stays open with the watermarks of that loss
	return true
}

// replay reads each partition from an offset to its end. It returns the offset reached in each partition, also
// on error, and upTo, the sequence up to which no reply is missing.
func (o *outageReplay) replay(
	ctx context.Context,
	after []uint64,
) (deliveries int, last []uint64, upTo uint64, err error) {
	ctx, cancel := context.WithTimeout(ctx, outageRead)
	defer cancel()
	state, err := o.replies.state(ctx)
	if err != nil {
		return 0, after, 0, err
	}
	partitions, err := o.replies.bus.Partitions(ctx, subject.Replies)
	if err != nil {
		return 0, after, 0, err
	}
	last = highest(after, make([]uint64, partitions))
	for p := range partitions {
		filter := subject.Reply("*", "*")
		if partitions > 1 {
			filter = subject.InPartition(filter, p)
		}
		n, err := o.replayPartition(ctx, filter, &last[p], state.Replicas > 1)
		deliveries += n
		if err != nil {
			return deliveries, last, 0, err
		}
	}
	return deliveries, last, state.Last, nil
}

// replayPartition reads a partition to its end; on a replicated stream to the last sequence of the leader,
// since replicas may lag.
func (o *outageReplay) replayPartition(
	ctx context.Context,
	filter string,
	last *uint64,
	replicated bool,
) (deliveries int, err error) {
	for {
		err := o.replies.read(ctx, filter, *last, func(d bus.Delivery) error {
			*last = d.Sequence
			deliveries += o.replayReply(d)
			return nil
		})
		if err != nil || !replicated {
			return deliveries, err
		}
		end, err := o.replies.lastOf(ctx, filter)
		if err != nil || end <= *last {
			return deliveries, err
		}
		sleep(ctx, replicaPause)
	}
}

// replayReply emits a reply from the stream to its room and returns the number of sockets. It decodes only what a
// local socket lacks: the stream has the replies of all visitors.
func (o *outageReplay) replayReply(d bus.Delivery) int {
	appID, chatUserID, ok := subject.ParseReply(d.Subject)
	room := Room(appID, chatUserID)
	if !ok || publishedBefore(d) || !o.rooms.wants(room, d.Sequence) {
		return 0
	}
	reply, err := event.DecodeReply(d.Subject, d.Data, d.Time)
	if err != nil {
		return 0 // malformed: the consumer makes it a dead letter
	}
	b := toRoom(room, encodeReply(&reply, d.Place(), len(d.Data)))
	m := metadata.Metadata{Offset: d.Sequence, Receipt: receiptOf(&reply)}
	m.Put(b)
	return o.rooms.replay(b)
}

// sleep waits for d or until ctx is done.
func sleep(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	}
}
