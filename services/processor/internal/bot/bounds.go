package bot

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/notice"
)

// Actions of the audit log's entries when an application uses much, or all, of what its company allows its bot a day.
const (
	ActionNearBound    = "bot.near-bound"
	ActionBoundReached = "bot.bound-reached"
)

const (
	// exhaustedText is what the visitor reads when a bound is reached, unless the company has a text of its own.
	exhaustedText = "I have answered as much as I can for today. Please try again tomorrow."
	// answerTokens and bytesOfToken estimate the tokens of the first questions: what one costs is known only after its
	// answer. Later ones are estimated by the average.
	answerTokens = 500
	bytesOfToken = 4
	// averages is the number of applications whose average question a process remembers.
	averages = 10_000
	// settleTimeout bounds the wait for the store after an answer.
	settleTimeout = 2 * time.Second
)

// Usage counts what bots use; see [store.BotUsage].
type Usage interface {
	SpendBot(ctx context.Context, of bots.UsageOf, add, bound bots.Amount) (after bots.Amount, ok bool, err error)
}

// BoundsConfig holds the dependencies of [Bounds].
type BoundsConfig struct {
	Usage      Usage
	Notices    *notice.Board // for companies; nil: none
	Replicas   func() int    // processes that answer, this one included
	Now        func() time.Time
	Registerer prometheus.Registerer // nil: no metrics
}

// Bounds keeps applications within the bounds that their companies set ([bots.Bounds]). The store counts, so they hold
// over all processes and their crashes: a question that a process was killed with counts again when another one asks it.
// A nil Bounds has none.
type Bounds struct {
	cfg     BoundsConfig
	average *lru.Cache[string, int] // tokens of a question, by application
	refused prometheus.Counter

	mu      sync.Mutex
	running map[string]int // calls by application
}

// NewBounds returns the bounds of one process.
func NewBounds(c BoundsConfig) *Bounds {
	average, _ := lru.New[string, int](averages) // fails only for a size of zero
	b := &Bounds{cfg: c, average: average, running: map[string]int{}}
	b.refused = prometheus.NewCounter(prometheus.CounterOpts{
		Name: "parley_bot_bounds_refused_total",
		Help: "Questions that were not asked because of a bound of the company.",
	})
	if c.Registerer != nil {
		_ = c.Registerer.Register(b.refused) // fails only if another bot of the process has registered it
	}
	return b
}

