package bot

import (
	"context"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/ratelimit"
)

const (
	// minTokens is what a question counts as when it is asked, and so the least. It bounds the questions of an
	// application at a server that reports no tokens.
	minTokens = 1000
	// visitorShare: a visitor may spend a 64th of the application's tokens. With the default that is 156,250 tokens,
	// about 150 short questions or 30 with the longest history: more than a conversation needs. So one visitor is never
	// a flood. A 16th would let 12 of them spend all that is not reserved; it takes 48.
	visitorShare = 64
	// siteShare: the visitors of one network may spend half. Those of an office or a provider have one in common, so it
	// is wide; what it leaves is for the visitors of others.
	siteShare = 2
	// minConversation leaves a visitor, and so a network, of a small application a conversation.
	minConversation = 20 * minTokens
	// reserveShare: a quarter of the application's tokens is reserved for visitors that use little.
	reserveShare = 4
	// littleShare: a visitor uses little while its questions have used at most a 16th of its part in the last day, and
	// always with the first one. With the default that is 9,765 tokens, some short questions, so that it takes some 250
	// further visitors to spend the reserve, of two networks or more.
	littleShare = 16
	// littleSiteShare: a network uses little while its visitors have used at most a 4th of its part in the last day.
	littleSiteShare = 4
)

// tokenBudget bounds the tokens that each application may spend, and each of its visitors and of their networks
// ([event.SiteGroup]). Visitors are anonymous: many of them from several networks can still spend an application's
// tokens, but the last quarter only with little for each. pkg/budget bounds bytes in the same way.
type tokenBudget struct {
	visitor     *tokenBucket
	site        *tokenBucket // of an application
	little      *tokenBucket // of a visitor: what it may use before the reserve is closed to it
	littleSite  *tokenBucket
	application *tokenBucket // what is not reserved
	reserve     *tokenBucket // of an application
	refused     prometheus.Counter
}

func newTokenBudget(c LLMConfig, refused prometheus.Counter) tokenBudget {
	bucket := func(name string, rate config.Rate) *tokenBucket {
		return newTokenBucket(ratelimit.Config{Name: name, Rate: rate, Redis: c.Redis, Now: c.Now})
	}
	share := func(part int) config.Rate {
		r := c.Tokens.Part(1, part)
		r.Count = max(r.Count, min(minConversation, c.Tokens.Count))
		return r
	}
	visitor, site := share(visitorShare), share(siteShare)
	perDay := func(r config.Rate) config.Rate {
		r.Per = min(r.Per, 24*time.Hour)
		return r
	}
	return tokenBudget{
		visitor:     bucket("llm-tokens-visitor", visitor),
		site:        bucket("llm-tokens-site", site),
		little:      bucket("llm-tokens-little", perDay(visitor.Part(1, littleShare))),
		littleSite:  bucket("llm-tokens-little-site", perDay(site.Part(1, littleSiteShare))),
		application: bucket("llm-tokens", c.Tokens.Part(reserveShare-1, reserveShare)),
		reserve:     bucket("llm-tokens-reserve", c.Tokens.Part(1, reserveShare)),
		refused:     refused,
	}
}

// admit spends minTokens of the visitor, the network and the application, the narrower first: a visitor that has spent
// its part costs the application nothing. Its error is permanent: the budget takes hours to refill, and the visitor
// must not wait for that.
func (b tokenBudget) admit(ctx context.Context, x *exchange, e event.VisitorMessageAccepted) error {
	if !b.visitor.take(ctx, e.ChatUserID) {
		return b.spent("The visitor has spent its part of the application's tokens (LLM_TOKENS_APPLICATION)")
	}
	site, littleSite, name := b.ofSite(e)
	if !site.take(ctx, name) {
		return b.spent("The visitor's network has spent its part of the application's tokens (LLM_TOKENS_APPLICATION)")
	}
	visitorUsesLittle := b.little.take(ctx, e.ChatUserID)
	siteUsesLittle := littleSite.take(ctx, name)
	if b.application.take(ctx, e.AppID) {
		return nil
	}
	if visitorUsesLittle && siteUsesLittle && b.reserve.take(ctx, e.AppID) {
		x.fromReserve = true
		return nil
	}
	return b.spent("The application has spent its tokens (LLM_TOKENS_APPLICATION)")
}

// ofSite returns the buckets of the networks, and the name of the visitor's one in its application. An event of another
// publisher may have no network, and no such bound.
func (b tokenBudget) ofSite(e event.VisitorMessageAccepted) (site, little *tokenBucket, name string) {
	if e.Site == "" {
		return nil, nil, ""
	}
	return b.site, b.littleSite, e.AppID + " " + e.Site
}

// spent returns the error of a question that is not asked.
func (b tokenBudget) spent(message string) error {
	b.refused.Inc()
	return bus.Permanent(apperr.New(apperr.TooMany, "LLM_TOKENS_SPENT", message))
}

// spend spends the reported tokens of a message above minTokens, which admit has spent: those of its last call.
func (b tokenBudget) spend(ctx context.Context, x *exchange, e event.VisitorMessageAccepted, u completionUsage) {
	all := x.tokens.total()
	more := all - max(minTokens, all-u.total())
	if more <= 0 {
		return
	}
	site, littleSite, name := b.ofSite(e)
	b.visitor.add(ctx, e.ChatUserID, more)
	site.add(ctx, name, more)
	b.little.add(ctx, e.ChatUserID, more)
	littleSite.add(ctx, name, more)
	application := b.application
	if x.fromReserve {
		application = b.reserve
	}
	application.add(ctx, e.AppID, more)
}

// debtors bounds the visitors or applications whose debts a process remembers.
const debtors = 100_000

// tokenBucket bounds the tokens of each visitor or application. What a question costs is known only after its answer,
// and may be more than is left: then the rest is owed, and paid with the next question. Otherwise each question asked
// at an empty bucket would cost minTokens only. A process remembers what is owed by the questions that it has asked.
// A nil tokenBucket has no bound.
type tokenBucket struct {
	limiter *ratelimit.Limiter
	size    int

	mu   sync.Mutex
	owed *lru.Cache[string, int] // by visitor or application; at most size each
}

func newTokenBucket(c ratelimit.Config) *tokenBucket {
	if c.Rate.Count == 0 {
		return nil
	}
	owed, _ := lru.New[string, int](debtors) // fails only for a size of zero
	return &tokenBucket{limiter: ratelimit.New(c), size: c.Rate.Count, owed: owed}
}

// take takes minTokens and what is owed, and reports whether they were there.
func (b *tokenBucket) take(ctx context.Context, name string) bool {
	if b == nil {
		return true
	}
	debt := b.settle(name)
	if b.limiter.TakeN(ctx, name, minTokens+debt).Allowed {
		return true
	}
	b.owe(name, debt)
	return false
}

// add takes n tokens that have been spent. What is not there is owed.
func (b *tokenBucket) add(ctx context.Context, name string, n int) {
	if b == nil {
		return
	}
	d := b.limiter.TakeN(ctx, name, n)
	if d.Allowed {
		return
	}
	if b.limiter.TakeN(ctx, name, d.Left).Allowed {
		n -= d.Left
	}
	b.owe(name, n)
}

// settle returns what is owed, and forgets it.
func (b *tokenBucket) settle(name string) int {
	b.mu.Lock()
	defer b.mu.Unlock()
	debt, _ := b.owed.Get(name)
	b.owed.Remove(name)
	return debt
}

func (b *tokenBucket) owe(name string, n int) {
	if n <= 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	debt, _ := b.owed.Get(name)
	b.owed.Add(name, min(debt+min(n, b.size), b.size))
}
