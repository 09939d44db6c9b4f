package http

import (
	"errors"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/httpapi"
	"github.com/parley-chat/parley/pkg/idempotency"
	"github.com/parley-chat/parley/pkg/ratelimit"
	"github.com/parley-chat/parley/pkg/slot"
)

// The memory that all requests take together is bounded: by their number, by that of those that may need megabytes
// each, and by the bytes of large bodies and answers. A service in Go may have twice of it resident before the
// collector runs.
//
//	requests  256 x ~0.5 MiB  a body of smallBody, its decoded form, and an answer of one small record
//	large       8 x ~8 MiB    a page of pageBytes, or a record of 1 MiB before and after a change
//	bodies           32 MiB   large bodies with their decoded forms, while their clients send them
//	answers          64 MiB   large answers, while their clients read them
//	waiting    32 x ~2 MiB    large answers that wait for their part of that
//	exports     8 x ~3 MiB    a page of 1 MiB while it is written
//	guests    128 x ~0.1 MiB  a body of guestBody
//	PDF files   2 x  10 MiB   and one conversion, of up to 250 MiB (package pdf)
const (
	// requestsOfUser bounds the requests that one user has in flight: a page of the panel starts fewer than ten.
	requestsOfUser = 16
	// requestsOfCompany bounds those of all users of a company, so that three quarters of the places are left for others.
	requestsOfCompany = requestsAtOnce / 4
	// requestsAtOnce bounds those of all users, also of those that wait for another place.
	requestsAtOnce = 256
	// smallBody bounds the bodies of requests that are not large: the longest is a message of 64 KiB.
	smallBody = 128 << 10

	// largeOfUser, largeOfCompany and largeAtOnce bound the large requests, see [isLarge], while the panel works on them:
	// no client keeps such a place. Most take milliseconds, so a browser that starts ten at once notices no queue; more
	// of them at once would make each one slower.
	largeOfUser    = 3
	largeOfCompany = largeAtOnce / 2
	largeAtOnce    = 8
	// largeWait is how long they wait: the longest time of a few of them on a busy machine.
	largeWait = 20 * time.Second
	// bodyMemory and answerMemory bound the large bodies and answers, a company's at half of it ([httpapi.Memory]).
	// Answers of up to smallAnswer take none.
	bodyMemory   = 32 << 20
	answerMemory = 64 << 20
	smallAnswer  = 64 << 10
	// largestAnswer is what a change takes before it is made: an application as JSON.
	largestAnswer = 2 << 20
	// waitingAtOnce and waitingOfCompany bound the requests that wait for this memory: they hold their answers.
	waitingAtOnce    = 32
	waitingOfCompany = 4

	// exportsOfUser, exportsOfCompany and exportsAtOnce bound the exports: they take minutes, so they have no
	// place of a large request.
	exportsOfUser    = 2
	exportsOfCompany = exportsAtOnce / 2
	exportsAtOnce    = 8

	// filesOfCompany and filesAtOnce bound the PDF files that are sent or converted: one is sent while another one is
	// converted.
	filesOfCompany = filesAtOnce / 2
	filesAtOnce    = 2

	// streamsOfUser bounds the event streams of one user: tabs of the panel, in all browsers, on this replica.
	streamsOfUser = 10
	// streamsOfCompany bounds those of a company's users, streamsAtOnce those of all.
	// Each takes about 70 KB, and what its browser has not read yet.
	streamsOfCompany = streamsAtOnce / 4
	streamsAtOnce    = 2000

	// guestsOfAddress bounds the requests without a session of one address: an office that signs in at nine.
	// guestsOfSite bounds those of a site ([event.SiteOf]), so that none keeps all others out.
	guestsOfAddress = 32
	guestsOfSite    = guestsAtOnce / 2
	guestsAtOnce    = 128
	// guestBody bounds their bodies: credentials and invitations.
	guestBody = 16 << 10

	// slotWait is how long a request waits for a place. While it waits, clients that hold more may take a quarter of that
	// (package slot).
	slotWait = 12 * time.Second
)

// Limits bound how often the panel may be called. A nil limiter does not limit.
type Limits struct {
	User     *ratelimit.Limiter // requests of a user
	Company  *ratelimit.Limiter // requests of a company's users
	Address  *ratelimit.Limiter // requests without a session from an address
	Failures *ratelimit.Limiter // requests with an invalid session from an address

	UserChanges    *ratelimit.Limiter // what a user changes, see [api.chargeChange]
	CompanyChanges *ratelimit.Limiter // what a company's users change

	UserKeys    *ratelimit.Limiter // idempotency keys of a user
	CompanyKeys *ratelimit.Limiter // of the users who answer a company's chats
}

