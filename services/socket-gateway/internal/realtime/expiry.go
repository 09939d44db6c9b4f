package realtime

import (
	"context"
	"sync"
	"time"
)

// EventExpiring is what a socket gets a minute before its token expires. Its argument is {"expiresAt"}: it must not be a
// string, which the official clients would take for an offset.
const EventExpiring = "token_expiring"

// expiryNotice is how long before its token expires a socket is warned.
const expiryNotice = time.Minute

// Holder is a socket, as far as its token is concerned.
type Holder interface {
	Emit(event string, args ...any) error
	Disconnect(closeConnection bool)
}

// Lease is the time that a socket has. Its fields belong to the Expiry that watches it.
type Lease struct {
	holder Holder
	until  time.Time
	second int64 // under which it is noted
	warned bool
	ended  bool
}

// Expiry ends sockets at the second at which their token expires, and tells them before. One ticker serves them all: a timer
// for each socket would cost more than the socket's own bookkeeping.
type Expiry struct {
	now func() time.Time

	mu   sync.Mutex
	due  map[int64]map[*Lease]struct{} // by second
	done int64                         // the last second that was dealt with
}

// NewExpiry returns an expiry that does nothing until Run. now is the clock.
func NewExpiry(now func() time.Time) *Expiry {
	return &Expiry{now: now, due: make(map[int64]map[*Lease]struct{}), done: now().Unix()}
}

// Watch tells l's holder a minute before the time has passed, and ends it when it has, at most a second later.
func (x *Expiry) Watch(l *Lease, holder Holder, until time.Time) {
	x.mu.Lock()
	defer x.mu.Unlock()
	l.holder, l.until, l.warned = holder, until, false
	x.note(l, until.Add(-expiryNotice))
}

// Renew gives l another end. It reports false where it has ended already.
func (x *Expiry) Renew(l *Lease, until time.Time) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if l.ended || l.holder == nil {
		return false
	}
	x.forget(l)
	l.until, l.warned = until, false
	x.note(l, until.Add(-expiryNotice))
	return true
}

// Forget undoes Watch: the holder has ended by itself.
func (x *Expiry) Forget(l *Lease) {
	x.mu.Lock()
	defer x.mu.Unlock()
	l.ended = true
	x.forget(l)
}

func (x *Expiry) note(l *Lease, at time.Time) {
	l.second = max(secondAfter(at), x.done+1)
	if x.due[l.second] == nil {
		x.due[l.second] = make(map[*Lease]struct{}, 1)
	}
	x.due[l.second][l] = struct{}{}
}

func (x *Expiry) forget(l *Lease) {
	delete(x.due[l.second], l)
	if len(x.due[l.second]) == 0 {
		delete(x.due, l.second)
	}
}

// secondAfter is the first whole second at which at has passed.
func secondAfter(at time.Time) int64 {
	if at.Nanosecond() > 0 {
		return at.Unix() + 1
	}
	return at.Unix()
}

// Run tells and ends sockets until ctx is done.
func (x *Expiry) Run(ctx context.Context) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			for _, act := range x.take() {
				act()
			}
		}
	}
}

// take returns the warnings and disconnects that are due.
func (x *Expiry) take() (actions []func()) {
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

// advance brings a lease to its next step.
func (x *Expiry) advance(l *Lease, now time.Time) func() {
	holder, until := l.holder, l.until
	if !now.Before(until) {
		l.ended = true
		return func() { holder.Disconnect(true) }
	}
	warned := l.warned
	l.warned = true
	x.note(l, until)
	if warned {
		return func() {}
	}
	return func() {
		_ = holder.Emit(EventExpiring, map[string]string{"expiresAt": until.UTC().Format(time.RFC3339)}) // it may have left
	}
}
