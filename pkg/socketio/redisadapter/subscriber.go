package redisadapter

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
	// subscribeChunk bounds the channels of one command.
	subscribeChunk = 256
	minBackoff     = 50 * time.Millisecond
	maxBackoff     = 2 * time.Second
)

var (
	errSilent  = errors.New("redisadapter: no answer to a ping")
	errRevoked = errors.New("redisadapter: subscription ended by the server")
)

// subscriber keeps counted subscriptions on one connection. It brings the wanted state and the
// connection's state together: callers change what is wanted, a writer sends the differences in batches,
// and the receiver notes what Redis confirms. A lost connection only means that everything differs.
type subscriber struct {
	client  redis.UniversalClient
	sharded bool
	single  bool // one channel per command, as a cluster demands
	health  time.Duration
	logger  *slog.Logger
	deliver func(channel, payload string)
	onState func(connected bool, since time.Time)
	rehome  func() // called before connecting again

	kick     chan struct{}
	lastSeen atomic.Int64 // when Redis last sent something, Unix nanoseconds

	mu          sync.Mutex
	channels    map[string]*subscription
	dirty       []*subscription
	outstanding int // confirmations that this connection still owes
	ready       bool
	lost        bool // was ready and is not any more
}

// subscription is one channel. It is subscribed when sent and nothing is unconfirmed.
type subscription struct {
	name        string
	refs        int  // wanted if positive
	sent        bool // the last command was to subscribe
	dirty       bool // is in subscriber.dirty
	unconfirmed int  // subscribe commands without a confirmation
	unsubs      int  // unsubscribe commands without a confirmation
	waiters     []*waiter
}

// waiter waits for several subscriptions.
type waiter struct {
	left int
	done chan struct{}
}

// wait returns true when all subscriptions are confirmed, false if ctx ends first. A nil waiter has nothing
// to wait for.
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

func (s *subscription) confirmed() bool { return s.sent && s.unconfirmed == 0 }

// acquire wants each channel once more. The waiter is nil if all are confirmed already.
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

// release wants each channel once less.
func (s *subscriber) release(names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		sub := s.channels[name]
		if sub == nil || sub.refs == 0 {
			continue
		}
		if sub.refs--; sub.refs == 0 {
			s.markLocked(sub)
		}
	}
}

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

// run keeps a connection until ctx ends.
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
		if s.markDown() {
			backoff = minBackoff
			s.logger.Warn("lost the Redis subscriptions", "error", err)
			s.onState(false, time.Unix(0, s.lastSeen.Load()))
		}
		select {
		case <-ctx.Done():
		case <-time.After(backoff):
		}
		backoff = min(2*backoff, maxBackoff)
	}
}

// session is the life of one connection. It returns why that ended.
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
			runtime.Gosched() // let concurrent subscribers run first: one command for all costs less
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

// begin marks every wanted subscription as still to be made.
func (s *subscriber) begin() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.dirty = s.dirty[:0]
	for _, sub := range s.channels {
		sub.dirty = false
		s.markLocked(sub)
	}
}

// markDown drops the state of the connection and reports whether everything had been subscribed.
func (s *subscriber) markDown() (wasReady bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, sub := range s.channels {
		sub.sent, sub.unconfirmed, sub.unsubs = false, 0, 0
		if sub.refs == 0 {
			delete(s.channels, name)
		}
	}
	s.outstanding = 0
	wasReady, s.ready = s.ready, false
	s.lost = s.lost || wasReady
	return wasReady
}

// flush sends the differences between what is wanted and what was sent.
func (s *subscriber) flush(ctx context.Context, c *connection) error {
	more, less := s.differences()
	subscribe, unsubscribe := c.Subscribe, c.Unsubscribe
	if s.sharded {
		subscribe, unsubscribe = c.SSubscribe, c.SUnsubscribe
	}
	return errors.Join(s.inChunks(ctx, more, subscribe), s.inChunks(ctx, less, unsubscribe))
}

func (s *subscriber) inChunks(ctx context.Context, names []string, command func(context.Context, ...string) error) error {
	size := subscribeChunk
	if s.single {
		size = 1
	}
	for chunk := range slices.Chunk(names, size) {
		if err := command(ctx, chunk...); err != nil {
			return err
		}
	}
	return nil
}

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

func (s *subscriber) forgetLocked(sub *subscription) {
	if sub.refs == 0 && !sub.sent && !sub.dirty && sub.unconfirmed == 0 && sub.unsubs == 0 && s.channels[sub.name] == sub {
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
			s.deliver(r.Channel, r.Payload)
		case *redis.Subscription:
			if err := s.onConfirmation(r); err != nil {
				return err
			}
		}
	}
}

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
		s.ready, back, s.lost = true, s.lost, false
	}
	s.mu.Unlock()
	if back {
		s.onState(true, time.Now())
	}
	return nil
}

func (s *subscriber) wakeLocked(sub *subscription) {
	if !sub.confirmed() {
		return
	}
	for _, w := range sub.waiters {
		if w.left--; w.left == 0 {
			close(w.done)
		}
	}
	sub.waiters = nil
}

// watch sends pings while nothing else arrives, and gives a silent connection up. The timeout begins when a ping has been
// written: on a delayed machine the next tick of a clock could follow at once.
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

// abandon takes a waiter out of the subscriptions that it still waits for.
func (s *subscriber) abandon(w *waiter, names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		if sub := s.channels[name]; sub != nil {
			sub.waiters = slices.DeleteFunc(sub.waiters, func(other *waiter) bool { return other == w })
		}
	}
}