// key allows a reply to add an idempotency key.
func (l Limits) key(c echo.Context, userID, companyID string) idempotency.Permit {
	return func() (giveBack func(), err error) {
		return ratelimit.SpendAll(
			c,
			ratelimit.Account{Limiter: l.UserKeys, Caller: userID},
			ratelimit.Account{Limiter: l.CompanyKeys, Caller: companyID},
		)
	}
}

// bounds is what runs at once. Every route passes through it, see [api.as] and [api.forAnyone], so that a new
// one inherits the bounds. The app's files do not: they are answered from memory, and no request holds a copy.
type bounds struct {
	requests places // every request with a session, but event streams
	large    places // of these, also those that may need megabytes
	exports  places // of these, also those that write a file of any length
	files    places // of these, also those that send a PDF file
	streams  places
	guests   *slot.Pool // requests without a session: they take no place of a user
}

func newBounds() bounds {
	return bounds{
		requests: places{pool: slot.NewPool(requestsAtOnce, 1), ofUser: requestsOfUser, ofCompany: requestsOfCompany},
		large:    places{pool: slot.NewPool(largeAtOnce, 1), ofUser: largeOfUser, ofCompany: largeOfCompany},
		exports:  places{pool: slot.NewPool(exportsAtOnce, 1), ofUser: exportsOfUser, ofCompany: exportsOfCompany},
		files:    places{pool: slot.NewPool(filesAtOnce, 1), ofUser: filesOfCompany, ofCompany: filesOfCompany},
		streams:  places{pool: slot.NewPool(streamsAtOnce, 1), ofUser: streamsOfUser, ofCompany: streamsOfCompany},
		guests:   slot.NewPool(guestsAtOnce, 1),
	}
}

// places are shared by users and companies.
type places struct {
	pool              *slot.Pool
	ofUser, ofCompany int64
}

// take takes a place for a user and waits for one if there is none, at most that long.
func (p places) take(c echo.Context, who caller, wait time.Duration) (*slot.Slot, error) {
	return placed(p.pool.Acquire(ctxOf(c), wait, p.shares(who)...))
}

// takeOrRefuse is take that waits only for the places of others: a user or a company that uses its own is
// refused at once.
func (p places) takeOrRefuse(c echo.Context, who caller, wait time.Duration) (*slot.Slot, error) {
	held, err := p.pool.Acquire(ctxOf(c), 0, p.shares(who)...)
	if full, ok := errors.AsType[*slot.FullError](err); ok && full.Share == "" {
		return p.take(c, who, wait)
	}
	return placed(held, err)
}

// shares returns in whose name a place is taken. Operators have no company.
func (p places) shares(who caller) []slot.Share {
	shares := []slot.Share{{Of: "user", Key: who.User.ID, Most: p.ofUser}}
	if who.User.CompanyID != "" {
		shares = append(shares, slot.Share{Of: "company", Key: who.User.CompanyID, Most: p.ofCompany})
	}
	return shares
}

// placed returns the public error of a caller without a place.
func placed(s *slot.Slot, err error) (*slot.Slot, error) { return s, httpapi.Busy(err) }

// admit charges a request to its user and company and takes its places, which release gives back. A slow
// client loses them to those that wait.
func (a api) admit(c echo.Context, who caller) (release func(), err error) {
	if err := a.Limits.User.Admit(c, who.User.ID); err != nil {
		return nil, err
	}
	if who.User.CompanyID != "" {
		if err := a.Limits.Company.Admit(c, who.User.CompanyID); err != nil {
			return nil, err
		}
	}
	if isStream(c) { // it takes a place of its own kind before it reads anything
		held, err := a.streams.takeOrRefuse(c, who, 0)
		return held.Release, err
	}
	held, err := a.requests.takeOrRefuse(c, who, slotWait)
	if err != nil {
		return nil, err
	}
	pace(c, held)
	httpapi.HoldFor(c, httpapi.Owner{Company: who.User.CompanyID})
	return held.Release, nil
}

