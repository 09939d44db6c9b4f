package redisadapter

// Subscriptions on one connection: what is wanted, what was sent, what Redis has confirmed. cluster.go
// distributes channels over several of them.

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	// subscribeChunk is the maximum number of channels in one command.
	subscribeChunk = 256
	minBackoff     = 50 * time.Millisecond
	maxBackoff     = 2 * time.Second
)

var (
	errSilent  = errors.New("redisadapter: ping timeout")
	errRevoked = errors.New("redisadapter: subscription ended by the server")
)

// subscriber maintains counted subscriptions on one connection. It reconciles the desired state with the
// connection's state: callers change the desired state, a writer sends the differences in batches,
// and a receiver records the confirmations of Redis. After a reconnect, all desired subscriptions differ.
type subscriber struct {
	client        redis.UniversalClient
	sharded       bool
	onePerCommand bool // each command names one channel
	health        time.Duration
	logger        *slog.Logger
	handle        func(channel, payload string)
	onState       func(connected bool, since time.Time)
	rehome        func() // called before connecting again

	kick     chan struct{}
	lastSeen atomic.Int64 // time of the last read from Redis, Unix nanoseconds

	mu          sync.Mutex // guards the fields below and the subscriptions with their waiters
	channels    map[string]*subscription
	dirty       []*subscription // whose desired state may differ from the connection's
	outstanding int             // pending confirmations of this connection
	ready       bool
	lost        bool // was ready before the connection was lost
}

// subscription is the state of one channel. It is confirmed if sent is true and unconfirmed is 0.
type subscription struct {
	name        string
	refs        int  // desired if positive
	sent        bool // the last command was a subscribe
	dirty       bool // in subscriber.dirty
	unconfirmed int  // pending confirmations of subscribe commands
	unsubs      int  // pending confirmations of unsubscribe commands
	waiters     []*waiter
}

// waiter waits for several subscriptions.
type waiter struct {
	left int
	done chan struct{}
}

// wait returns true when all subscriptions are confirmed, or false if ctx ends first. A nil waiter returns
// true.
func (w *waiter) wait(ctx context.Context) bool {
	if w == nil {
		return true
	}
	select {
	case <-w.done:
		return true
	case <-ctx.Done():
		return false
	}
}

// confirmed reports whether Redis delivers the channel: the last command was a subscribe, and all are
// confirmed.
func (s *subscription) confirmed() bool { return s.sent && s.unconfirmed == 0 }

// acquire adds a reference to each channel. The waiter is nil if all are confirmed already.
func (s *subscriber) acquire(names []string) *waiter {
	s.mu.Lock()
	defer s.mu.Unlock()
	var w *waiter
	for _, name := range names {
		sub := s.channels[name]
		if sub == nil {
			sub = &subscription{name: name}
			s.channels[name] = sub
		}
		sub.refs++
		if sub.confirmed() {
			continue
		}
		if w == nil {
			w = &waiter{done: make(chan struct{})}
		}
		w.left++
		sub.waiters = append(sub.waiters, w)
		s.markLocked(sub)
	}
	return w
}

// release removes a reference from each channel.
func (s *subscriber) release(names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		sub := s.channels[name]
		if sub == nil || sub.refs == 0 {
			continue
		}
		sub.refs--
		if sub.refs == 0 {
			s.markLocked(sub)
		}
	}
}

// markLocked adds a subscription to those that the writer checks, and wakes the writer.
func (s *subscriber) markLocked(sub *subscription) {
	if !sub.dirty {
		sub.dirty = true
		s.dirty = append(s.dirty, sub)
	}
	select {
	case s.kick <- struct{}{}:
	default:
	}
}

// run connects and reconnects until ctx ends.
func (s *subscriber) run(ctx context.Context) {
	backoff := minBackoff
	for first := true; ctx.Err() == nil; first = false {
		if !first {
			s.rehome()
		}
		err := s.session(ctx)
		if ctx.Err() != nil {
			return
		}
		if s.resetState() {
			backoff = minBackoff
			s.logger.Warn("Redis subscriptions lost", "error", err)
			s.onState(false, time.Unix(0, s.lastSeen.Load()))
		}
		select {
		case <-ctx.Done():
		case <-time.After(backoff):
		}
		backoff = min(2*backoff, maxBackoff)
	}
}

// session runs one connection until it fails, and returns the error.
func (s *subscriber) session(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	c, err := connect(ctx, s.client, s.health, &s.lastSeen)
	if err != nil {
		return err
	}
	s.begin()
	var wg sync.WaitGroup
	wg.Go(func() { cancel(s.receive(ctx, c)) })
	wg.Go(func() { cancel(s.watch(ctx, c.Ping)) })
	for err := error(nil); err == nil; {
		select {
		case <-ctx.Done():
			err = context.Cause(ctx)
		case <-s.kick:
			runtime.Gosched() // lets concurrent callers add channels to the same command
			err = s.flush(ctx, c)
		}
		if err != nil {
			cancel(err)
		}
	}
	c.close() // ends the receiver
	wg.Wait()
	return context.Cause(ctx)
}

// begin marks all desired subscriptions to be sent on a new connection.
func (s *subscriber) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dirty = s.dirty[:0]
	for _, sub := range s.channels {
		sub.dirty = false
		s.markLocked(sub)
	}
}

