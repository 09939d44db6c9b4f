package bot

import (
	"context"
	"sync"
	"time"
)

// exchange is the state of a message that is being answered: the number of calls made for it, and the call
// that is running or has returned the answers. Only one handler at a time handles a message, and owns the
// fields below.
type exchange struct {
	ctx    context.Context // done when the message is given up or forgotten
	cancel context.CancelCauseFunc
	began  time.Time

	calls int
	call  *call // nil: none is running or has returned answers
}

// call is one call of the server. It may continue after its waiter has timed out.
type call struct {
	done    chan struct{} // closed when the call has ended
	answers []Answer      // valid after done
	err     error
}

// wait reports whether the call has ended, after at most d.
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

// exchanges holds the exchanges of all messages that are being answered. A message that another process has
// taken over is never forgotten by id; its exchange expires.
type exchanges struct {
	deadline time.Duration // lifetime of an exchange
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

// of returns the exchange of a message; the first call creates it.
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

// forget ends the exchange of a message and its running call.
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
