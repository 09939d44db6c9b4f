package realtime

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
	// KindApplication is the kind of invalidation that says that an application has changed; its key is the appId.
	KindApplication = "application"

	keptApplications = 10_000
	originsBelieved  = 10 * time.Second
	originsPause     = time.Second // until the next try after an error
)

var errOriginNotAllowed = apperr.OriginNotAllowed.New()

// AskOrigins asks which origins an application allows. Its error is apperr.Unavailable when the answer is not available.
type AskOrigins func(ctx context.Context, appID string) (origins []string, found bool, err error)

// Origins caches the allowed origins of applications. It is safe for concurrent use.
type Origins struct {
	ask     AskOrigins
	now     func() time.Time
	known   *lru.Cache[string, originRules] // by appId
	flights singleflight.Group

	mu        sync.Mutex // guards keeping against forgetting
	forgotten uint64     // how often something was forgotten
}

type originRules struct {
	allowed chat.Origins
	found   bool
	until   time.Time // from then on they are asked for again
}

// NewOrigins returns an empty cache. now is the clock.
func NewOrigins(ask AskOrigins, now func() time.Time) *Origins {
	known, err := lru.New[string, originRules](keptApplications)
	if err != nil {
		panic("realtime: " + err.Error()) // only for a size that is not positive
	}
	return &Origins{ask: ask, now: now, known: known}
}

// Check refuses a page of an origin that the application does not allow. A request without an origin is not sent by a page in a browser
// and passes. It returns apperr.Unavailable while the application's origins have never been read.
func (o *Origins) Check(ctx context.Context, appID, origin string) error {
	if origin == "" {
		return nil
	}
	rules, ok := o.known.Get(appID)
	if !ok || !o.now().Before(rules.until) {
		var err error
		if rules, err = o.fetch(ctx, appID); err != nil {
			return err
		}
	}
	switch {
	case !rules.found:
		return apperr.Unauthorized.Wrap(errors.New("the application is gone"))
	case !rules.allowed.Allow(origin):
		return errOriginNotAllowed
	}
	return nil
}

// fetch shares one question among all concurrent callers. It does not end with the context of the caller that began it.
func (o *Origins) fetch(ctx context.Context, appID string) (originRules, error) {
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

// load asks, and keeps the answer unless something was forgotten in the meantime: that may have been this answer. After an error the
// origins of before stay valid.
func (o *Origins) load(ctx context.Context, appID string) (originRules, error) {
	o.mu.Lock()
	forgotten := o.forgotten
	o.mu.Unlock()
	allowed, found, err := o.ask(ctx, appID)
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

// Forget is called with every invalidation. Forgotten origins are asked for again when they are needed next; they stay valid only if that
// fails.
func (o *Origins) Forget(kind, key string) {
	if kind != KindApplication {
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
