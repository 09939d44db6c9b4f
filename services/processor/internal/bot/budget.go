package bot

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/ratelimit"
)

// minTokens is what a question counts as when it is asked, and so the least. It bounds the questions of an
// application at a server that reports no tokens.
const minTokens = 1000

// tokenBudget bounds the tokens that each application may spend.
type tokenBudget struct {
	limiter *ratelimit.Limiter // nil: no bound
	refused prometheus.Counter
}

// admit spends minTokens of the application. Its error is permanent: the budget takes hours to refill, and the
// visitor must not wait for that.
func (b tokenBudget) admit(ctx context.Context, appID string) error {
	if b.limiter.TakeN(ctx, appID, minTokens).Allowed {
		return nil
	}
	b.refused.Inc()
	return bus.Permanent(apperr.New(
		apperr.TooMany,
		"LLM_TOKENS_SPENT",
		"The application has spent its tokens (LLM_TOKENS_APPLICATION)",
	))
}

// spend spends the reported tokens above minTokens, or what is left.
func (b tokenBudget) spend(ctx context.Context, appID string, u completionUsage) {
	more := u.Input + u.Output - minTokens
	if more <= 0 {
		return
	}
	if d := b.limiter.TakeN(ctx, appID, more); !d.Allowed {
		b.limiter.TakeN(ctx, appID, d.Left)
	}
}
