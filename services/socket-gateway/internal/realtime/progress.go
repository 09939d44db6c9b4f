package realtime

import (
	"context"
	"sync"
	"time"
)

const (
	progressPoll = 500 * time.Millisecond
	// progressKept is how many positions are remembered: those of the last minute at least.
	progressKept = 120
)

// Progress knows how far the replies have come: up to a position of the stream every reply has been passed on to all
// gateways. What is above may have been passed on as well.
type Progress struct {
	log     *Log
	metrics *Metrics
	renewed func() // the stream is another one: its sequences begin anew

	known chan struct{} // closes when something is known

	mu      sync.Mutex
	floor   uint64
	created time.Time // of the stream
	past    []position
}

type position struct {
	at    time.Time
	floor uint64
}

// NewProgress returns a progress that knows nothing until Run. renewed is called when the stream has been created anew.
func NewProgress(log *Log, metrics *Metrics, renewed func()) *Progress {
	return &Progress{log: log, metrics: metrics, renewed: renewed, known: make(chan struct{})}
}

// Run keeps looking until ctx is done.
func (p *Progress) Run(ctx context.Context) {
	wait := 20 * time.Millisecond // until the consumer is there
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		}
		if p.look(ctx) {
			wait = progressPoll
		}
		timer.Reset(wait)
	}
}

// look asks once. Where NATS is away nothing is new: what was passed on stays passed on.
func (p *Progress) look(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	at := time.Now()
	state, err := p.log.State(ctx)
	if err != nil {
		return false
	}
	floor, pending, err := p.log.Floor(ctx)
	if err != nil {
		return false
	}
	p.metrics.natsPending.Set(float64(pending))
	if p.note(at, max(floor, state.First-1), state.Created) {
		p.renewed()
	}
	return true
}

// note never goes back, also where the consumer was lost and begins at the stream's beginning again. It reports whether
// the stream is another one than before.
func (p *Progress) note(at time.Time, floor uint64, created time.Time) (renewed bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	first := p.created.IsZero()
	renewed = !first && !p.created.Equal(created)
	if renewed {
		p.floor, p.past = 0, nil
	}
	p.created = created
	p.floor = max(p.floor, floor)
	if n := len(p.past); n == 0 || p.past[n-1].floor != p.floor {
		p.past = append(p.past[max(0, n+1-progressKept):], position{at, p.floor})
	}
	if first {
		close(p.known)
	}
	return renewed
}

// Position returns up to where everything had been passed on a moment ago, and when the stream was created. It waits
// until that is known.
func (p *Progress) Position(ctx context.Context) (floor uint64, stream time.Time, err error) {
	select {
	case <-p.known:
	case <-ctx.Done():
		return 0, time.Time{}, ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.floor, p.created, nil
}

// At returns up to where everything had been passed on at a time; ok is false where that is forgotten, and floor then
// is the oldest that is remembered.
func (p *Progress) At(t time.Time) (floor uint64, ok bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := len(p.past) - 1; i >= 0; i-- {
		if floor = p.past[i].floor; !p.past[i].at.After(t) {
			return floor, true
		}
	}
	return floor, false
}
