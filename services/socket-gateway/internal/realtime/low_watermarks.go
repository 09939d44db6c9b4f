package realtime

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/parley-chat/parley/proto-events/subject"
)

const (
	watermarkPoll = 500 * time.Millisecond
	// firstWatermarkPoll is the interval until the consumers exist.
	firstWatermarkPoll = 20 * time.Millisecond
	// samplesKept is the length of the history: at least the last minute.
	samplesKept = 120
)

// lowWatermarks tracks the low watermark of each partition, a lower bound of the delivery progress: every
// reply of the partition up to that stream sequence has been published to all gateways. Later replies may
// have been published as well.
//
// authenticator reads the watermark at which a room opens and a session starts; outageReplay reads the
// watermarks of the time at which an outage began.
type lowWatermarks struct {
	replies    *replyStream
	onNewEpoch func() // called when the stream was recreated: its sequences restart

	known chan struct{} // closed by the first successful poll

	mu      sync.Mutex // guards the fields below
	current []uint64   // by partition
	epoch   time.Time  // of the stream; see [bus.StreamState]
	past    []sample   // oldest first; consecutive samples differ
}

// sample holds the low watermarks of all partitions at a time. Its slice is never changed.
type sample struct {
	at         time.Time
	watermarks []uint64
}

// newLowWatermarks returns low watermarks, which are unknown until run has polled them. onNewEpoch is called
// when the stream was recreated.
func newLowWatermarks(replies *replyStream, onNewEpoch func()) *lowWatermarks {
	return &lowWatermarks{replies: replies, onNewEpoch: onNewEpoch, known: make(chan struct{})}
}

// run polls until ctx is done.
func (l *lowWatermarks) run(ctx context.Context) {
	wait := firstWatermarkPoll
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if l.poll(ctx) {
			wait = watermarkPoll
		}
		timer.Reset(wait)
	}
}

// poll fetches the watermarks once. If NATS is not connected, the known watermarks stay valid.
func (l *lowWatermarks) poll(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	// The sample gets the time before the request: what the watermarks cover was published by then or later.
	at := time.Now()
	state, err := l.replies.state(ctx)
	if err != nil {
		return false
	}
	watermarks, err := l.replies.lowWatermarks(ctx, state.Epoch)
	if err != nil {
		return false
	}
	for p := range watermarks {
		watermarks[p] = max(watermarks[p], state.First-1)
	}
	changed := l.record(at, watermarks, state.Epoch)
	if changed {
		l.onNewEpoch()
	}
	return true
}

// record stores new watermarks. It never lowers one, even if lost offsets make the consumer restart at the
// beginning of the stream, unless the stream was recreated; in that case it returns true.
func (l *lowWatermarks) record(at time.Time, watermarks []uint64, epoch time.Time) (changed bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	first := l.epoch.IsZero()
	changed = !first && !l.epoch.Equal(epoch)
	if changed {
		l.current = nil
		l.past = nil
	}
	l.epoch = epoch
	watermarks = highest(l.current, watermarks)
	n := len(l.past)
	if n == 0 || !slices.Equal(l.current, watermarks) {
		oldest := max(0, n+1-samplesKept)
		l.past = append(l.past[oldest:], sample{at, watermarks})
	}
	l.current = watermarks
	if first {
		close(l.known)
	}
	return changed
}

// of returns the low watermark of a visitor's partition, selected by the visitor's subject, and the epoch of
// the stream. It waits for the first poll.
func (l *lowWatermarks) of(ctx context.Context, subj string) (watermark uint64, epoch time.Time, err error) {
	select {
	case <-l.known:
	case <-ctx.Done():
		return 0, time.Time{}, ctx.Err()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	partition := subject.Partition(subj, len(l.current))
	return watermarkOf(l.current, partition), l.epoch, nil
}

// at returns the low watermarks at time t, by partition. If the history does not reach back to t, it returns
// the oldest ones and false.
func (l *lowWatermarks) at(t time.Time) (watermarks []uint64, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := len(l.past) - 1; i >= 0; i-- {
		watermarks = l.past[i].watermarks
		if !l.past[i].at.After(t) {
			return watermarks, true
		}
	}
	return watermarks, false
}

// highest returns the maximum for each partition. The number of partitions may have grown between a and b.
func highest(a, b []uint64) []uint64 {
	result := make([]uint64, max(len(a), len(b)))
	for p := range result {
		result[p] = max(watermarkOf(a, p), watermarkOf(b, p))
	}
	return result
}

// watermarkOf returns the low watermark of a partition; 0 if it has none.
func watermarkOf(watermarks []uint64, partition int) uint64 {
	if partition < len(watermarks) {
		return watermarks[partition]
	}
	return 0
}
