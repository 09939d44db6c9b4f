package realtime

import (
	"context"
	"sync"
	"time"
)

// EventExpiring is sent to a socket a minute before its token expires. Its argument is {"expiresAt"}, not a
// string, which the official clients would store as the offset.
const EventExpiring = "token_expiring"

// expiryNotice is how long before the expiry of its token a socket is warned.
const expiryNotice = time.Minute

// Holder is a socket with a token.
type Holder interface {
	Emit(event string, args ...any) error
	Disconnect(closeConnection bool)
}

// Lease is the validity of a socket's token. Its fields are guarded by the Expiry that watches it.
type Lease struct {
	holder Holder
	until  time.Time
	second int64 // its key in Expiry.due
	warned bool
	ended  bool
}

// Expiry disconnects sockets within a second of the expiry of their token, and warns them before. All sockets
// share one ticker: a timer per socket would cost more memory than the rest of its bookkeeping.
type Expiry struct {
	now func() time.Time

	mu   sync.Mutex
	due  map[int64]map[*Lease]struct{} // by second
	done int64                         // the last processed second
}

// NewExpiry returns an expiry without leases, which acts while Run runs. now is the clock.
func NewExpiry(now func() time.Time) *Expiry {
	return &Expiry{now: now, due: make(map[int64]map[*Lease]struct{}), done: now().Unix()}
}

// Watch starts a lease: its holder is warned a minute before until, and disconnected at most a second after until.
func (x *Expiry) Watch(l *Lease, holder Holder, until time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	l.holder, l.until, l.warned = holder, until, false
	x.schedule(l, until.Add(-expiryNotice))
}

// Renew changes the end of a lease. It returns false if the lease has ended.
func (x *Expiry) Renew(l *Lease, until time.Time) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if l.ended || l.holder == nil {
		return false
	}
	x.unschedule(l)
	l.until, l.warned = until, false
	x.schedule(l, until.Add(-expiryNotice))
	return true
}

// Forget ends a lease whose holder has disconnected.
func (x *Expiry) Forget(l *Lease) {
	x.mu.Lock()
	defer x.mu.Unlock()
	l.ended = true
	x.unschedule(l)
}

func (x *Expiry) schedule(l *Lease, at time.Time) {
	l.second = max(secondAfter(at), x.done+1)
	if x.due[l.second] == nil {
		x.due[l.second] = make(map[*Lease]struct{}, 1)
	}
	x.due[l.second][l] = struct{}{}
}

func (x *Expiry) unschedule(l *Lease) {
	delete(x.due[l.second], l)
	if len(x.due[l.second]) == 0 {
		delete(x.due, l.second)
	}
}

// secondAfter rounds a time up to a Unix second.
func secondAfter(at time.Time) int64 {
	if at.Nanosecond() > 0 {
		return at.Unix() + 1
	}
	return at.Unix()
}

// Run warns and disconnects sockets until ctx is done.
func (x *Expiry) Run(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			for _, act := range x.takeDue() {
				act()
			}
		}
	}
}

// takeDue removes the leases that are due and returns their warnings and disconnects, to be called without mu.
func (x *Expiry) takeDue() (actions []func()) {
	x.mu.Lock()
	defer x.mu.Unlock()
	now := x.now()
	for x.done < now.Unix() {
		x.done++
		for l := range x.due[x.done] {
			actions = append(actions, x.advance(l, now))
		}
		delete(x.due, x.done)
	}
	return actions
}

// advance returns the action that is due for a lease, and schedules the next one.
func (x *Expiry) advance(l *Lease, now time.Time) func() {
	holder, until := l.holder, l.until
	if !now.Before(until) {
		l.ended = true
		return func() { holder.Disconnect(true) }
	}
	warned := l.warned
	l.warned = true
	x.schedule(l, until)
	if warned {
		return func() {}
	}
	return func() {
		_ = holder.Emit(
			EventExpiring,
			map[string]string{"expiresAt": until.UTC().Format(time.RFC3339)},
		) // it may have disconnected
	}
}
