package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/slot"
	"github.com/parley-chat/parley/proto-events/subject"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// memoryBus is a [Bus] whose STATUS has that many events of each company. The other streams are empty.
type memoryBus struct {
	Bus
	events uint64
	// replaced is when the streams got other events in the place of those that they have lost; zero: they lost none.
	replaced time.Time

	mu      sync.Mutex
	notice  func(Notice)
	signals map[string]bool // subjects of the subscriptions
	tails   int             // feeds that read
	begun   int             // feeds that have begun to read
}

func hubOf(t *testing.T, b *memoryBus) *Hub { return NewHub(t.Context(), b, b) }

func (b *memoryBus) State(_ context.Context, stream string) (bus.StreamState, error) {
	if stream == subject.Status {
		return bus.StreamState{First: 1, Last: b.events}, nil
	}
	return bus.StreamState{First: 1}, nil
}

func (b *memoryBus) Read(_ context.Context, s bus.Range) iter.Seq2[bus.Delivery, error] {
	return func(yield func(bus.Delivery, error) bool) {
		company := s.Filters[0][len("chat.status.") : len("chat.status.")+len(companyA)]
		for n := s.After + 1; n <= b.events; n++ {
			if !yield(statusOf(company, n), nil) {
				return
			}
		}
	}
}

func (b *memoryBus) Holds(_ context.Context, _ string, at bus.Place) (bool, error) {
	return !at.Time.Before(b.replaced), nil
}

// feeds returns the feeds that read, and those that have begun to.
func (b *memoryBus) feeds() (tails, begun int) {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.tails, b.begun
}

const companyA, companyB = "c0000000-0000-4000-8000-000000000001", "c0000000-0000-4000-8000-000000000002"

func statusOf(company string, n uint64) bus.Delivery {
	e := event.MessageStatusChanged{
		CompanyID: company, MessageID: fmt.Sprintf("d0000000-0000-4000-8000-%012d", n), Status: chat.StatusDelivered, At: time.Now(),
	}
	data, _ := json.Marshal(e)
	return bus.Delivery{Stream: subject.Status, Subject: e.Subject(), Data: data, Sequence: n}
}

func (b *memoryBus) Tail(ctx context.Context, _ ...bus.Range) iter.Seq2[bus.Delivery, error] {
	return func(func(bus.Delivery, error) bool) {
		b.count(1)
		defer b.count(-1)
		<-ctx.Done()
	}
}

func (b *memoryBus) count(tails int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.tails += tails
	b.begun += max(tails, 0)
}

// Subscribe implements [rpc.Subscriber].
func (b *memoryBus) Subscribe(filter, _ string, heard func(string, []byte)) (stop func(), err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if filter == subject.PanelNotice(companyA) || filter == subject.PanelNotice(companyB) {
		b.notice = func(n Notice) { heard(filter, n.AppendJSON(nil)) }
		return func() {}, nil
	}
	b.signals[filter] = true
	return func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		delete(b.signals, filter)
	}, nil
}

// running is a browser of a hub.
type running struct {
	got  chan Event // what it has read
	done chan error
	stop context.CancelFunc
}

// browse starts a browser that has missed everything. One that is stalled reads nothing.
func browse(t *testing.T, h *Hub, company string, stalled bool) running {
	ctx, stop := context.WithCancel(t.Context())
	r := running{got: make(chan Event, 2*catchUpEvents), done: make(chan error, 1), stop: stop}
	go func() {
		r.done <- h.Run(ctx, Browser{CompanyID: company, UserID: "agent", From: &Cursor{epochs: epochsOf([4]bus.StreamState{})}}, func(ctx context.Context, e Event) error {
			if stalled {
				<-ctx.Done()
				return ctx.Err()
			}
			r.got <- e
			return nil
		})
	}()
	return r
}

// names counts what a browser has read by name.
func (r running) names() map[string]int {
	n := map[string]int{}
	for len(r.got) > 0 {
		n[(<-r.got).Name]++
	}
	return n
}

// Browsers that read nothing hold a few of the places of their company. They lose them to those that wait,
// and other companies do not notice.
func TestStalledCatchUps(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := hubOf(t, &memoryBus{events: 5})
		var stalled []running
		for range 2 * catchUpsAtOnce {
			stalled = append(stalled, browse(t, h, companyA, true))
		}
		synctest.Wait()
		other := browse(t, h, companyB, false)
		synctest.Wait()
		if got := other.names(); got["status"] != 5 || got["ready"] != 1 {
			t.Errorf("another company: got %v, want all events and ready at once", got)
		}
		colleague := browse(t, h, companyA, false)
		for began := time.Now(); len(colleague.got) == 0; time.Sleep(time.Second) {
			if time.Since(began) > catchUpWait {
				t.Fatal("a colleague reads nothing")
			}
		}
		synctest.Wait()
		if got := colleague.names(); got["status"] != 5 || got["ready"] != 1 {
			t.Errorf("a colleague: got %v, want all events and ready", got)
		}
		cut := 0
		for _, r := range append(stalled, other, colleague) {
			select {
			case err := <-r.done:
				if !errors.Is(err, context.Canceled) {
					t.Errorf("a stalled browser: got %v, want that it was cut off", err)
				}
				cut++
			default:
				r.stop()
				<-r.done
			}
		}
		if cut < catchUpsOfCompany {
			t.Errorf("got %d browsers cut off, want those that were in the way", cut)
		}
	})
}

