package bot

import (
	"sync"
	"time"
)

// exchange is the state of a message over its tries. Only one handler at a time handles a message, and owns the
// fields.
type exchange struct {
	began    time.Time
	calls    int    // made for the message
	answered bool   // a call has succeeded
	result   Result // of that call, for a retry after a failed publish

	fromReserve bool // the tokens come from the application's reserve, see [tokenBudget]
}

// exchanges holds the exchanges of the messages that are being answered, from the first try until the message
// is answered or given up. A message that another process has taken over is never forgotten by id; its exchange
// expires.
type exchanges struct {
	deadline time.Duration // of a message, from its first try

	mu    sync.Mutex
	byID  map[string]*exchange
	swept time.Time
}

func newExchanges(deadline time.Duration) *exchanges {
	return &exchanges{deadline: deadline, byID: make(map[string]*exchange)}
}

// of returns the exchange of a message; the first call creates it.
func (x *exchanges) of(id string, now time.Time) *exchange {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.sweep(now)
	known, ok := x.byID[id]
	if !ok {
		known = &exchange{began: now}
		x.byID[id] = known
	}
	return known
}

// sweep is called with the lock held.
func (x *exchanges) sweep(now time.Time) {
	if now.Sub(x.swept) < x.deadline {
		return
	}
	x.swept = now
	for id, e := range x.byID {
		if now.Sub(e.began) > 2*x.deadline {
			delete(x.byID, id)
		}
	}
}

// forget drops the exchange of a message.
func (x *exchanges) forget(id string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.byID, id)
}

// remaining returns how long the message may still be tried.
func (x *exchanges) remaining(e *exchange, now time.Time) time.Duration {
	return x.deadline - now.Sub(e.began)
}
