// Package budget charges the bytes of events to the companies, applications, visitors, agents and addresses
// for which they are published (see [event.Account]).
//
// All tenants share the streams. A budget bounds the bytes that one of them may have in a stream: it may be
// used up at once and refills evenly. An event is charged to each budget of its account, the narrowest first,
// so that a refusal costs the wider ones nothing.
//
// Visitors are anonymous, so strangers can use up an application's budget. Two things keep its other visitors
// writing. An application has a short budget beside the long one, so that a flood ends its own hour and not
// the week; so has a company, so that what waits for its bots in a consumer leaves room for others. And a part of each
// company's budget is reserved for visitors and addresses that have used little of late: a flood has used more than
// little after its first messages. The company finds an entry in its audit log.
//
// Budgets bound each tenant, not their sum. So the last quarter of a stream is for those who use little: visitors
// and networks as above, companies that have used a sixteenth of their budget in the last day. In the last eighth
// the company of a visitor must use little too.
package budget

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/notice"
	"github.com/parley-chat/parley/pkg/ratelimit"
)

// ActionExhausted is the action of the audit log's entry when the visitors of an application have used up its
// budget or the company's.
const ActionExhausted = "application.budget-exhausted"

const (
	// hourShare: an application's visitors may use an eighth of the application's budget at once, which refills within
	// an hour, a company's an eighth of theirs. With the defaults that is 16 and 24 MiB, 8,192 and 12,288 messages: each
	// counts as at least 2 KiB. A process holds 16,384 that wait for the bot, and sheds the largest tenant's beyond them
	// (pkg/bus, Consumer.MaxAckPending and ShedLoad).
	hourShare = 8
	// reserveShare: a quarter of the budget of a company's visitors is reserved for those who use little.
	reserveShare = 4
	// littleShare: a visitor or a network uses little while it has used at most a 64th of its own budget in
	// the last day. With the defaults that is 256 KiB of a visitor and 1 MiB of a network, which is a whole site
	// ([event.SiteOf]).
	littleShare = 64
	// littleCompanyShare: a company uses little while it has used at most a 16th of its budget in the last day, 16 MiB
	// with the defaults.
	littleCompanyShare = 16
	// The shares of a stream from which on it is for visitors and networks, and for companies, that use little.
	reservedFill        = 3.0 / 4
	reservedCompanyFill = 7.0 / 8
	// fullRetryAfter is when a refused publisher may try again.
	fullRetryAfter = 30 * time.Second
)

// Config configures a [Meter].
type Config struct {
	Rates      config.Budgets
	Redis      *ratelimit.Redis // nil: this replica counts by itself
	Notices    *notice.Board    // nil: nobody is told
	Now        func() time.Time // nil: the real clock
	Registerer prometheus.Registerer
}

// Meter charges events. It is safe for concurrent use. A nil Meter charges nothing.
type Meter struct {
	notices *notice.Board

	company *ratelimit.Limiter // events of a company's systems

	visitor, address *ratelimit.Limiter // events of visitors
	application      *ratelimit.Limiter
	applicationHour  *ratelimit.Limiter
	companyVisitors  *ratelimit.Limiter
	companyHour      *ratelimit.Limiter

	littleVisitor, littleFrom *ratelimit.Limiter // who may use the reserve: visitors and networks
	littleCompany             *ratelimit.Limiter // who may use the rest of a stream: systems, agents and bots
	littleCompanyVisitors     *ratelimit.Limiter // and a company's visitors, counted apart
	reserve                   *ratelimit.Limiter // of a company
	// without these limits nobody may use the reserve: it would have no bound
	reserves bool

	agent          *ratelimit.Limiter // what agents send and change
	answered       *ratelimit.Limiter // a bot's answers to a visitor
	answersOfApp   *ratelimit.Limiter // an application's bot
	companyReplies *ratelimit.Limiter // agents and bots of a company
}

// New returns a meter.
func New(cfg Config) *Meter {
	limiter := func(name string, rate config.Rate) *ratelimit.Limiter {
		return ratelimit.New(ratelimit.Bytes(name, rate, cfg.Redis, cfg.Now, cfg.Registerer))
	}
	// A refusal of these refuses no event, so the metric does not count it.
	quiet := func(name string, rate config.Rate) *ratelimit.Limiter {
		return ratelimit.New(ratelimit.Bytes(name, rate, cfg.Redis, cfg.Now, nil))
	}
	rates := cfg.Rates
	companyVisitors := rates.BytesCompany.Part(reserveShare-1, reserveShare)
	return &Meter{
		notices: cfg.Notices,

		company: limiter("bytes-company", rates.BytesCompany),

		visitor:         limiter("bytes-visitor", rates.BytesVisitor),
		address:         limiter("bytes-address", rates.BytesAddress),
		application:     limiter("bytes-application", rates.BytesApplication),
		applicationHour: limiter("bytes-application-hour", within(rates.BytesApplication, hourShare, time.Hour)),
		companyVisitors: limiter("bytes-company-visitors", companyVisitors),
		companyHour:     limiter("bytes-company-visitors-hour", within(companyVisitors, hourShare, time.Hour)),

		littleVisitor: quiet("bytes-little-visitor", within(rates.BytesVisitor, littleShare, 24*time.Hour)),
		littleFrom:    quiet("bytes-little-address", within(rates.BytesAddress, littleShare, 24*time.Hour)),
		littleCompany: quiet("bytes-little-company", within(rates.BytesCompany, littleCompanyShare, 24*time.Hour)),
		littleCompanyVisitors: quiet(
			"bytes-little-company-visitors", within(rates.BytesCompany, littleCompanyShare, 24*time.Hour)),
		reserve:  limiter("bytes-reserve", rates.BytesCompany.Part(1, reserveShare)),
		reserves: rates.BytesVisitor.Count > 0 && rates.BytesAddress.Count > 0 && rates.BytesCompany.Count > 0,

		agent:          limiter("bytes-agent", rates.BytesAddress),
		answered:       limiter("bytes-answers-visitor", rates.BytesVisitor),
		answersOfApp:   limiter("bytes-answers-application", rates.BytesApplication),
		companyReplies: limiter("bytes-company-replies", rates.BytesCompany),
	}
}

