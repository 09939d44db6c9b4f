package bus

// One partition of a group with offsets: the wait until it is free, its handlers, and its saved offset. The
// group (consume_group.go) starts and stops the readers; consume_offsets.go feeds them.

import (
	"context"
	"sync"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
)

// offsetReader reads one partition of a group with offsets. It lives as long as the partition is assigned to
// this replica and its handlers run; run is its whole life.
type offsetReader struct {
	*partition
	all      *offsetConsumer
	received uint64 // everything up to this sequence has arrived; guarded by all.mu

	writing   sync.Mutex // serialises writes; guards written and writtenAt; locked before all.mu
	written   uint64     // last offset saved to POSITIONS
	writtenAt time.Time
}

func newOffsetReader(all *offsetConsumer, d durable, cancel context.CancelFunc) *offsetReader {
	r := &offsetReader{all: all}
	ledger := newLedger(all.group.cfg.MaxAckPending, func(string, string) {}) // no acknowledgements
	r.partition = newPartition(all.group.handlerCtx, all.group, d, ledger, cancel)
	return r
}

// run reads a partition until ctx is done. It returns after the running handlers have ended and the offset is
// saved.
func (r *offsetReader) run(ctx context.Context) {
	acquired := r.acquire(ctx)
	if acquired {
		r.all.add(r)
		<-ctx.Done()
		r.all.remove(r)
	}
	r.stopping.Store(true)
	left := r.group.queue.release(r.partition)
	r.awaitHandlers()
	if acquired {
		write, cancel := context.WithTimeout(context.WithoutCancel(ctx), releaseLimit)
		defer cancel()
		_ = r.saveOffset(write, 0) // if it fails, the next reader handles the events again
	}
	for _, t := range append(left, r.unfinished...) {
		r.group.removeHeld(t)
	}
}

// acquire waits until no other replica runs handlers in the partition, then loads the offset to start from.
// It reports false if ctx ended first.
func (r *offsetReader) acquire(ctx context.Context) bool {
	g := r.group
	for wait := minSessionWait; ctx.Err() == nil; wait = min(2*wait, maxSessionWait) {
		for g.members.finishing(r.durable.name) && ctx.Err() == nil {
			select {
			case <-ctx.Done():
			case <-r.membersChanged:
			case <-time.After(memberDiscovery):
			}
		}
		err := r.loadOffset(ctx)
		if err == nil {
			return true
		}
		if apperr.Is(err, apperr.NotFound) {
			g.bus.streams.check()
		}
		pauseUntil(ctx, wait, g.bus.connUp.wait())
	}
	return false
}

// loadOffset loads the saved offset. If there is none of this epoch, it saves the one that follows from the last lost
// tail, or 0, so that the partition is known to be read.
func (r *offsetReader) loadOffset(ctx context.Context) error {
	g := r.group
	state, err := r.all.fetchState(ctx)
	if err != nil {
		return err
	}
	saved, err := g.bus.offset(ctx, g.cfg.Stream, g.cfg.Durable, r.durable.number)
	switch {
	case apperr.Is(err, apperr.NotFound):
		return r.write(ctx, 0)
	case err != nil:
		return err
	case !saved.Stream.Equal(state.Epoch):
		r.received = state.Lost.offset(saved)
		return r.write(ctx, r.received)
	}
	r.writing.Lock()
	defer r.writing.Unlock()
	r.written = saved.Sequence
	r.received = min(saved.Sequence, state.Last)
	return nil
}

// offset returns the sequence up to which everything of the partition has been handled.
func (r *offsetReader) offset() uint64 {
	r.all.mu.Lock()
	arrived := r.all.arrived(r) // read before lowest: later deliveries have higher sequences
	r.all.mu.Unlock()
	if lowest, ok := r.ledger.lowest(); ok {
		return min(arrived, lowest-1)
	}
	return arrived
}

// saveOffset saves the offset if it has changed. If the partition had no deliveries since the last save,
// it saves only when that save is older than idle.
func (r *offsetReader) saveOffset(ctx context.Context, idle time.Duration) error {
	r.writing.Lock()
	defer r.writing.Unlock()
	offset := r.offset()
	r.all.mu.Lock()
	busy := r.received > r.written
	r.all.mu.Unlock()
	if offset == r.written || !busy && time.Since(r.writtenAt) < idle {
		return nil
	}
	return r.writeLocked(ctx, offset)
}

// write saves an offset.
func (r *offsetReader) write(ctx context.Context, sequence uint64) error {
	r.writing.Lock()
	defer r.writing.Unlock()
	return r.writeLocked(ctx, sequence)
}

// writeLocked saves an offset. Callers must hold writing.
func (r *offsetReader) writeLocked(ctx context.Context, sequence uint64) error {
	r.all.mu.Lock()
	epoch := r.all.epoch
	r.all.mu.Unlock()
	g := r.group
	err := g.bus.writeOffset(
		ctx, g.cfg.Stream, g.cfg.Durable, r.durable.number, Offset{Sequence: sequence, Stream: epoch},
	)
	if err == nil {
		r.written = sequence
		r.writtenAt = time.Now()
	}
	return err
}