// resetState resets the state of the connection and reports whether all subscriptions had been confirmed.
func (s *subscriber) resetState() (wasReady bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, sub := range s.channels {
		sub.sent = false
		sub.unconfirmed = 0
		sub.unsubs = 0
		if sub.refs == 0 {
			delete(s.channels, name)
		}
	}
	s.outstanding = 0
	wasReady = s.ready
	s.ready = false
	s.lost = s.lost || wasReady
	return wasReady
}

// flush sends the differences between the desired and the sent subscriptions.
func (s *subscriber) flush(ctx context.Context, c *connection) error {
	more, less := s.differences()
	subscribe := c.Subscribe
	unsubscribe := c.Unsubscribe
	if s.sharded {
		subscribe = c.SSubscribe
		unsubscribe = c.SUnsubscribe
	}
	subscribed := s.inChunks(ctx, more, subscribe)
	unsubscribed := s.inChunks(ctx, less, unsubscribe)
	return errors.Join(subscribed, unsubscribed)
}

// inChunks sends a command for all names, with as many of them at once as the server takes.
func (s *subscriber) inChunks(
	ctx context.Context,
	names []string,
	command func(context.Context, ...string) error,
) error {
	size := subscribeChunk
	if s.onePerCommand {
		size = 1
	}
	for chunk := range slices.Chunk(names, size) {
		if err := command(ctx, chunk...); err != nil {
			return err
		}
	}
	return nil
}

// differences returns the channels to subscribe to and to unsubscribe from, and counts their confirmations as
// pending.
func (s *subscriber) differences() (more, less []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sub := range s.dirty {
		sub.dirty = false
		switch wanted := sub.refs > 0; {
		case wanted && !sub.sent:
			sub.sent = true
			sub.unconfirmed++
			s.outstanding++
			more = append(more, sub.name)
		case !wanted && sub.sent:
			sub.sent = false
			sub.unsubs++
			less = append(less, sub.name)
		}
		s.forgetLocked(sub)
	}
	clear(s.dirty)
	s.dirty = s.dirty[:0]
	return more, less
}

// forgetLocked removes a subscription that nobody wants and for which no confirmation is pending.
func (s *subscriber) forgetLocked(sub *subscription) {
	wanted := sub.refs != 0 || sub.sent
	pending := sub.dirty || sub.unconfirmed != 0 || sub.unsubs != 0
	if wanted || pending {
		return
	}
	if s.channels[sub.name] == sub { // it may have moved to another connection
		delete(s.channels, sub.name)
	}
}

// receive reads the connection until it fails.
func (s *subscriber) receive(ctx context.Context, c *connection) error {
	for {
		received, err := c.Receive(ctx)
		if err != nil {
			return err
		}
		switch r := received.(type) {
		case *redis.Message:
			s.handle(r.Channel, r.Payload)
		case *redis.Subscription:
			if err := s.onConfirmation(r); err != nil {
				return err
			}
		}
	}
}

// onConfirmation records a confirmation of Redis. When the last one is there, all subscriptions are restored. It
// returns an error if the server has ended a subscription on its own.
func (s *subscriber) onConfirmation(r *redis.Subscription) error {
	s.mu.Lock()
	sub := s.channels[r.Channel]
	if sub == nil {
		s.mu.Unlock()
		return nil
	}
	if r.Kind == "subscribe" || r.Kind == "ssubscribe" {
		sub.unconfirmed--
		s.outstanding--
		s.wakeLocked(sub)
	} else {
		if sub.unsubs == 0 { // the slot has moved to another node of the cluster
			s.mu.Unlock()
			return errRevoked
		}
		sub.unsubs--
	}
	s.forgetLocked(sub)
	back := false
	if s.outstanding == 0 && len(s.dirty) == 0 && !s.ready {
		back = s.lost
		s.ready = true
		s.lost = false
	}
	s.mu.Unlock()
	if back {
		s.onState(true, time.Now())
	}
	return nil
}

// wakeLocked wakes those who wait for a subscription, if it is confirmed.
func (s *subscriber) wakeLocked(sub *subscription) {
	if !sub.confirmed() {
		return
	}
	for _, w := range sub.waiters {
		w.left--
		if w.left == 0 {
			close(w.done)
		}
	}
	sub.waiters = nil
}

// watch pings an idle connection and returns errSilent if the ping times out. The timeout starts when the ping has been
// written: on an overloaded machine the next tick of a ticker could follow immediately.
func (s *subscriber) watch(ctx context.Context, ping func(context.Context, ...string) error) error {
	timer := time.NewTimer(s.health)
	defer timer.Stop()
	for pinged := int64(-1); ; timer.Reset(s.health) {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
		}
		seen := s.lastSeen.Load()
		if seen == pinged {
			return errSilent
		}
		if time.Since(time.Unix(0, seen)) < s.health {
			continue
		}
		pinged = seen
		if err := ping(ctx); err != nil {
			return err
		}
	}
}

// abandon removes a waiter from the subscriptions that it still waits for.
func (s *subscriber) abandon(w *waiter, names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		if sub := s.channels[name]; sub != nil {
			sub.waiters = slices.DeleteFunc(sub.waiters, func(other *waiter) bool { return other == w })
		}
	}
}
