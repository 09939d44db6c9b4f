package realtime

// The pages that may connect: the origins of an application come from the Widget API and are cached here.

import (
	"context"
	"errors"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"golang.org/x/sync/singleflight"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
)

const (
	// kindApplication is the kind of invalidation for a changed application; its key is the appId.
	kindApplication = "application"

	keptApplications = 10_000
	originsBelieved  = 10 * time.Second
	originsPause     = time.Second // until the retry after an error
)

var errOriginNotAllowed = apperr.OriginNotAllowed.New()

// originFetcher fetches the allowed origins of an application. It returns apperr.Unavailable if they cannot be fetched.
type originFetcher func(ctx context.Context, appID string) (origins []string, found bool, err error)

// originCache caches the allowed origins of applications. It is safe for concurrent use.
type originCache struct {
	fetchOrigins originFetcher
	now          func() time.Time
	known        *lru.Cache[string, originRules] // by appId
	flights      singleflight.Group

	mu        sync.Mutex // serialises storing and invalidation
	forgotten uint64     // number of invalidations
}

// originRules is what is known of an application.
type originRules struct {
	allowed chat.Origins
	found   bool
	until   time.Time // when to fetch them again
}

// newOriginCache returns an empty cache. now is the clock.
func newOriginCache(fetch originFetcher, now func() time.Time) *originCache {
	known, err := lru.New[string, originRules](keptApplications)
	if err != nil {
		panic("realtime: " + err.Error()) // only for a size that is not positive
	}
	return &originCache{fetchOrigins: fetch, now: now, known: known}
}

// check returns errOriginNotAllowed for an origin that the application does not allow. A request without an
// origin does not come from a page and passes. check returns apperr.Unavailable if the application's origins
// cannot be fetched and are not cached.
func (o *originCache) check(ctx context.Context, appID, origin string) error {
	if origin == "" {
		return nil
	}
	rules, ok := o.known.Get(appID)
	if !ok || !o.now().Before(rules.until) {
		var err error
		rules, err = o.fetch(ctx, appID)
		if err != nil {
			return err
		}
	}
	switch {
	case !rules.found:
		return apperr.Unauthorized.Wrap(errors.New("application not found"))
	case !rules.allowed.Allow(origin):
		return errOriginNotAllowed
	}
	return nil
}

// fetch shares one request among concurrent callers. The request outlives the context of the caller that started it.
func (o *originCache) fetch(ctx context.Context, appID string) (originRules, error) {
	flight := o.flights.DoChan(appID, func() (any, error) { return o.load(context.WithoutCancel(ctx), appID) })
	select {
	case <-ctx.Done():
		return originRules{}, apperr.Unreachable("the Widget API", ctx.Err())
	case result := <-flight:
		if result.Err != nil {
			return originRules{}, result.Err
		}
		return result.Val.(originRules), nil
	}
}

// load fetches the origins and caches them, unless an invalidation arrived in the meantime, which may concern
// them. On an error the cached origins stay valid.
func (o *originCache) load(ctx context.Context, appID string) (originRules, error) {
	o.mu.Lock()
	forgotten := o.forgotten
	o.mu.Unlock()
	allowed, found, err := o.fetchOrigins(ctx, appID)
	o.mu.Lock()
	defer o.mu.Unlock()
	rules := originRules{allowed: allowed, found: found, until: o.now().Add(originsBelieved)}
	if err != nil {
		before, ok := o.known.Peek(appID)
		if !ok {
			return originRules{}, err
		}
		rules = before
		rules.until = o.now().Add(originsPause)
	}
	if forgotten == o.forgotten {
		o.known.Add(appID, rules)
	}
	return rules, nil
}

// forget handles an invalidation. The application's origins are fetched again on the next check; the cached
// ones are used only if that fails.
func (o *originCache) forget(kind, key string) {
	if kind != kindApplication {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.forgotten++
	o.flights.Forget(key)
	if rules, ok := o.known.Peek(key); ok {
		rules.until = time.Time{}
		o.known.Add(key, rules)
	}
}