// run runs the handler of an admitted request in the place that it needs besides its first one. A small request needs
// none, but has a small body; an upload neither: package attachment bounds both.
func (a api) run(c echo.Context, who caller, handle func(echo.Context, caller) error) error {
	switch {
	case isStream(c), c.Path() == uploadPath:
	case c.Path() == exportPath:
		held, err := a.exports.take(c, who, slotWait)
		if err != nil {
			return err
		}
		defer held.Release()
		pace(c, held)
	case c.Path() == pdfPath:
		held, err := a.files.take(c, who, slotWait)
		if err != nil {
			return err
		}
		defer held.Release()
		pace(c, held)
	case isLarge(c):
		return a.runLarge(c, who, handle)
	default:
		r := c.Request()
		r.Body = http.MaxBytesReader(c.Response(), r.Body, smallBody)
	}
	return handle(c, who)
}

// runLarge runs the handler of a large request in a place that waits for no client: it is taken when the body is there,
// and given back before the answer is written.
func (a api) runLarge(c echo.Context, who caller, handle func(echo.Context, caller) error) error {
	memory := new(slot.Slot)
	if changes(c) {
		err := httpapi.ReadBody(c)
		if err != nil {
			return err
		}
		// before the change: or its answer might be refused when it has been made
		if memory, err = httpapi.HoldAnswer(c, largestAnswer); err != nil {
			return err
		}
	}
	held, err := a.large.take(c, who, largeWait)
	if err != nil {
		return err
	}
	defer held.Release()
	answer, err := keepAnswer(c, func() error { return handle(c, who) })
	held.Release()
	c.Request().Body = http.NoBody // nothing keeps the body's memory while the client reads the answer
	memory.Shrink(int64(len(answer.body)))
	if err != nil || answer.status == 0 {
		return err
	}
	return answer.send(c)
}

// keptAnswer is an answer that is written when its handler has ended.
type keptAnswer struct {
	http.ResponseWriter
	status int // 0: none
	body   []byte
}

// keepAnswer returns what a handler answers.
func keepAnswer(c echo.Context, handle func() error) (*keptAnswer, error) {
	kept := &keptAnswer{ResponseWriter: c.Response().Writer}
	c.Response().Writer = kept
	defer func() { c.Response().Writer = kept.ResponseWriter }() // also for the error of a panic
	return kept, handle()
}

// WriteHeader implements [http.ResponseWriter].
func (k *keptAnswer) WriteHeader(status int) { k.status = status }

// Write implements [io.Writer].
func (k *keptAnswer) Write(p []byte) (int, error) {
	k.body = append(k.body, p...)
	return len(p), nil
}

// Unwrap is for [http.ResponseController].
func (k *keptAnswer) Unwrap() http.ResponseWriter { return k.ResponseWriter }

// send writes the answer. A large one takes memory first, unless a change has it.
func (k *keptAnswer) send(c echo.Context) error {
	if len(k.body) > smallAnswer && !changes(c) {
		if _, err := httpapi.HoldAnswer(c, int64(len(k.body))); err != nil {
			c.Response().Committed, c.Response().Size = false, 0
			return err
		}
	}
	out := c.Response().Writer
	out.WriteHeader(k.status)
	_, err := out.Write(k.body)
	return err
}

// isLarge reports whether a request may need megabytes: it reads, such as all lists do, or it changes an
// application, which has up to 1 MiB of settings, or a document, or it acts on a page of records. All others have small
// bodies and answers, also those of an application's bot, of which some wait for a server of the company.
func isLarge(c echo.Context) bool {
	path := c.Path()
	switch {
	case !changes(c), path == documentsPath, path == documentPath, slices.Contains(pageActions, path):
		return true
	case strings.HasPrefix(path, botPath):
		return false
	}
	return strings.HasPrefix(path, applicationsPath)
}

// forAnyone bounds a route without a session by the address of its caller. A slow client loses its place to
// those that wait.
func (a api) forAnyone(handle echo.HandlerFunc) echo.HandlerFunc {
	return a.Limits.Address.ByAddress(func(c echo.Context) error {
		address := httpapi.ClientAddress(c)
		held, err := placed(a.guests.Acquire(ctxOf(c), slotWait,
			slot.Share{Of: "address", Key: address, Most: guestsOfAddress},
			slot.Share{Of: "site", Key: event.SiteOf(address), Most: guestsOfSite}))
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
	httpapi.Pace(c, held)
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

// isStream reports whether the route answers with an event stream.
func isStream(c echo.Context) bool { return c.Path() == eventsPath || c.Path() == tailPath }
