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
	// floorsKept is how many positions are remembered: at least the last minute.
	floorsKept = 120
)

// Floors keeps a lower bound of the delivery progress of each partition: every reply of the partition up to that position of the stream
// has been published to all gateways. Later replies may have been published as well.
type Floors struct {
	log     *Log
	renewed func() // the stream is another one: its sequences begin anew

	known chan struct{} // closes when something is known

	mu      sync.Mutex
	floors  []uint64  // by partition
	created time.Time // of the stream
	past    []position
}

type position struct {
	at     time.Time
	floors []uint64
}

// NewFloors returns floors that are unknown until Run. renewed is called when the stream has been created anew.
func NewFloors(log *Log, renewed func()) *Floors {
	return &Floors{log: log, renewed: renewed, known: make(chan struct{})}
}

// Run keeps looking until ctx is done.
func (f *Floors) Run(ctx context.Context) {
	wait := 20 * time.Millisecond // until the consumers are there
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if f.look(ctx) {
			wait = floorPoll
		}
		timer.Reset(wait)
	}
}

// look asks once. Where NATS is not connected nothing is new: what was passed on stays passed on.
func (f *Floors) look(ctx context.Context) bool {
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
	if f.note(at, floors, state.Created) {
		f.renewed()
	}
	return true
}

// note never lowers a floor, not even when a lost consumer starts again at the beginning of the stream. It reports whether
// the stream is another one than before.
func (f *Floors) note(at time.Time, floors []uint64, created time.Time) (renewed bool) {
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

// highest returns the higher position of each partition.
func highest(a, b []uint64) []uint64 {
	result := make([]uint64, max(len(a), len(b)))
	for p := range result {
		result[p] = max(at(a, p), at(b, p))
	}
	return result
}

// at returns the position of a partition, 0 where there is none.
func at(floors []uint64, partition int) uint64 {
	if partition < len(floors) {
		return floors[partition]
	}
	return 0
}

// Position returns up to where every reply of a visitor, named by its subject, had been passed on a moment ago, and when the stream
// was created. It waits until that is known.
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

// At returns up to where everything had been passed on at a time, by partition; ok is false where that is forgotten, and floors then
// are the oldest that are remembered.
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