// A browser that has missed too much, or waits too long, loads its pages instead. It goes on from the end of
// the streams.
func TestCatchUpEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h := hubOf(t, &memoryBus{events: catchUpEvents})
		exactly := browse(t, h, companyA, false)
		synctest.Wait()
		if got := exactly.names(); got["status"] != catchUpEvents || got["reset"] != 0 {
			t.Errorf("missed the maximum: got %v, want all events", got)
		}
		exactly.stop()
		<-exactly.done
		h = hubOf(t, &memoryBus{events: 100 * catchUpEvents})
		more := browse(t, h, companyA, false)
		synctest.Wait()
		more.stop()
		<-more.done
		var last Event
		var again int // events after the reset
		got := map[string]int{}
		for len(more.got) > 0 {
			last = <-more.got
			got[last.Name]++
			if last.Name == "status" && got["reset"] == 1 {
				again++
			}
		}
		want := Cursor{
			last: [4]uint64{0, 0, 0, 100 * catchUpEvents}, epochs: epochsOf([4]bus.StreamState{}),
		}.String()
		if got["status"]-again > catchUpEvents || got["reset"] != 1 || last.Name != "ready" || last.ID != want {
			t.Errorf("missed more: got %v and %+v, want at most %d events, a reset, and ready at %s", got, last, catchUpEvents, want)
		}
		if again != resetMessages { // the recorder may not have stored them when the browser loads its pages
			t.Errorf("got %d events after the reset, want the last %d", again, resetMessages)
		}
		replaced := browse(t, hubOf(t, &memoryBus{events: 5, replaced: time.Now()}), companyA, false)
		synctest.Wait()
		replaced.stop()
		<-replaced.done
		if got := replaced.names(); got["reset"] != 1 || got["ready"] != 1 {
			t.Errorf("what the browser has was lost and replaced: got %v, want a reset and ready", got)
		}
		for range catchUpsOfCompany { // not slow: busy elsewhere
			_, err := h.catchUps.Acquire(t.Context(), 0, slot.Share{Of: "company", Key: companyA, Most: catchUpsOfCompany})
			if err != nil {
				t.Fatal(err)
			}
		}
		waits := browse(t, h, companyA, false)
		time.Sleep(catchUpWait)
		synctest.Wait()
		waits.stop()
		<-waits.done
		if got := waits.names(); got["status"] != 0 || got["reset"] != 1 || got["ready"] != 1 {
			t.Errorf("no place in time: got %v, want a reset and ready", got)
		}
	})
}

// A stream follows the conversations that were named last.
func TestOpenChatsAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &memoryBus{signals: map[string]bool{}}
		r := browse(t, hubOf(t, b), companyA, false)
		synctest.Wait()
		const chats = 3 * openChatsOfStream
		name := func(chat int) {
			b.notice(Notice{CompanyID: companyA, Kind: Presence, UserID: "agent", AppID: "app", VisitorID: fmt.Sprint(chat)})
			time.Sleep(time.Millisecond)
			synctest.Wait()
		}
		for chat := range chats {
			name(chat)
			name(0) // shown all the time
		}
		if len(b.signals) > 2*openChatsOfStream {
			t.Errorf("got %d subscriptions, want at most two for each of %d conversations", len(b.signals), openChatsOfStream)
		}
		for _, chat := range []int{0, chats - 1, chats - openChatsOfStream + 1} {
			if !b.signals[subject.Typing("*", "app", fmt.Sprint(chat))] {
				t.Errorf("conversation %d: got no subscription, want that of one named lately", chat)
			}
		}
		r.stop()
		<-r.done
		if len(b.signals) != 0 {
			t.Errorf("got %d subscriptions after the end, want none", len(b.signals))
		}
	})
}

// A browser that comes and goes keeps one feed, which ends some time after the last one, or with the process.
func TestFeedOutlivesItsBrowsers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &memoryBus{}
		stopping, stop := context.WithCancel(t.Context())
		h := NewHub(stopping, b, b)
		visit := func() {
			r := browse(t, h, companyA, false)
			synctest.Wait()
			if got := r.names(); got["ready"] != 1 {
				t.Errorf("got %v, want ready", got)
			}
			r.stop()
			<-r.done
			synctest.Wait()
		}
		for range 3 {
			visit()
			time.Sleep(feedKeep - time.Second)
			if tails, begun := b.feeds(); tails != 1 || begun != 1 {
				t.Errorf("got %d feeds, %d begun, want the first", tails, begun)
			}
		}
		time.Sleep(2 * time.Second)
		if tails, _ := b.feeds(); tails != 0 {
			t.Errorf("got %d feeds some time after the last browser, want none", tails)
		}
		visit()
		stop()
		if tails, begun := b.feeds(); tails != 0 || begun != 2 {
			t.Errorf("got %d feeds, %d begun, of a stopped process, want none of two", tails, begun)
		}
	})
}
