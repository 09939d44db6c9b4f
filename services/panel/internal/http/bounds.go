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

	// guestsOfAddress bounds the requests without a session of one address: an office that signs in at nine.
	guestsOfAddress = 32
	guestsAtOnce    = 128
	// guestBody bounds their bodies: credentials and invitations.
	guestBody = 16 << 10

	// slotWait is how long a request waits for a place: longer than it takes to cut off a slow client.
	slotWait       = 5 * time.Second
	busyRetryAfter = time.Second
)

// Limits bound how often the panel may be called. A nil limiter does not limit.
type Limits struct {
	User     *ratelimit.Limiter // requests of a user
	Company  *ratelimit.Limiter // requests of a company's users
	Address  *ratelimit.Limiter // requests without a session from an address
	Failures *ratelimit.Limiter // requests with an invalid session from an address
}

// bounds is what runs at once. Every route passes through it, see [api.as] and [api.forAnyone]. The app's
// files do not: they are answered from memory, and no request holds a copy.
type bounds struct {
	requests, streams places
	guests            *slot.Pool // requests without a session: they take no place of a user
}

func newBounds() bounds {
	return bounds{
		requests: places{slot.NewPool(requestsAtOnce, 1), requestsOfUser, requestsOfCompany, slotWait},
		streams:  places{slot.NewPool(streamsAtOnce, 1), streamsOfUser, streamsOfCompany, 0},
		guests:   slot.NewPool(guestsAtOnce, 1),
	}
}

// places are shared by users and companies.
type places struct {
	pool              *slot.Pool
	ofUser, ofCompany int64
	wait              time.Duration // for a place, if those of all users are in use
}

// take takes a place for a user. Operators have no company.
func (p places) take(c echo.Context, who caller) (*slot.Slot, error) {
	shares := []slot.Share{{Of: "user", Key: who.User.ID, Most: p.ofUser}}
	if who.User.CompanyID != "" {
		shares = append(shares, slot.Share{Of: "company", Key: who.User.CompanyID, Most: p.ofCompany})
	}
	held, err := p.pool.Acquire(ctxOf(c), 0, shares...)
	if full, ok := errors.AsType[*slot.FullError](err); ok && full.Share == "" {
		held, err = p.pool.Acquire(ctxOf(c), p.wait, shares...)
	}
	return placed(held, err)
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

// admit charges a request to its user and company and takes a slot for it, which the caller releases. An
// event stream takes one of its own bound before it reads anything. A slow client loses its place to those
// that wait.
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
		return a.streams.take(c, who)
	}
	held, err := a.requests.take(c, who)
	if err != nil {
		return nil, err
	}
	pace(c, held)
	return held, nil
}

// forAnyone bounds a route without a session by the address of its caller. A slow client loses its place to
// those that wait.
func (a api) forAnyone(handle echo.HandlerFunc) echo.HandlerFunc {
	return a.Limits.Address.ByAddress(func(c echo.Context) error {
		address := slot.Share{Of: "address", Key: httpapi.ClientAddress(c), Most: guestsOfAddress}
		held, err := placed(a.guests.Acquire(ctxOf(c), slotWait, address))
		if err != nil {
			return err
		}
		defer held.Release()
		pace(c, held)
		r := c.Request()
		r.Body = http.MaxBytesReader(c.Response(), r.Body, guestBody)
		return handle(c)
	})
}

// pace reports to the slot of a request how its client moves: first the body, then the answer.
func pace(c echo.Context, held *slot.Slot) {
	connection := http.NewResponseController(c.Response().Writer)
	held.Watch(func() { _ = connection.SetReadDeadline(time.Now()) })
	c.Request().Body = pacedBody{c.Request().Body, held}
	c.Response().Writer = &pacedWriter{ResponseWriter: c.Response().Writer, held: held}
}

// pacedBody reads a body.
type pacedBody struct {
	io.ReadCloser
	held *slot.Slot
}

// Read implements io.Reader.
func (b pacedBody) Read(p []byte) (int, error) {
	b.held.Await()
	n, err := b.ReadCloser.Read(p)
	b.held.Moved(n)
	return n, err
}

// pacedWriter writes an answer.
type pacedWriter struct {
	http.ResponseWriter
	held  *slot.Slot
	began bool
}

// Write implements io.Writer. A client that was too slow with its body gets its answer.
func (w *pacedWriter) Write(p []byte) (int, error) {
	if !w.began {
		w.began = true
		connection := http.NewResponseController(w.ResponseWriter)
		w.held.Watch(func() { _ = connection.SetWriteDeadline(time.Now()) })
	}
	w.held.Await()
	n, err := w.ResponseWriter.Write(p)
	w.held.Moved(n)
	return n, err
}

// Unwrap is for [http.ResponseController].
func (w *pacedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// isStream reports whether the route answers with an event stream.
func isStream(c echo.Context) bool { return c.Path() == eventsPath || c.Path() == tailPath }

func tooManyAtOnce(d apperr.Definition) error {
	e := d.New()
	e.RetryAfter = busyRetryAfter
	return e
}
