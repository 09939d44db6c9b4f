package live

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/rpc"
	"github.com/parley-chat/parley/pkg/slot"
	"github.com/parley-chat/parley/proto-events/subject"
)

const (
	// noticeBuffer is the queue length of notices for a slow browser; further ones are dropped, since they soon expire.
	noticeBuffer = 64

	// catchUpsAtOnce bounds the browsers of a process that read what they missed, each with one consumer at a
	// time. The others wait, for example after the panel was restarted and all browsers return.
	catchUpsAtOnce = 16
	// catchUpsOfCompany is the part of one company: the browsers of others catch up meanwhile.
	catchUpsOfCompany = 4
	// catchUpWait is how long a browser waits for its turn. Then it loads its pages instead, as after
	// catchUpEvents: the most that it reads, a busy hour of a company.
	catchUpWait   = 30 * time.Second
	catchUpEvents = 1000
	// resetMessages is how many of the last messages of each stream a browser gets again when it loads its pages: the
	// recorder may not have stored them yet. The browser drops those that its pages have.
	resetMessages = catchUpEvents / 4

	// feedKeep is how long a feed stays after its last browser: its consumers cost NATS much more when they begin than
	// while nothing happens, and a browser that reloads a page is back at once.
	feedKeep = 30 * time.Second
)

var errMissedTooMuch = errors.New("the browser has missed more events than it reads again")

var (
	empty = json.RawMessage(`{}`)
	reset = Event{Name: "reset", Data: empty} // the browser loads its pages
)

// Browser is one event stream of a user.
type Browser struct {
	CompanyID string
	AppIDs    []string // of the company, sorted
	UserID    string
	From      *Cursor // of the last event that it has; nil: from now on
}

// Hub serves the browsers of a process. All browsers of a company share one reader of the streams. It is safe
// for concurrent use.
type Hub struct {
	stopping context.Context // done when the process stops
	bus      Bus
	calls    rpc.Subscriber
	catchUps *slot.Pool

	mu    sync.Mutex
	feeds map[string]*feed // by source
}

// NewHub returns a hub. It reads nothing until a browser comes. Once stopping is done, a feed ends with its last
// browser.
func NewHub(stopping context.Context, b Bus, calls rpc.Subscriber) *Hub {
	return &Hub{
		stopping: stopping,
		bus:      b,
		calls:    calls,
		catchUps: slot.NewPool(catchUpsAtOnce, 1),
		feeds:    make(map[string]*feed),
	}
}

// Run calls send for every event until ctx is done, send fails, NATS disconnects, or the browser is too slow.
// It returns the error of send, ctx or NATS, and nil when the browser has to come back. send waits for the
// browser, until its context is done.
func (h *Hub) Run(ctx context.Context, b Browser, send func(context.Context, Event) error) error {
	notices := make(chan Notice, noticeBuffer)
	stop, err := rpc.Listen(h.calls, subject.PanelNotice(b.CompanyID), "", rpc.DecodeJSON[Notice], func(n Notice) {
		select {
		case notices <- n:
		default:
		}
	})
	if err != nil {
		return err
	}
	defer stop()
	f := h.join(source{companyID: b.CompanyID, appIDs: b.AppIDs})
	defer h.leave(f)
	events, at, err := f.subscribe(ctx)
	if err != nil {
		return err
	}
	defer f.unsubscribe(events)
	at, err = h.catchUp(ctx, f, b, at, send)
	if err != nil {
		return err
	}
	emit := func(e Event) error { return send(ctx, e) }
	if err := emit(Event{ID: at.String(), Name: "ready", Data: empty}); err != nil {
		return err
	}
	return h.follow(ctx, b, at, events, notices, emit)
}

// join returns the feed of a source, and starts it for its first browser.
func (h *Hub) join(s source) *feed {
	h.mu.Lock()
	defer h.mu.Unlock()
	f := h.feeds[s.key()]
	if f == nil || f.hasEnded() {
		ctx, cancel := context.WithCancel(context.Background())
		f = newFeed(h.bus, s, cancel)
		h.feeds[s.key()] = f
		go f.run(ctx)
	}
	f.keep()
	f.users++
	return f
}

// leave stops the feed feedKeep after its last browser, or when the process stops, unless another one has joined.
func (h *Hub) leave(f *feed) {
	h.mu.Lock()
	defer h.mu.Unlock()
	f.users--
	if f.users > 0 {
		return
	}
	idle, cancel := context.WithTimeout(h.stopping, feedKeep)
	keep := context.AfterFunc(idle, func() { h.stopIdle(f) })
	f.keep = func() { keep(); cancel() }
}

// stopIdle stops a feed without browsers.
func (h *Hub) stopIdle(f *feed) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if f.users > 0 {
		return // a browser has joined meanwhile
	}
	f.keep()
	f.cancel()
	if h.feeds[f.key()] == f {
		delete(h.feeds, f.key())
	}
}

