package httpapi

import (
	"context"
	"errors"
	"net/http"
	"runtime"
	"slices"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/slot"
)

// This file bounds the memory that requests hold while their clients send a body or read an answer, which
// takes as long as the clients want. [Decode] takes the memory of a body, [HoldAnswer] that of an answer; the
// request gives both back when it has ended. A client that is slow while others wait is cut off.
//
// A request that is small on both ways takes none: it costs hardly more than its connection. It has a short deadline
// for its body, see bodytime.go.

const (
	// smallBody is the size up to which a body takes no memory of the bound: that of the buffer which each
	// connection has anyway.
	smallBody = 4 << 10
	// bodyCost is what a body takes per byte: the body, its decoded form, and the copies in the handler.
	bodyCost = 4

	// memoryWait is how long a request waits for memory: longer than it takes to cut off some slow clients.
	memoryWait = 10 * time.Second
	// waitingAtOnce bounds the requests that wait; each costs its connection. See [waitingParts] for each owner.
	waitingAtOnce = 512
	// busyRetryAfter is the Retry-After of a request that found a pool full.
	busyRetryAfter = time.Second
)

// parts are the units that an owner of each kind may hold at most.
type parts struct{ visitor, address, site, application, company int64 }

// memoryParts returns the parts of that many bytes. An owner may use much of them while nobody else does: a client that
// is slow loses its memory to those that wait.
func memoryParts(bytes int64) parts {
	return parts{
		visitor:     bytes / 16,
		address:     bytes / 8,
		site:        bytes / 4, // an IPv6 /48
		application: bytes / 2,
		company:     bytes / 2,
	}
}

// waitingParts are the parts of waitingAtOnce. They are small, because no request that waits is cut off for another:
// two applications with half of the places each would keep all others from waiting. Eight applications fit.
var waitingParts = parts{visitor: 4, address: 8, site: 16, application: 64, company: 64}

// Memory bounds the memory of all requests of an API together, and of each [Owner]. A nil Memory bounds
// nothing. It is safe for concurrent use.
type Memory struct {
	bodies, answers, waiting shared
	// decoders bounds the large bodies that are decoded at once: a body of many small members takes much more
	// than bodyCost while it is checked. More of them than processors would be no faster.
	decoders chan struct{}
}

// NewMemory returns a bound of that many bytes for bodies, and for answers.
func NewMemory(bodies, answers int64) *Memory {
	return &Memory{
		bodies:   newShared(bodies, memoryParts(bodies)),
		answers:  newShared(answers, memoryParts(answers)),
		waiting:  newShared(waitingAtOnce, waitingParts),
		decoders: make(chan struct{}, runtime.GOMAXPROCS(0)),
	}
}

// WaitingAtMost bounds the requests that wait for memory, all and those of a company, and returns m. It is for a service
// whose requests hold their answers while they wait.
func (m *Memory) WaitingAtMost(all, ofCompany int64) *Memory {
	p := waitingParts
	p.company = ofCompany
	m.waiting = newShared(all, p)
	return m
}

// Owner identifies the holder of a request's memory: a company, or a visitor of an application. The client's address
// counts too if there is no company.
type Owner struct{ Company, Application, Visitor string }

// HoldFor sets the owner of what the request holds from now on. Without it the address of the client holds it.
func HoldFor(c echo.Context, o Owner) {
	if s := scopeOf(c.Request().Context()); s != nil {
		s.owner = o
	}
}

// HoldAnswer takes the memory of an answer until the request ends; the handler may shrink it when it knows the
// answer. From now on the client must read the answer. Errors: TooMany if the owner holds as much as it may,
// else Unavailable.
func HoldAnswer(c echo.Context, bytes int64) (*slot.Slot, error) {
	s := scopeOf(c.Request().Context())
	if s == nil || s.memory == nil {
		return new(slot.Slot), nil
	}
	held, err := s.memory.take(c, s.memory.answers, bytes, s.owner)
	if err != nil {
		return nil, err
	}
	s.answer = held
	Pace(c, held)
	return held, nil
}

