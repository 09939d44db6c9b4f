package realtime

// Tokens that expire: connect.go starts the lease of a socket, token.go renews it, run ends it.

import (
	"context"
	"sync"
	"time"
)

// eventExpiring is sent to a socket a minute before its token expires. Its argument is {"expiresAt"}, not a
// string, which the official clients would store as the offset.
const eventExpiring = "token_expiring"

// expiryNotice is how long before the expiry of its token a socket is warned.
const expiryNotice = time.Minute

// tokenHolder is a socket with a token.
type tokenHolder interface {
	Emit(event string, args ...any) error
	Disconnect(closeConnection bool)
}

// lease is the validity of a socket's token. Its fields are guarded by the expiry that watches it.
type lease struct {
	holder tokenHolder
	until  time.Time
	second int64 // its key in expiry.due
	warned bool
	ended  bool
}

// expiry disconnects sockets within a second of the expiry of their token, and warns them before. All sockets
// share one ticker: a timer per socket would cost more memory than the rest of its bookkeeping.
type expiry struct {
	now func() time.Time

	mu   sync.Mutex                    // guards the fields below and all leases
	due  map[int64]map[*lease]struct{} // by second
	done int64                         // the last processed second
}

// newExpiry returns an expiry without leases, which acts while run runs. now is the clock.
func newExpiry(now func() time.Time) *expiry {
	return &expiry{now: now, due: make(map[int64]map[*lease]struct{}), done: now().Unix()}
}

// watch starts a lease: its holder is warned a minute before until, and disconnected at most a second after until.
func (e *expiry) watch(l *lease, holder tokenHolder, until time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l.holder = holder
	l.until = until
	l.warned = false
	e.schedule(l, until.Add(-expiryNotice))
}

// renew changes the end of a lease. It returns false if the lease has ended.
func (e *expiry) renew(l *lease, until time.Time) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if l.ended || l.holder == nil {
		return false
	}
	e.unschedule(l)
	l.until, l.warned = until, false
	e.schedule(l, until.Add(-expiryNotice))
	return true
}

// forget ends a lease whose holder has disconnected.
func (e *expiry) forget(l *lease) {
	e.mu.Lock()
	defer e.mu.Unlock()
	l.ended = true
	e.unschedule(l)
}

// schedule makes a lease due at a time, at the earliest in the next second. Callers must hold mu.
func (e *expiry) schedule(l *lease, at time.Time) {
	l.second = max(secondAfter(at), e.done+1)
	if e.due[l.second] == nil {
		e.due[l.second] = make(map[*lease]struct{}, 1)
	}
	e.due[l.second][l] = struct{}{}
}

// unschedule makes a lease due at no time. Callers must hold mu.
func (e *expiry) unschedule(l *lease) {
	delete(e.due[l.second], l)
	if len(e.due[l.second]) == 0 {
		delete(e.due, l.second)
	}
}

// secondAfter rounds a time up to a Unix second.
func secondAfter(at time.Time) int64 {
	if at.Nanosecond() > 0 {
		return at.Unix() + 1
	}
	return at.Unix()
}

// run warns and disconnects sockets until ctx is done.
func (e *expiry) run(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			for _, act := range e.takeDue() {
				act()
			}
		}
	}
}

// takeDue removes the leases that are due and returns their warnings and disconnects, to be called without mu.
func (e *expiry) takeDue() (actions []func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	now := e.now()
	for e.done < now.Unix() {
		e.done++
		for l := range e.due[e.done] {
			actions = append(actions, e.advance(l, now))
		}
		delete(e.due, e.done)
	}
	return actions
}

// advance returns the action that is due for a lease, and schedules the next one.
func (e *expiry) advance(l *lease, now time.Time) func() {
	holder, until := l.holder, l.until
	if !now.Before(until) {
		l.ended = true
		return func() { holder.Disconnect(true) }
	}
	warned := l.warned
	l.warned = true
	e.schedule(l, until)
	if warned {
		return func() {}
	}
	return func() {
		_ = holder.Emit(
			eventExpiring,
			map[string]string{"expiresAt": until.UTC().Format(time.RFC3339)},
		) // it may have disconnected
	}
}
