package http

import (
	"errors"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/ratelimit"
	"github.com/parley-chat/parley/pkg/slot"
)

const (
	// requestsOfUser bounds the requests that one user has in flight: a page of the panel starts fewer than ten.
	requestsOfUser = 16
	// requestsAtOnce bounds those of all users, and so the memory that they take: a request has at most 1 MiB of body.
	requestsAtOnce = 256
	// streamsOfUser bounds the event streams of one user: tabs of the panel, in all browsers, on this replica.
	streamsOfUser = 10
	// streamsAtOnce bounds those of all users.
	streamsAtOnce = 10_000

	busyRetryAfter = time.Second
)

// Limits bound how often the panel may be called. A nil limiter does not limit.
type Limits struct {
	User     *ratelimit.Limiter // requests of a user
	Company  *ratelimit.Limiter // requests of a company's users
	Address  *ratelimit.Limiter // requests without a session from an address
	Failures *ratelimit.Limiter // requests with an invalid session from an address
}

// bounds is what runs at once. Every route passes through it, see [api.as] and [api.forAnyone].
type bounds struct{ requests, streams *slot.Pool }

func newBounds() bounds {
	return bounds{requests: slot.NewPool(requestsAtOnce, 1), streams: slot.NewPool(streamsAtOnce, 1)}
}

// take takes a slot for a user without waiting for one.
func take(c echo.Context, from *slot.Pool, who caller, most int64) (*slot.Slot, error) {
	s, err := from.Acquire(ctxOf(c), 0, slot.Share{Of: "user", Key: who.User.ID, Most: most})
	if full, ok := errors.AsType[*slot.FullError](err); ok && full.Share != "" {
		return nil, tooManyAtOnce(apperr.TooManyRequests)
	}
	if err != nil {
		return nil, tooManyAtOnce(apperr.ServiceUnavailable)
	}
	return s, nil
}

// admit charges a request to its user and company and takes a slot for it, which the caller releases. An event stream takes none here: it
// has a bound of its own.
func (a api) admit(c echo.Context, who caller) (*slot.Slot, error) {
	if err := a.Limits.User.Admit(c, who.User.ID); err != nil {
		return nil, err
	}
	if who.User.CompanyID != "" {
		if err := a.Limits.Company.Admit(c, who.User.CompanyID); err != nil {
			return nil, err
		}
	}
	if isStream(c) {
		return nil, nil
	}
	return take(c, a.requests, who, requestsOfUser)
}

// forAnyone bounds a route without a session by the address of its caller.
func (a api) forAnyone(handle echo.HandlerFunc) echo.HandlerFunc {
	return a.Limits.Address.ByAddress(handle)
}

// isStream reports whether the route answers with an event stream.
func isStream(c echo.Context) bool { return c.Path() == eventsPath || c.Path() == tailPath }

func tooManyAtOnce(d apperr.Definition) error {
	e := d.New()
	e.RetryAfter = busyRetryAfter
	return e
}