// catchUp sends the stored events between the browser's cursor and that of the feed, and returns the cursor from
// which the feed goes on. It sends "reset" if events may be missing: the streams have dropped those after the
// browser's cursor, were recreated, or have lost messages; the browser has missed too much, or has waited too long.
//
// A browser holds its place while it reads. One that does not read loses it to those that wait, and comes back later.
func (h *Hub) catchUp(
	ctx context.Context, f *feed, b Browser, to Cursor, send func(context.Context, Event) error,
) (Cursor, error) {
	if b.From == nil {
		return to, nil
	}
	share := slot.Share{Of: "company", Key: b.CompanyID, Most: catchUpsOfCompany}
	held, err := h.catchUps.Acquire(ctx, catchUpWait, share)
	if _, full := errors.AsType[*slot.FullError](err); full {
		return to, send(ctx, reset)
	}
	if err != nil {
		return to, err
	}
	defer held.Release()
	ctx, cut := context.WithCancel(ctx)
	defer cut()
	held.Watch(cut)
	emit := func(e Event) error {
		held.Await()
		err := send(ctx, e)
		held.Moved(len(e.Data))
		return err
	}
	err = h.replay(ctx, f, *b.From, to, emit)
	if errors.Is(err, errMissedTooMuch) {
		if err := emit(reset); err != nil {
			return to, err
		}
		return to, h.replayBetween(ctx, f, to.before(resetMessages), to, emit)
	}
	return laterOf(*b.From, to), err
}

// replay emits the stored events between two cursors, or errMissedTooMuch.
func (h *Hub) replay(ctx context.Context, f *feed, at, to Cursor, emit func(Event) error) error {
	if lost, err := h.outOfReach(ctx, at); lost || err != nil {
		return cmp.Or(err, errMissedTooMuch)
	}
	return h.replayBetween(ctx, f, at, to, emit)
}

// replayBetween is replay of cursors that the streams still have.
func (h *Hub) replayBetween(ctx context.Context, f *feed, at, to Cursor, emit func(Event) error) error {
	remaining := catchUpEvents
	for _, r := range f.ranges(at) {
		i := sourceOf(r.Stream)
		if at.last[i] >= to.last[i] {
			continue // the browser comes from another replica, whose feed was ahead of this one
		}
		for d, err := range h.bus.Read(ctx, r) {
			if err != nil {
				return err
			}
			if d.Sequence > to.last[i] {
				break // the feed has it
			}
			remaining--
			if remaining < 0 {
				return errMissedTooMuch
			}
			at.advance(i, d.Place())
			if err := f.read(d, at.emitter(emit)); err != nil {
				return err
			}
		}
	}
	return nil
}

// advance moves the cursor to an event of a stream.
func (c *Cursor) advance(source int, to bus.Place) {
	c.last[source] = to.Sequence
	c.time = laterTime(c.time, to.Time)
}

func laterTime(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// before returns the cursor a number of messages earlier in each stream.
func (c Cursor) before(messages uint64) Cursor {
	for i, last := range c.last {
		c.last[i] = last - min(last, messages)
	}
	return c
}

// laterOf returns the later of two cursors, in each stream.
func laterOf(a, b Cursor) Cursor {
	for i := range a.last {
		a.last[i] = max(a.last[i], b.last[i])
	}
	a.time = laterTime(a.time, b.time)
	return a
}

// emitter adds the cursor to events.
func (c *Cursor) emitter(emit func(Event) error) func(Event) error {
	return func(e Event) error {
		e.ID = c.String()
		return emit(e)
	}
}

// outOfReach reports whether the streams no longer have everything after a cursor, are in another epoch, or have lost
// what the browser has.
func (h *Hub) outOfReach(ctx context.Context, from Cursor) (bool, error) {
	states, err := statesOf(ctx, h.bus)
	if err != nil || from.epochs != epochsOf(states) {
		return true, err
	}
	for i, stream := range streams() {
		last := from.last[i]
		if last > states[i].Last || last+1 < states[i].First {
			return true, nil
		}
		held, err := h.bus.Holds(ctx, stream, bus.Place{Sequence: last, Time: from.time})
		if err != nil || !held {
			return true, err
		}
	}
	return false, nil
}

// follow emits new events and notices. It skips events that the browser has from another replica, which was
// ahead of this one.
func (h *Hub) follow(
	ctx context.Context, b Browser, at Cursor, s *subscriber, notices <-chan Notice, emit func(Event) error,
) error {
	openChats := newOpenChats(h.calls, b.CompanyID)
	defer openChats.close()
	tick := time.NewTicker(PresenceTTL / 3)
	defer tick.Stop()
	emitAt := at.emitter(emit)
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			openChats.expire(now)
		case signal := <-openChats.signals:
			err = openChats.emit(signal, time.Now(), emit)
		case n := <-notices:
			err = b.emitNotice(n, openChats, emit)
		case e, open := <-s.events:
			if !open {
				return endOf(s)
			}
			if e.place.Sequence <= at.last[e.source] {
				continue
			}
			at.advance(e.source, e.place)
			err = emitAt(e)
		}
		if err != nil {
			return err
		}
	}
}

// endOf returns why a feed has closed a subscriber. A slow browser only has to come back.
func endOf(s *subscriber) error {
	if errors.Is(s.ended, errSlow) {
		return nil
	}
	return s.ended
}
