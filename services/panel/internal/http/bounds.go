package http

import (
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/httpapi"
	"github.com/parley-chat/parley/pkg/ratelimit"
	"github.com/parley-chat/parley/pkg/slot"
)

const (
	// requestsOfUser bounds the requests that one user has in flight: a page of the panel starts fewer than ten.
	requestsOfUser = 16
	// requestsOfCompany bounds those of all users of a company, so that half of the places are left for others.
	requestsOfCompany = requestsAtOnce / 2
	// requestsAtOnce bounds those of all users, and so the memory that they take: a request has at most 1 MiB of body.
	requestsAtOnce = 256

	// streamsOfUser bounds the event streams of one user: tabs of the panel, in all browsers, on this replica.
	streamsOfUser = 10
	// streamsOfCompany bounds those of a company's users, streamsAtOnce those of all.
	streamsOfCompany = streamsAtOnce / 4
	streamsAtOnce    = 10_000

	// guestsOfAddress bounds the requests without a session of one address: an office that signs in at nine. Others wait for guestWait,
	// which is longer than it takes to cut off a slow client.
	guestsOfAddress = 32
	guestsAtOnce    = 128
	guestWait       = 5 * time.Second
	// guestBody bounds their bodies: credentials and invitations.
	guestBody = 16 << 10

	busyRetryAfter = time.Second
)

// Limits bound how often the panel may be called. A nil limiter does not limit.
type Limits struct {
	User     *ratelimit.Limiter // requests of a user
	Company  *ratelimit.Limiter // requests of a company's users
	Address  *ratelimit.Limiter // requests without a session from an address
	Failures *ratelimit.Limiter // requests with an invalid session from an address
}

// bounds is what runs at once. Every route passes through it, see [api.as] and [api.forAnyone]. The app's files do not: they are answered
// from memory, and no request holds a copy.
type bounds struct {
	requests, streams places
	guests            *slot.Pool // requests without a session: they take no place of a user
}

func newBounds() bounds {
	return bounds{
		requests: places{slot.NewPool(requestsAtOnce, 1), requestsOfUser, requestsOfCompany},
		streams:  places{slot.NewPool(streamsAtOnce, 1), streamsOfUser, streamsOfCompany},
		guests:   slot.NewPool(guestsAtOnce, 1),
	}
}

// places are shared by users and companies.
type places struct {
	pool              *slot.Pool
	ofUser, ofCompany int64
}

// take takes a place for a user without waiting for one. Operators have no company.
func (p places) take(c echo.Context, who caller) (*slot.Slot, error) {
	shares := []slot.Share{{Of: "user", Key: who.User.ID, Most: p.ofUser}}
	if who.User.CompanyID != "" {
		shares = append(shares, slot.Share{Of: "company", Key: who.User.CompanyID, Most: p.ofCompany})
	}
	return placed(p.pool.Acquire(ctxOf(c), 0, shares...))
}

// placed returns the public error of a caller without a place.
func placed(s *slot.Slot, err error) (*slot.Slot, error) {
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
	return a.requests.take(c, who)
}

// forAnyone bounds a route without a session by the address of its caller. A caller that sends its body slowly loses its place to those
// that wait.
func (a api) forAnyone(handle echo.HandlerFunc) echo.HandlerFunc {
	return a.Limits.Address.ByAddress(func(c echo.Context) error {
		address := slot.Share{Of: "address", Key: httpapi.ClientAddress(c), Most: guestsOfAddress}
		held, err := placed(a.guests.Acquire(ctxOf(c), guestWait, address))
		if err != nil {
			return err
		}
		defer held.Release()
		connection := http.NewResponseController(c.Response())
		held.Watch(func() { _ = connection.SetReadDeadline(time.Now()) })
		r := c.Request()
		r.Body = http.MaxBytesReader(c.Response(), guestReader{r.Body, held}, guestBody)
		return handle(c)
	})
}

// guestReader reads a body and reports its progress to the slot of the request.
type guestReader struct {
	io.ReadCloser
	held *slot.Slot
}

// Read implements io.Reader.
func (g guestReader) Read(p []byte) (int, error) {
	g.held.Await()
	n, err := g.ReadCloser.Read(p)
	g.held.Moved(n)
	return n, err
}

// isStream reports whether the route answers with an event stream.
func isStream(c echo.Context) bool { return c.Path() == eventsPath || c.Path() == tailPath }

func tooManyAtOnce(d apperr.Definition) error {
	e := d.New()
	e.RetryAfter = busyRetryAfter
	return e
}
