package live

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/proto-events/subject"
)

// subscriberBuffer is the number of events that may wait for a browser. With one more it is closed, and
// catches up when it returns.
const subscriberBuffer = 256

var (
	errEnded = errors.New("a stream's reader has ended")
	errSlow  = errors.New("the browser does not keep up")
)

// source is what the browsers of a company read.
type source struct {
	companyID string
	appIDs    []string // of the company, sorted
}

func (s source) key() string { return s.companyID + "|" + strings.Join(s.appIDs, ",") }

// ranges returns the company's parts of the streams after a cursor. Their order is that of a [Cursor].
func (s source) ranges(at Cursor) []bus.Range {
	inbound := []string{subject.ControlChanged(s.companyID, "*")}
	var replies []string
	for _, app := range s.appIDs {
		inbound = append(
			inbound, subject.VisitorMessage(app, "*"), subject.VisitorRegistered(app, "*"),
			subject.ChatRated(app, "*"),
		)
		replies = append(replies, subject.Reply(app, "*"))
	}
	ranges := []bus.Range{{Stream: subject.Inbound, Filters: inbound, After: at.last[0]}}
	if len(replies) > 0 {
		ranges = append(ranges, bus.Range{Stream: subject.Replies, Filters: replies, After: at.last[1]})
	}
	return append(ranges,
		bus.Range{Stream: subject.Outbound, Filters: []string{subject.OutboundMessage("*", s.companyID)}, After: at.last[2]},
		bus.Range{Stream: subject.Status, Filters: []string{subject.MessageStatus(s.companyID, "*")}, After: at.last[3]})
}

// feed reads the streams once for all browsers of a company in this process. It runs from its first browser
// until feedKeep after its last one left, or until the streams cannot be read. When the process stops, a feed without
// browsers ends at once.
type feed struct {
	source
	bus     Bus
	cancel  context.CancelFunc
	started chan struct{} // closed when the feed has its first cursor, or has ended
	users   int           // browsers; guarded by the hub's lock
	keep    func()        // ends the wait for a browser after the last one; guarded by the hub's lock

	mu          sync.Mutex
	at          Cursor // of the last event that the subscribers got
	subscribers map[*subscriber]struct{}
	ended       error // nil: the feed runs
}

// subscriber is the end of a feed at a browser.
type subscriber struct {
	events chan Event // closed when the feed has ended or the browser is too slow
	ended  error      // why; set before the close
}

// run reads until ctx is done or a stream cannot be read.
func (f *feed) run(ctx context.Context) {
	err := f.start(ctx)
	if err == nil {
		err = f.follow(ctx)
	}
	f.end(err)
}

// start sets the cursor to the end of the streams.
func (f *feed) start(ctx context.Context) error {
	states, err := statesOf(ctx, f.bus)
	if err != nil {
		return err
	}
	at := Cursor{epochs: epochsOf(states)}
	for i := range states {
		at.advance(i, bus.Place{Sequence: states[i].Last, Time: states[i].LastTime})
	}
	f.mu.Lock()
	f.at = at
	f.mu.Unlock()
	close(f.started)
	return nil
}

// statesOf returns the states of the streams of a [Cursor].
func statesOf(ctx context.Context, b Bus) (states [4]bus.StreamState, err error) {
	for i, stream := range streams() {
		states[i], err = b.State(ctx, stream)
		if err != nil {
			return states, err
		}
	}
	return states, nil
}

func (f *feed) follow(ctx context.Context) error {
	ranges := f.ranges(f.at)
	for i := range ranges {
		ranges[i].Follow = true
	}
	for d, err := range f.bus.Tail(ctx, ranges...) {
		if err != nil {
			return err
		}
		if err := f.publish(d); err != nil {
			return err
		}
	}
	return apperr.Unreachable("NATS", errEnded)
}

// publish gives a delivery to all subscribers. It never waits for one.
func (f *feed) publish(d bus.Delivery) error {
	var events []Event
	err := f.read(d, func(e Event) error {
		events = append(events, e)
		return nil
	})
	if err != nil {
		return err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.at.advance(sourceOf(d.Stream), d.Place())
	for s := range f.subscribers {
		for _, e := range events {
			if len(s.events) == cap(s.events) {
				f.closeLocked(s, errSlow)
				break
			}
			s.events <- e
		}
	}
	return nil
}

// subscribe returns a subscriber that gets all events after the cursor. It waits until the feed has one.
func (f *feed) subscribe(ctx context.Context) (*subscriber, Cursor, error) {
	select {
	case <-f.started:
	case <-ctx.Done():
		return nil, Cursor{}, ctx.Err()
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.ended != nil {
		return nil, Cursor{}, f.ended
	}
	s := &subscriber{events: make(chan Event, subscriberBuffer)}
	f.subscribers[s] = struct{}{}
	return s, f.at, nil
}

func (f *feed) unsubscribe(s *subscriber) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.subscribers, s)
}

func (f *feed) end(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.ended = err
	for s := range f.subscribers {
		f.closeLocked(s, err)
	}
	select {
	case <-f.started:
	default:
		close(f.started)
	}
}

func (f *feed) closeLocked(s *subscriber, reason error) {
	s.ended = reason
	close(s.events)
	delete(f.subscribers, s)
}

// hasEnded reports whether new browsers need another feed.
func (f *feed) hasEnded() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ended != nil
}

func newFeed(b Bus, s source, cancel context.CancelFunc) *feed {
	s.appIDs = slices.Clone(s.appIDs)
	return &feed{
		source:      s,
		bus:         b,
		cancel:      cancel,
		keep:        func() {},
		started:     make(chan struct{}),
		subscribers: make(map[*subscriber]struct{}),
	}
}