// place takes a place for a call, until release. It reports false if the application has as many calls as it may: each
// process has its part of them, and at least one.
func (b *Bounds) place(t *target, appID string) (release func(), ok bool) {
	if b == nil || t.bounds.CallsAtOnce == 0 {
		return func() {}, true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.running[appID] >= max(1, t.bounds.CallsAtOnce/b.cfg.Replicas()) {
		return nil, false
	}
	b.running[appID]++
	return func() { b.release(appID) }, true
}

func (b *Bounds) release(appID string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running[appID]--
	if b.running[appID] == 0 {
		delete(b.running, appID)
	}
}

// usage is what the bounds know of a message.
type usage struct {
	counted bool      // as a question of the day
	day     time.Time // on which it counts
	tokens  int       // that are counted
	ordinal int       // of the application's questions of the day
}

// admit counts a question, with an estimate of its tokens, unless it would pass a bound of the visitor or of the
// application: the narrower first. It reports whether the question may be asked.
func (b *Bounds) admit(ctx context.Context, x *exchange, e event.VisitorMessageAccepted) (bool, error) {
	bounds := x.target.bounds
	unbounded := bounds.Application == bots.Amount{} && bounds.Visitor == bots.Amount{}
	if b == nil || unbounded || x.usage.counted {
		return true, nil
	}
	x.usage.day = bots.Day(b.cfg.Now())
	add := bots.Amount{Questions: 1}
	if x.target.kind == bots.Model {
		average, err := b.averageOf(ctx, x, e)
		if err != nil {
			return b.refuse(err)
		}
		add.Tokens = cmp.Or(average, estimateOf(x.messages, x.target.model))
	}
	ofVisitor := bounds.Visitor != bots.Amount{}
	if ofVisitor {
		_, ok, err := b.cfg.Usage.SpendBot(ctx, visitorUsage(x, e), add, bounds.Visitor)
		if err != nil || !ok {
			return b.refuse(err)
		}
	}
	after, ok, err := b.cfg.Usage.SpendBot(ctx, applicationUsage(x, e), add, bounds.Application)
	if (err != nil || !ok) && ofVisitor {
		back := bots.Amount{Questions: -add.Questions, Tokens: -add.Tokens}
		_, _, _ = b.cfg.Usage.SpendBot(ctx, visitorUsage(x, e), back, bots.Amount{})
	}
	if err == nil {
		b.notify(ctx, e, after, bounds.Application, !ok)
	}
	if err != nil || !ok {
		return b.refuse(err)
	}
	x.usage.counted = true
	x.usage.tokens = add.Tokens
	x.usage.ordinal = after.Questions
	return true, nil
}

// averageOf returns the tokens of an average question: of those that this process has asked, or of those that others
// have asked today; 0: there are none. Without the latter the first questions of a process that starts when the bound
// is near could pass it. What was looked up is kept: a server that reports no tokens teaches nothing.
func (b *Bounds) averageOf(ctx context.Context, x *exchange, e event.VisitorMessageAccepted) (int, error) {
	if average, known := b.average.Get(e.AppID); known {
		return average, nil
	}
	used, _, err := b.cfg.Usage.SpendBot(ctx, applicationUsage(x, e), bots.Amount{}, bots.Amount{})
	average := used.Tokens / max(1, used.Questions)
	if err == nil && average > 0 {
		b.average.Add(e.AppID, average)
	}
	return average, err
}

// giveBack removes a question that is not asked, because the operator's budget refuses it.
func (b *Bounds) giveBack(ctx context.Context, x *exchange, e event.VisitorMessageAccepted) {
	if b == nil || !x.usage.counted {
		return
	}
	x.usage.counted = false
	back := bots.Amount{Questions: -1, Tokens: -x.usage.tokens}
	if x.target.bounds.Visitor != (bots.Amount{}) {
		_, _, _ = b.cfg.Usage.SpendBot(ctx, visitorUsage(x, e), back, bots.Amount{}) // it counts then
	}
	_, _, _ = b.cfg.Usage.SpendBot(ctx, applicationUsage(x, e), back, bots.Amount{})
}

// refuse returns the result of a question that is not asked.
func (b *Bounds) refuse(err error) (bool, error) {
	if err != nil {
		return false, fmt.Errorf("counting the question: %w", err)
	}
	b.refused.Inc()
	return false, nil
}

// notify tells the company that an application has used much, or all.
func (b *Bounds) notify(
	ctx context.Context, e event.VisitorMessageAccepted, used, bound bots.Amount, reached bool,
) {
	n := notice.Notice{CompanyID: e.CompanyID, AppID: e.AppID, Action: ActionNearBound}
	switch {
	case reached:
		n.Action = ActionBoundReached
		n.Text = "the bot of an application has reached its company's bound of the day"
	case used.Near(bound):
		n.Text = fmt.Sprintf("the bot of an application has used %d %% of its company's bound of the day", bots.WarnAt)
	default:
		return
	}
	b.cfg.Notices.Tell(ctx, n)
}

// settle counts what the calls of a message have used, instead of the estimate. Without a report of the server the
// estimate stands.
func (b *Bounds) settle(ctx context.Context, x *exchange, e event.VisitorMessageAccepted) {
	if b == nil || !x.usage.counted || !x.reported {
		return
	}
	b.learn(e.AppID, x.tokens.total())
	more := bots.Amount{Tokens: x.tokens.total() - x.usage.tokens}
	if more.Tokens == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), settleTimeout)
	defer cancel()
	if x.target.bounds.Visitor != (bots.Amount{}) {
		_, _, _ = b.cfg.Usage.SpendBot(ctx, visitorUsage(x, e), more, bots.Amount{}) // the estimate stands
	}
	after, _, err := b.cfg.Usage.SpendBot(ctx, applicationUsage(x, e), more, bots.Amount{})
	if err != nil {
		return // the estimate stands
	}
	x.usage.tokens = x.tokens.total()
	b.notify(ctx, e, after, x.target.bounds.Application, false)
}

// learn adds what a question has used to the average of its application, in which later ones count more. That of the
// day in the store would not do: it has the estimates of the questions that are being answered.
func (b *Bounds) learn(appID string, tokens int) {
	if average, known := b.average.Get(appID); known {
		tokens = (3*average + tokens) / 4
	}
	b.average.Add(appID, tokens)
}

func visitorUsage(x *exchange, e event.VisitorMessageAccepted) bots.UsageOf {
	return bots.UsageOf{AppID: e.AppID, ChatUserID: e.ChatUserID, Day: x.usage.day}
}

func applicationUsage(x *exchange, e event.VisitorMessageAccepted) bots.UsageOf {
	return bots.UsageOf{AppID: e.AppID, Day: x.usage.day}
}

// estimateOf returns the tokens that a question is likely to cost.
func estimateOf(messages []completionMessage, s bots.ModelSettings) int {
	size := 0
	for _, m := range messages {
		size += len(m.Content)
	}
	answer := answerTokens
	if s.MaxTokens > 0 {
		answer = min(answer, s.MaxTokens)
	}
	return size/bytesOfToken + answer
}

// exhausted returns what the visitor gets when a bound is reached.
func exhausted(t *target) Result {
	result := says(text(cmp.Or(t.bounds.ExhaustedText, exhaustedText)))
	if t.handOver {
		result.Handover = byBot("The bot has reached its bound of the day", "")
	}
	return result
}