// holdBody takes the memory of a body until the request ends.
func holdBody(c echo.Context, bytes int64) (*slot.Slot, error) {
	s := scopeOf(c.Request().Context())
	if s == nil || s.memory == nil || s.body != nil { // see ReadBody
		return new(slot.Slot), nil
	}
	held, err := s.memory.take(c, s.memory.bodies, bytes*bodyCost, s.owner)
	if err != nil {
		return nil, err
	}
	s.body = held
	connection := http.NewResponseController(c.Response().Writer)
	held.Watch(func() { _ = connection.SetReadDeadline(time.Now()) })
	return held, nil
}

// decoding waits for a decoder of large bodies; the result ends it.
func decoding(ctx context.Context) (end func()) {
	s := scopeOf(ctx)
	if s == nil || s.memory == nil {
		return func() {}
	}
	s.memory.decoders <- struct{}{}
	return func() { <-s.memory.decoders }
}

// take takes memory, and waits for it if there is none. A request waits in the name of its owner too.
func (m *Memory) take(c echo.Context, from shared, units int64, o Owner) (*slot.Slot, error) {
	ctx, address := c.Request().Context(), ""
	if o.Company == "" {
		address = ClientAddress(c)
	}
	units = min(units, from.parts.company) // what never fits would be in the way of all others
	line := slot.Line{Pool: from.pool, Places: m.waiting.pool}
	held, err := line.Acquire(
		ctx, units, memoryWait, from.sharesOf(o, address, units), m.waiting.sharesOf(o, address, 1),
	)
	return held, Busy(err)
}

// Busy returns the public error of a request that found a pool full: 429 if its own share is, else 503. Other errors
// are returned unchanged.
func Busy(err error) error {
	full, ok := errors.AsType[*slot.FullError](err)
	if !ok {
		return err
	}
	refused := apperr.ServiceUnavailable.New()
	if full.Share != "" {
		refused = apperr.TooManyRequests.New()
	}
	refused.RetryAfter = busyRetryAfter
	return refused
}

// shared is a pool of which each owner may hold a part.
type shared struct {
	pool  *slot.Pool
	parts parts
}

func newShared(units int64, p parts) shared { return shared{pool: slot.NewPool(units, 1), parts: p} }

// sharesOf returns the shares of a slot of that many units.
func (s shared) sharesOf(o Owner, address string, units int64) []slot.Share {
	part := func(of, key string, most int64) slot.Share {
		return slot.Share{Of: of, Key: key, Most: max(most, units)}
	}
	if o.Company != "" {
		return []slot.Share{part("company", o.Company, s.parts.company)}
	}
	shares := make([]slot.Share, 0, 4) // the widest last, see [slot.Pool.Acquire]
	if o.Visitor != "" {
		shares = append(shares, part("visitor", o.Visitor, s.parts.visitor))
	}
	shares = append(shares,
		part("address", address, s.parts.address),
		part("site", event.SiteOf(address), s.parts.site))
	if o.Application != "" {
		shares = append(shares, part("application", o.Application, s.parts.application))
	}
	return shares
}

// Pace reports to the slot of a request how its client reads the answer. A client that is cut off loses its
// connection.
func Pace(c echo.Context, held *slot.Slot) {
	c.Response().Writer = &pacedWriter{
		ResponseWriter: c.Response().Writer, scope: scopeOf(c.Request().Context()), held: held,
	}
}

// pacedWriter writes an answer.
type pacedWriter struct {
	http.ResponseWriter
	scope   *requestScope // nil in tests
	held    *slot.Slot
	watched bool
}

// pacedBytes is what the client is awaited for at once: half a second of the lowest rate.
const pacedBytes = 32 << 10

// Write implements [io.Writer]. A client that was too slow with its body gets its answer. The memory of the body ends
// here: the client may read for as long as it wants, and nobody could cut it off for that memory.
func (w *pacedWriter) Write(p []byte) (int, error) {
	if !w.watched {
		w.watched = true
		if w.scope != nil {
			w.scope.body.Release()
		}
		connection := http.NewResponseController(w.ResponseWriter)
		w.held.Watch(func() {
			_ = connection.SetReadDeadline(time.Now()) // net/http may read the rest of a body before it writes
			_ = connection.SetWriteDeadline(time.Now())
		})
	}
	written := 0
	for part := range slices.Chunk(p, pacedBytes) {
		w.held.Await()
		n, err := w.ResponseWriter.Write(part)
		w.held.Moved(n)
		written += n
		if err != nil {
			return written, err
		}
	}
	return written, nil
}

// Unwrap is for [http.ResponseController].
func (w *pacedWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }
