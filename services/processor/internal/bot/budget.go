package bot

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/ratelimit"
)

const (
	// minTokens is the least that an answer of the language model counts as, so that the budget also bounds the questions of an
	// application at a server that reports no tokens.
	minTokens = 1000
	// bytesPerToken estimates the tokens of a request, before the server reports them.
	bytesPerToken = 4
)

// budget bounds the tokens that each application may spend. This process counts by itself. Calls that run at the same time may exceed it
// together: they are charged when the server answers, so that its failures cost nothing.
type budget struct {
	limiter *ratelimit.Limiter // nil: no bound
	refused prometheus.Counter
}

// estimate returns the tokens of a request with that many bytes.
func estimate(bytes int64) int { return max(minTokens, int(bytes/bytesPerToken)) }

// admit returns an error if the application has fewer tokens left. It is final: the budget takes hours to refill, and the visitor is not to
// wait for that.
func (b budget) admit(appID string, tokens int) error {
	if b.limiter == nil || b.limiter.TakeN(context.Background(), appID, 0).Left >= tokens {
		return nil
	}
	b.refused.Inc()
	return &apperr.Error{
		Code: apperr.TooMany, Reason: "LLM_TOKENS_SPENT", Message: "The application has spent its tokens (LLM_TOKENS_APPLICATION)", Final: true,
	}
}

// spend charges tokens, or what is left.
func (b budget) spend(appID string, tokens int) {
	if tokens <= 0 || b.limiter == nil {
		return
	}
	if d := b.limiter.TakeN(context.Background(), appID, tokens); !d.Allowed {
		b.limiter.TakeN(context.Background(), appID, d.Left)
	}
}
