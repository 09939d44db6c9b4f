package bot

import (
	"context"
	"time"

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
	// minVisitorTokens leaves a visitor of a small application a conversation.
	minVisitorTokens = 20 * minTokens
	// reserveShare: a quarter of the application's tokens is reserved for visitors that use little.
	reserveShare = 4
	// littleShare: a visitor uses little while its questions have used at most a 16th of its part in the last day, and
	// always with the first one. With the default that is 9,765 tokens, some short questions, so that it takes some 250
	// further visitors to spend the reserve.
	littleShare = 16
)

// tokenBudget bounds the tokens that each application may spend, and each of its visitors. Visitors are anonymous, and
// events have no address: many visitors can still spend an application's tokens, but the last quarter only with little
// for each. pkg/budget bounds bytes in the same way. Each limiter is nil if there is no bound.
type tokenBudget struct {
	visitor     *ratelimit.Limiter
	little      *ratelimit.Limiter // of a visitor: what it may use before the reserve is closed to it
	application *ratelimit.Limiter // what is not reserved
	reserve     *ratelimit.Limiter // of an application
	refused     prometheus.Counter
}

func newTokenBudget(c LLMConfig, refused prometheus.Counter) tokenBudget {
	limiter := func(name string, rate config.Rate) *ratelimit.Limiter {
		return ratelimit.New(ratelimit.Config{Name: name, Rate: rate, Redis: c.Redis, Now: c.Now})
	}
	visitor := c.Tokens.Part(1, visitorShare)
	visitor.Count = max(visitor.Count, min(minVisitorTokens, c.Tokens.Count))
	little := visitor.Part(1, littleShare)
	little.Per = min(little.Per, 24*time.Hour)
	return tokenBudget{
		visitor:     limiter("llm-tokens-visitor", visitor),
		little:      limiter("llm-tokens-little", little),
		application: limiter("llm-tokens", c.Tokens.Part(reserveShare-1, reserveShare)),
		reserve:     limiter("llm-tokens-reserve", c.Tokens.Part(1, reserveShare)),
		refused:     refused,
	}
}

// admit spends minTokens of the visitor and of the application, the narrower first: a visitor that has spent its part
// costs the application nothing. Its error is permanent: the budget takes hours to refill, and the visitor must not wait
// for that.
func (b tokenBudget) admit(ctx context.Context, x *exchange, e event.VisitorMessageAccepted) error {
	if !b.visitor.TakeN(ctx, e.ChatUserID, minTokens).Allowed {
		return b.spent("The visitor has spent its part of the application's tokens (LLM_TOKENS_APPLICATION)")
	}
	usesLittle := b.little.TakeN(ctx, e.ChatUserID, minTokens).Allowed
	if b.application.TakeN(ctx, e.AppID, minTokens).Allowed {
		return nil
	}
	if usesLittle && b.reserve.TakeN(ctx, e.AppID, minTokens).Allowed {
		x.fromReserve = true
		return nil
	}
	return b.spent("The application has spent its tokens (LLM_TOKENS_APPLICATION)")
}

// spent returns the error of a question that is not asked.
func (b tokenBudget) spent(message string) error {
	b.refused.Inc()
	return bus.Permanent(apperr.New(apperr.TooMany, "LLM_TOKENS_SPENT", message))
}

// spend spends the reported tokens above minTokens where admit has spent those.
func (b tokenBudget) spend(ctx context.Context, x *exchange, e event.VisitorMessageAccepted, u completionUsage) {
	more := u.Input + u.Output - minTokens
	if more <= 0 {
		return
	}
	takeUpTo(ctx, b.visitor, e.ChatUserID, more)
	takeUpTo(ctx, b.little, e.ChatUserID, more)
	application := b.application
	if x.fromReserve {
		application = b.reserve
	}
	takeUpTo(ctx, application, e.AppID, more)
}

// takeUpTo spends n tokens, or what is left.
func takeUpTo(ctx context.Context, limiter *ratelimit.Limiter, name string, n int) {
	if d := limiter.TakeN(ctx, name, n); !d.Allowed {
		limiter.TakeN(ctx, name, d.Left)
	}
}
