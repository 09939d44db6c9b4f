package ratelimit

import (
	"context"
	"errors"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/config"
)

const (
	// callers is the number of callers cached by a replica.
	callers = 100_000
	// If a lease is spent faster than fast, the next one has twice the size. If it lasts longer than slow,
	// the next one is a single permit.
	fast = 100 * time.Millisecond
	slow = time.Second
	// leaseShare limits a lease to the rate divided by leaseShare.
	leaseShare = 20
)

// Config configures a [Limiter].
type Config struct {
	Name       string // used in the RateLimit fields, the metrics and Redis keys
	Rate       config.Rate
	Refusal    apperr.Definition // zero: [apperr.TooManyRequests]
	Redis      *Redis            // nil: this replica counts by itself
	Now        func() time.Time
	Registerer prometheus.Registerer // nil: no metrics
}

// Bytes returns the Config of a byte budget.
func Bytes(name string, rate config.Rate, redis *Redis, now func() time.Time, registerer prometheus.Registerer) Config {
	return Config{
		Name: name, Rate: rate, Redis: redis, Now: now, Registerer: registerer,
		Refusal: apperr.ByteBudgetExceeded,
	}
}

// Limiter enforces one limit for all its callers. A nil Limiter allows everything. It is safe for concurrent use.
type Limiter struct {
	cfg      Config
	policy   string
	maxLease int
	accounts *lru.Cache[string, *account]
	refused  prometheus.Counter
}

// New returns a limiter, or nil if the rate is unlimited.
func New(cfg Config) *Limiter {
	if cfg.Rate.Count == 0 {
		return nil
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	accounts, _ := lru.New[string, *account](callers) // fails only for a size of zero
	return &Limiter{
		cfg:      cfg,
		policy:   policyOf(cfg),
		accounts: accounts,
		maxLease: max(cfg.Rate.Count/leaseShare, 1),
		refused:  refusals(cfg),
	}
}

func refusals(cfg Config) prometheus.Counter {
	vec := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "parley_rate_limited_total", Help: "Requests refused because a limit was reached.",
	}, []string{"limit"})
	if cfg.Registerer != nil {
		if known, ok := errors.AsType[prometheus.AlreadyRegisteredError](cfg.Registerer.Register(vec)); ok {
			if v, ok := known.ExistingCollector.(*prometheus.CounterVec); ok {
				vec = v
			}
		}
	}
	return vec.WithLabelValues(cfg.Name)
}

// Decision is the result of a request for permits.
type Decision struct {
	Allowed bool
	Left    int           // permits left, as known to this replica
	Full    time.Duration // time until all permits are available
	Wait    time.Duration // time until the permits are available, if refused
}

// account is the local state of a caller.
type account struct {
	mu           sync.Mutex
	leasing      chan struct{} // closed when the running request to Redis ends; nil: none
	permits      int           // leased and not spent
	permitsUntil time.Time     // expiry of the leased permits
	size         int           // of the last lease
	leasedAt     time.Time
	left         int       // permits left in Redis at leasedAt
	fullAt       time.Time // time at which all permits are available
	refusedUntil time.Time
	refusedFor   int  // size of the refused request; a smaller one may succeed
	alone        gcra // used while Redis is unavailable
}

// Take spends one of the caller's permits.
func (l *Limiter) Take(ctx context.Context, caller string) Decision { return l.TakeN(ctx, caller, 1) }

// TakeN spends n of the caller's permits, all or none; for a byte budget, n is the number of bytes. An n
// above the rate counts as the rate.
func (l *Limiter) TakeN(ctx context.Context, caller string, n int) Decision {
	if l == nil {
		return Decision{Allowed: true}
	}
	n = min(n, l.cfg.Rate.Count)
	a := l.account(caller)
	for {
		decision, wait, size := l.spend(a, n)
		switch {
		case wait != nil:
			<-wait // at most redisTimeout, also for a caller that has disconnected: what it began may go on
		case size > 0:
			l.lease(ctx, a, caller, size, n)
		default:
			if !decision.Allowed {
				l.refused.Inc()
			}
			return decision
		}
	}
}

// Return gives back a permit that [Limiter.Take] granted, for callers that pay only for failures. The permit
// stays with this replica for the caller's next request, so that returning costs no request to Redis.
func (l *Limiter) Return(caller string) {
	if l == nil {
		return
	}
	a := l.account(caller)
	a.mu.Lock()
	defer a.mu.Unlock()
	if l.shared() {
		a.permits++
		return
	}
	a.alone.giveBack(l.cfg.Rate)
}

func (l *Limiter) account(caller string) *account {
	if a, ok := l.accounts.Get(caller); ok {
		return a
	}
	fresh := new(account)
	if known, ok, _ := l.accounts.PeekOrAdd(caller, fresh); ok {
		return known
	}
	return fresh
}

func (l *Limiter) shared() bool { return l.cfg.Redis != nil && l.cfg.Redis.available() }

// spend decides locally if possible. Otherwise it returns the channel of a running lease to wait for, or the
// number of permits to lease.
func (l *Limiter) spend(a *account, n int) (d Decision, wait <-chan struct{}, size int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := l.cfg.Now()
	switch {
	case !l.shared():
		g := a.alone.take(l.cfg.Rate, now, n, n)
		return Decision{Allowed: g.permits == n, Left: g.left, Full: g.full, Wait: g.wait(l.cfg.Rate, n)}, nil, 0
	case a.permits >= n && now.Before(a.permitsUntil):
		a.permits -= n
		return Decision{Allowed: true, Left: a.left + a.permits, Full: max(a.fullAt.Sub(now), 0)}, nil, 0
	case now.Before(a.refusedUntil) && n >= a.refusedFor:
		return Decision{Left: a.permits, Full: a.fullAt.Sub(now), Wait: a.refusedUntil.Sub(now)}, nil, 0
	case a.leasing != nil:
		return Decision{}, a.leasing, 0
	}
	if !now.Before(a.permitsUntil) {
		a.permits = 0
	}
	a.leasing = make(chan struct{})
	return Decision{}, nil, max(l.nextSize(a, now), n-a.permits)
}

// nextSize returns the size of the next lease, adapted to the caller's pace.
func (l *Limiter) nextSize(a *account, now time.Time) int {
	switch held := now.Sub(a.leasedAt); {
	case a.size == 0 || held > slow:
		return 1
	case held < fast:
		return min(2*a.size, l.maxLease)
	}
	return a.size
}

// lease requests permits from Redis, at least n. After an error, Redis counts as unavailable for all callers.
func (l *Limiter) lease(ctx context.Context, a *account, caller string, size, n int) {
	g, err := l.cfg.Redis.take(ctx, l.cfg.Name, caller, l.cfg.Rate, size)
	a.mu.Lock()
	defer a.mu.Unlock()
	close(a.leasing)
	a.leasing = nil
	if err != nil {
		return
	}
	now := l.cfg.Now()
	a.permits += g.permits
	a.permitsUntil, a.size, a.leasedAt = now.Add(l.cfg.Rate.Per), size, now
	a.left, a.fullAt, a.refusedUntil = g.left, now.Add(g.full), time.Time{}
	if a.permits < n {
		a.size, a.refusedFor, a.refusedUntil = 1, n, now.Add(max(g.wait(l.cfg.Rate, n-a.permits), time.Millisecond))
	}
}