// within returns a share of a budget that refills in a shorter time than the budget does. An unlimited budget
// has unlimited shares.
func within(r config.Rate, share int, per time.Duration) config.Rate {
	r = r.Part(1, share)
	r.Per = min(r.Per, per)
	return r
}

// charge is one budget and the name under which it counts.
type charge struct {
	limiter *ratelimit.Limiter
	name    string
}

// Charge charges the bytes that the account has not paid yet, and returns the account with them as prepaid. fill is
// the used share, 0 to 1, of the fullest stream that the event reaches. Errors, with a RetryAfter: apperr.TooMany with
// the reason BYTE_BUDGET_EXCEEDED; apperr.Unavailable with the reason STREAM_FULL if the rest of the stream is kept for
// others.
func (m *Meter) Charge(ctx context.Context, a event.Account, bytes int, fill float64) (event.Account, error) {
	due := bytes - a.Prepaid
	if m == nil || due <= 0 {
		return a, nil
	}
	var err error
	switch a.Payer {
	case event.PayerCompany:
		err = m.chargeCompany(ctx, a, due, fill, charge{m.company, a.CompanyID})
	case event.PayerVisitor:
		err = m.chargeVisitor(ctx, a, due, fill)
	case event.PayerAgent:
		err = m.chargeCompany(ctx, a, due, fill, charge{m.agent, a.UserID}, charge{m.companyReplies, a.CompanyID})
	case event.PayerBot:
		err = m.chargeCompany(ctx, a, due, fill,
			charge{m.answered, a.ChatUserID}, charge{m.answersOfApp, a.AppID}, charge{m.companyReplies, a.CompanyID})
	case event.PayerNobody:
		return a, nil
	default:
		return a, fmt.Errorf("an event without an account: %+v", a)
	}
	if err != nil {
		return a, err
	}
	a.Prepaid = bytes
	return a, nil
}

// chargeCompany charges an event of a company's systems, agents or bots.
func (m *Meter) chargeCompany(ctx context.Context, a event.Account, n int, fill float64, charges ...charge) error {
	return m.withinLittle(ctx, charge{m.littleCompany, a.CompanyID}, n, fill >= reservedFill, func() error {
		return m.spend(ctx, n, charges...)
	})
}

// withinLittle charges an event by pay. If the rest of the stream is reserved, the account must have used little;
// otherwise what it uses is counted once it is accepted, so that refused events take nothing of the little.
func (m *Meter) withinLittle(ctx context.Context, little charge, n int, reserved bool, pay func() error) error {
	if reserved && m.spend(ctx, n, little) != nil {
		return streamReserved()
	}
	err := pay()
	if err == nil && !reserved {
		_ = m.spend(ctx, n, little) // only the count matters
	}
	return err
}

func streamReserved() error {
	refused := apperr.StreamFull.New()
	refused.RetryAfter = fullRetryAfter
	return refused
}

// chargeVisitor charges a visitor's event to the visitor and the address, and then to the tenant.
func (m *Meter) chargeVisitor(ctx context.Context, a event.Account, n int, fill float64) error {
	own, little := visitorCharges(m, a)
	if err := m.spend(ctx, n, own...); err != nil {
		return err
	}
	usesLittle := m.spend(ctx, n, little...) == nil
	if fill >= reservedFill && !usesLittle {
		return streamReserved()
	}
	company := charge{m.littleCompanyVisitors, a.CompanyID}
	return m.withinLittle(ctx, company, n, fill >= reservedCompanyFill, func() error {
		return m.chargeTenant(ctx, a, n, usesLittle)
	})
}

// chargeTenant charges a visitor's event to the application and the company, or to the reserve.
func (m *Meter) chargeTenant(ctx context.Context, a event.Account, n int, usesLittle bool) error {
	used := m.spend(ctx, n,
		charge{m.applicationHour, a.AppID}, charge{m.application, a.AppID},
		charge{m.companyHour, a.CompanyID}, charge{m.companyVisitors, a.CompanyID})
	if used == nil {
		return nil
	}
	m.notices.Tell(ctx, notice.Notice{
		CompanyID: a.CompanyID,
		AppID:     a.AppID,
		Action:    ActionExhausted,
		Text:      "the visitors of an application have used up its byte budget, or the company's",
	})
	if !m.reserves || !usesLittle || m.spend(ctx, n, charge{m.reserve, a.CompanyID}) != nil {
		return used
	}
	return nil
}

// visitorCharges returns the visitor's own budgets, and those that tell whether the visitor uses little. A
// visitor has none of its own before the registration.
func visitorCharges(m *Meter, a event.Account) (own, little []charge) {
	if a.ChatUserID != "" {
		own = append(own, charge{m.visitor, a.ChatUserID})
		little = append(little, charge{m.littleVisitor, a.ChatUserID})
	}
	return append(own, charge{m.address, a.Address}), append(little, charge{m.littleFrom, event.SiteOf(a.Address)})
}

// spend charges n bytes to each budget, in this order, until one refuses.
func (m *Meter) spend(ctx context.Context, n int, charges ...charge) error {
	for _, c := range charges {
		if d := c.limiter.TakeN(ctx, c.name, n); !d.Allowed {
			refused := apperr.ByteBudgetExceeded.New()
			refused.RetryAfter = d.Wait
			return refused
		}
	}
	return nil
}
