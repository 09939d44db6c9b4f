package bot

import (
	"context"
	"sync"
	"time"
)

// exchange is what is known of a message that is being answered: how often the server was called for it, and the call that runs or has
// brought the answers. Only one handler at a time has a message, and the fields below belong to it.
type exchange struct {
	ctx    context.Context // ends when the message is given up, or forgotten
	cancel context.CancelCauseFunc
	began  time.Time

	calls int
	call  *call // nil: none runs, and none has brought answers
}

// call is one call of the server. It may run on without a waiter.
type call struct {
	done    chan struct{} // closes when it has ended
	answers []Answer      // only then
	err     error
}

// wait returns whether the call has ended, after at most d.
func (c *call) wait(ctx context.Context, d time.Duration) (ended bool) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-c.done:
		return true
	default:
	}
	select {
	case <-c.done:
		return true
	case <-timer.C:
	case <-ctx.Done():
	}
	return false
}

// exchanges are those of all messages that are being answered. What another process has taken over in the meantime is never
// forgotten by name, and goes when it is old.
type exchanges struct {
	deadline time.Duration // how long an exchange lasts
	ctx      context.Context
	cancel   context.CancelFunc
	running  sync.WaitGroup // calls

	mu    sync.Mutex
	byID  map[string]*exchange
	swept time.Time
}

func newExchanges(deadline time.Duration) *exchanges {
	x := &exchanges{deadline: deadline, byID: make(map[string]*exchange)}
	x.ctx, x.cancel = context.WithCancel(context.Background())
	return x
}

// of returns the exchange of a message; the first time it begins.
func (x *exchanges) of(id string, now time.Time) *exchange {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.sweep(now)
	if known, ok := x.byID[id]; ok {
		return known
	}
	fresh := &exchange{began: now}
	cancellable, cancel := context.WithCancelCause(x.ctx)
	timed, stop := context.WithTimeout(cancellable, x.deadline)
	fresh.ctx, fresh.cancel = timed, func(cause error) { cancel(cause); stop() }
	x.byID[id] = fresh
	return fresh
}

// sweep is called with the lock held.
func (x *exchanges) sweep(now time.Time) {
	if now.Sub(x.swept) < x.deadline {
		return
	}
	x.swept = now
	for id, e := range x.byID {
		if now.Sub(e.began) > 2*x.deadline {
			e.cancel(errForgotten)
			delete(x.byID, id)
		}
	}
}

// forget ends the exchange of a message, and a call that still runs.
func (x *exchanges) forget(id string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if e, ok := x.byID[id]; ok {
		e.cancel(errForgotten)
		delete(x.byID, id)
	}
}

// close ends all calls and returns when they have ended.
func (x *exchanges) close() {
	x.cancel()
	x.running.Wait()
}
