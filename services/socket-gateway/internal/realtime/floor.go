package realtime

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/parley-chat/parley/proto-events/subject"
)

const (
	floorPoll = 500 * time.Millisecond
	// floorsKept is the length of the history: at least the last minute.
	floorsKept = 120
)

// Floors tracks the floor of each partition, a lower bound of the delivery progress: every reply of the
// partition up to that stream sequence has been published to all gateways. Later replies may have been
// published as well.
type Floors struct {
	log     *Log
	renewed func() // called when the stream was recreated: its sequences restart

	known chan struct{} // closed by the first successful poll

	mu      sync.Mutex
	floors  []uint64  // by partition
	created time.Time // of the stream
	past    []position
}

type position struct {
	at     time.Time
	floors []uint64
}

// NewFloors returns floors, which are unknown until Run has polled them. renewed is called when the stream
// was recreated.
func NewFloors(log *Log, renewed func()) *Floors {
	return &Floors{log: log, renewed: renewed, known: make(chan struct{})}
}

// Run polls until ctx is done.
func (f *Floors) Run(ctx context.Context) {
	wait := 20 * time.Millisecond // until the consumers exist
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if f.poll(ctx) {
			wait = floorPoll
		}
		timer.Reset(wait)
	}
}

// poll fetches the floors once. If NATS is not connected, the known floors stay valid.
func (f *Floors) poll(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	at := time.Now()
	state, err := f.log.State(ctx)
	if err != nil {
		return false
	}
	floors, err := f.log.Floors(ctx, state.Created)
	if err != nil {
		return false
	}
	for p := range floors {
		floors[p] = max(floors[p], state.First-1)
	}
	if f.record(at, floors, state.Created) {
		f.renewed()
	}
	return true
}

// record stores new floors. It never lowers a floor, even if lost positions make the consumer restart at the
// beginning of the stream, unless the stream was recreated; in that case it returns true.
func (f *Floors) record(at time.Time, floors []uint64, created time.Time) (renewed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	first := f.created.IsZero()
	renewed = !first && !f.created.Equal(created)
	if renewed {
		f.floors, f.past = nil, nil
	}
	f.created = created
	floors = highest(f.floors, floors)
	if n := len(f.past); n == 0 || !slices.Equal(f.floors, floors) {
		f.past = append(f.past[max(0, n+1-floorsKept):], position{at, floors})
	}
	f.floors = floors
	if first {
		close(f.known)
	}
	return renewed
}

// highest returns the maximum for each partition.
func highest(a, b []uint64) []uint64 {
	result := make([]uint64, max(len(a), len(b)))
	for p := range result {
		result[p] = max(at(a, p), at(b, p))
	}
	return result
}

// at returns the floor of a partition; 0 if it has none.
func at(floors []uint64, partition int) uint64 {
	if partition < len(floors) {
		return floors[partition]
	}
	return 0
}

// Position returns the floor of a visitor's partition, selected by the visitor's subject, and the creation
// time of the stream. It waits for the first poll.
func (f *Floors) Position(ctx context.Context, subj string) (floor uint64, stream time.Time, err error) {
	select {
	case <-f.known:
	case <-ctx.Done():
		return 0, time.Time{}, ctx.Err()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return at(f.floors, subject.Partition(subj, len(f.floors))), f.created, nil
}

// At returns the floors at time t, by partition. If the history does not reach back to t, it returns the
// oldest floors and false.
func (f *Floors) At(t time.Time) (floors []uint64, ok bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := len(f.past) - 1; i >= 0; i-- {
		if floors = f.past[i].floors; !f.past[i].at.After(t) {
			return floors, true
		}
	}
	return floors, false
}
