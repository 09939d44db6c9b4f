package bus_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/timetest"
)

// consumer is a running Consume.
type consumer struct {
	t    testing.TB
	stop context.CancelFunc
	err  chan error
}

// consume runs c on REPLIES until the test ends or stop is called.
func consume(t testing.TB, b *bus.Bus, c bus.Consumer) *consumer {
	t.Helper()
	if c.Stream == "" {
		c.Stream = subject.Replies
	}
	if c.Durable == "" {
		c.Durable = "tester"
	}
	if c.AckWait == 0 {
		c.AckWait = time.Second
	}
	ctx, cancel := context.WithCancel(context.Background())
	r := &consumer{t: t, stop: cancel, err: make(chan error, 1)}
	go func() { r.err <- b.Consume(ctx, c) }()
	t.Cleanup(r.end)
	return r
}

func (r *consumer) end() {
	r.t.Helper()
	r.stop()
	select {
	case err := <-r.err:
		if err != nil {
			r.t.Errorf("Consume: got %v, want nil", err)
		}
		r.err <- nil
	case <-time.After(patience):
		r.t.Fatal("Consume does not return")
	}
}

func publish(t testing.TB, b *bus.Bus, e event.Event) {
	t.Helper()
	if err := b.Publish(t.Context(), event.Derived(), e); err != nil {
		t.Fatalf("publishing: %v", err)
	}
}

// publishAll publishes numbered events, each per visitor, in order per visitor.
func publishAll(t testing.TB, b *bus.Bus, keys, from, each int) {
	t.Helper()
	var visitors sync.WaitGroup
	for k := range keys {
		visitors.Go(func() {
			for n := from; n < from+each; n++ {
				if err := b.Publish(t.Context(), event.Derived(), reply(fmt.Sprintf("visitor%d", k), n)); err != nil {
					t.Errorf("publishing: %v", err)
				}
			}
		})
	}
	visitors.Wait()
}

// awaitEmpty waits until the consumer has handled all messages of the stream. It compares sequences, because
// the server updates the pending count a moment after it has acknowledged a publish.
func awaitEmpty(t testing.TB, b *bus.Bus, durable string) {
	t.Helper()
	timetest.Until(t, "the consumer has nothing left", func() bool {
		s, err := b.JetStream().Stream(t.Context(), subject.Replies)
		if err != nil {
			return false
		}
		g, err := b.Group(t.Context(), subject.Replies, durable)
		if err != nil {
			return false
		}
		for partition := range subject.Partitions(s.CachedInfo().Config.SubjectTransform.Destination) {
			last, err := s.GetLastMsgForSubject(t.Context(), subject.InPartition(">", partition))
			if errors.Is(err, jetstream.ErrMsgNotFound) {
				continue
			}
			if err != nil || g.Of(subject.Published(last.Subject)).AckFloor < last.Sequence {
				return false
			}
		}
		return true
	})
}

func TestConsumePassesTheDelivery(t *testing.T) {
	t.Parallel()
	b := bustest.Open(t, bustest.Start(t).URL())
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	e := reply("visitor", 7)
	if err := b.Publish(event.WithTraceParent(t.Context(), trace), event.Derived(), e); err != nil {
		t.Fatal(err)
	}
	type call struct {
		d     bus.Delivery
		trace string
	}
	calls := make(chan call, 1)
	consume(t, b, bus.Consumer{Handle: func(ctx context.Context, d bus.Delivery) error {
		calls <- call{d, event.TraceParent(ctx)}
		return nil
	}})
	got := receive(t, "a delivery", calls)
	d := got.d
	if d.Subject != e.Subject() || string(d.Data) != string(e.AppendJSON(nil)) || d.ID != e.EventID() || d.Sequence != 1 ||
		d.Attempt != 1 || time.Since(d.Time) > time.Minute || d.Header.Get("ce-type") != e.Type() {
		t.Errorf("got %+v", d)
	}
	if got.trace != trace {
		t.Errorf("got traceparent %q, want %q", got.trace, trace)
	}
	if _, ok := d.Header["Nats-Pin-Id"]; ok {
		t.Error("got the server's pin in the headers, want it removed")
	}
	awaitEmpty(t, b, "tester")
}

func TestConsumeFiltersSubjects(t *testing.T) {
	t.Parallel()
	b := bustest.Open(t, bustest.Start(t).URL())
	subjects := make(chan string, 10)
	consume(t, b, bus.Consumer{
		Stream: subject.Sends, Filters: []string{subject.AllPushes, subject.AllCompanyMessages},
		Handle: func(_ context.Context, d bus.Delivery) error { subjects <- d.Subject; return nil },
	})
	publish(t, b, event.VisitorRegistered{ID: "1", AppID: "app", ChatUserID: "user"})
	publish(t, b, company("company", "chat"))
	publish(t, b, event.PushAccepted{MessageID: "3", CompanyID: "company", TemplateID: "template"})
	got := []string{receive(t, "the first", subjects), receive(t, "the second", subjects)}
	slices.Sort(got)
	if want := []string{"chat.in.message.company.chat", "chat.in.push.company.template"}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// The disposition per error code on a real stream: the number of handler calls, and whether a dead letter is published.
func TestDispositionOfEachCode(t *testing.T) {
	t.Parallel()
	url := bustest.Start(t).URL()
	b := bustest.Open(t, url)
	dead := bustest.Collect(t, url, subject.AllDead)
	cases := map[string]struct {
		err       error
		failures  int // failures before the handler succeeds
		wantCalls int
		wantDead  bool
	}{
		"ok":               {nil, 0, 1, false},
		"conflict":         {apperr.New(apperr.Conflict, "R", "m"), 99, 1, false},
		"invalid":          {apperr.New(apperr.Invalid, "R", "m"), 99, 1, true},
		"unauthenticated":  {apperr.New(apperr.Unauthenticated, "R", "m"), 99, 1, true},
		"not-found-yet":    {apperr.New(apperr.NotFound, "R", "m"), 3, 4, false},
		"too-many":         {apperr.New(apperr.TooMany, "R", "m"), 3, 4, false},
		"unavailable":      {apperr.Unreachable("MongoDB", errors.New("away")), 4, 5, false},
		"internal-passing": {apperr.New(apperr.Internal, "R", "m"), 4, 5, false},
		"internal":         {apperr.New(apperr.Internal, "R", "m"), 99, 5, true},
		"uncoded":          {errors.New("oops"), 99, 5, true},
	}
	var mu sync.Mutex
	attempts := make(map[string][]int)
	consume(t, b, bus.Consumer{Handle: func(_ context.Context, d bus.Delivery) error {
		name := d.Subject[strings.LastIndexByte(d.Subject, '.')+1:]
		mu.Lock()
		defer mu.Unlock()
		attempts[name] = append(attempts[name], d.Attempt)
		if c := cases[name]; len(attempts[name]) <= c.failures {
			return fmt.Errorf("handling: %w", c.err)
		}
		return nil
	}})
	wantDead := 0
	for name, c := range cases {
		publish(t, b, reply(name, 0))
		if c.wantDead {
			wantDead++
		}
	}
	gotDead := make(map[string]bool)
	for _, m := range dead.Await(wantDead) {
		s := m.Header.Get(bus.HeaderDeadSubject)
		gotDead[s[strings.LastIndexByte(s, '.')+1:]] = true
	}
	awaitEmpty(t, b, "tester")
	mu.Lock()
	defer mu.Unlock()
	for name, c := range cases {
		want := []int{1, 2, 3, 4, 5}[:c.wantCalls]
		if !slices.Equal(attempts[name], want) {
			t.Errorf("%s: got attempts %v, want %v", name, attempts[name], want)
		}
		if gotDead[name] != c.wantDead {
			t.Errorf("%s: got a dead letter %v, want %v", name, gotDead[name], c.wantDead)
		}
	}
	if dead.Pending() != 0 {
		t.Errorf("got %d more dead letters, want none", dead.Pending())
	}
}

func TestDeadLetterHoldsTheOriginalAndTheReason(t *testing.T) {
	t.Parallel()
	url := bustest.Start(t).URL()
	registry := prometheus.NewRegistry()
	b := bustest.OpenConfig(t, bus.Config{URL: url, Registerer: registry})
	dead := bustest.Collect(t, url, subject.AllDead)
	e := reply("visitor", 7)
	publish(t, b, e)
	for _, durable := range []string{"first", "second"} { // each consumer publishes its own dead letter
		consume(t, b, bus.Consumer{Durable: durable, Handle: func(context.Context, bus.Delivery) error {
			return apperr.New(apperr.Invalid, "R", "no such\tthing").Wrap(errors.New("cause"))
		}})
	}
	got := make(map[string]*nats.Msg)
	for _, m := range dead.Await(2) {
		got[m.Header.Get(bus.HeaderDeadConsumer)] = m
	}
	for _, durable := range []string{"first", "second"} {
		m := got[durable]
		if m == nil {
			t.Fatalf("got no dead letter of consumer %s, want one", durable)
		}
		if want := "chat.dead.REPLIES." + durable; m.Subject != want {
			t.Errorf("got subject %s, want %s", m.Subject, want)
		}
		if string(m.Data) != string(e.AppendJSON(nil)) {
			t.Errorf("got payload %s, want the original", m.Data)
		}
		for name, want := range map[string]string{
			"ce-id": e.EventID(), "ce-type": e.Type(), "ce-source": "/test",
			bus.HeaderDeadStream: "REPLIES", bus.HeaderDeadSubject: e.Subject(), bus.HeaderDeadSequence: "1",
			bus.HeaderDeadAttempts: "1", bus.HeaderDeadReason: "invalid: no such thing: cause", bus.HeaderDeadMessage: "no such thing",
			bus.HeaderDeadMessageID: e.EventID(), bus.HeaderDeadSender: "",
		} {
			if got := m.Header.Get(name); got != want {
				t.Errorf("%s: got %q, want %q", name, got, want)
			}
		}
		if _, err := time.Parse(time.RFC3339, m.Header.Get(bus.HeaderDeadTime)); err != nil {
			t.Errorf("got time %q", m.Header.Get(bus.HeaderDeadTime))
		}
	}
	timetest.Until(t, "DEAD stores both", func() bool { return streamMessages(t, b, subject.Dead) == 2 })
}

// GaveUp is called before the dead letter is published and before the next delivery of the key, is retried
// until it succeeds, and is then called no more.
func TestGaveUpIsCalledBeforeTheDeadLetter(t *testing.T) {
	t.Parallel()
	b := bustest.Open(t, bustest.Start(t).URL())
	publish(t, b, reply("visitor", 0))
	publish(t, b, reply("visitor", 1))
	var calls atomic.Int64
	next := make(chan int64, 1)
	consume(t, b, bus.Consumer{
		Handle: func(_ context.Context, d bus.Delivery) error {
			if d.Sequence == 1 {
				return apperr.New(apperr.Invalid, "R", "m")
			}
			next <- calls.Load()
			return nil
		},
		GaveUp: func(_ context.Context, d bus.Delivery) error {
			if got := streamMessages(t, b, subject.Dead); got != 0 || d.Sequence != 1 {
				t.Errorf("got a call for %d with %d dead letters, want one for 1 before its dead letter", d.Sequence, got)
			}
			if calls.Add(1) < 3 {
				return apperr.Unreachable("store", errors.New("away"))
			}
			return nil
		},
	})
	if got := <-next; got != 3 {
		t.Errorf("got the next delivery after %d calls, want after 3", got)
	}
	awaitEmpty(t, b, "tester")
	if got := streamMessages(t, b, subject.Dead); got != 1 || calls.Load() != 3 {
		t.Errorf("got %d dead letters and %d calls at the end, want 1 and 3", got, calls.Load())
	}
}

// The context of a handler that does not return ends after the grace of a stopping consumer. The next reader
// handles the delivery again.
func TestHandoverInterruptsAHandler(t *testing.T) {
	t.Parallel()
	b := bustest.Open(t, bustest.Start(t).URL())
	publish(t, b, reply("visitor", 0))
	started := make(chan struct{})
	first := consume(t, b, bus.Consumer{HandoverGrace: time.Millisecond, Handle: func(ctx context.Context, _ bus.Delivery) error {
		close(started)
		<-ctx.Done()
		return apperr.New(apperr.Unavailable, "R", "m").Wrap(ctx.Err())
	}})
	<-started
	first.end()
	attempts := make(chan int, 1)
	consume(t, b, bus.Consumer{Handle: func(_ context.Context, d bus.Delivery) error {
		attempts <- d.Attempt
		return nil
	}})
	awaitEmpty(t, b, "tester")
	if got := <-attempts; got != 2 {
		t.Errorf("got attempt %d, want 2", got)
	}
	if got := streamMessages(t, b, subject.Dead); got != 0 {
		t.Errorf("got %d dead letters, want none", got)
	}
}

// A delivery leaves the consumer only after DEAD has stored it.
func TestDeadLetterWaitsForRoom(t *testing.T) {
	t.Parallel()
	url := bustest.StartSized(t, bus.StreamSettings{MaxBytes: 2048}).URL()
	b := bustest.Open(t, url)
	progress := bustest.CollectProgress(t, url, subject.Replies, "tester")
	dead, err := b.JetStream().Stream(t.Context(), subject.Dead)
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := b.JetStream().Publish(t.Context(), subject.DeadLetter("X", "y"), make([]byte, 500)); err != nil {
			break
		}
	}
	var calls atomic.Int64
	publish(t, b, reply("visitor", 0))
	consume(t, b, bus.Consumer{Handle: func(context.Context, bus.Delivery) error {
		calls.Add(1)
		return apperr.New(apperr.Invalid, "R", "m")
	}})
	timetest.Until(t, "the handler was called", func() bool { return calls.Load() == 1 })
	progress.AwaitRepeated(beyondAckWait)
	c, err := b.Group(t.Context(), subject.Replies, "tester")
	if err != nil || c.Total().AckPending != 1 {
		t.Fatalf("while DEAD is full: got %+v, %v, want the delivery still pending", c, err)
	}
	if err := dead.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	awaitEmpty(t, b, "tester")
	if got := streamMessages(t, b, subject.Dead); got != 1 || calls.Load() != 1 {
		t.Errorf("got %d dead letters after %d calls, want 1 after 1", got, calls.Load())
	}
}

func TestOversizedDeadLetterDropsThePayload(t *testing.T) {
	t.Parallel()
	n := bustest.Start(t)
	b := bustest.Open(t, n.URL())
	heard := bustest.Collect(t, n.URL(), subject.AllDead)
	e := reply("visitor", 0)
	e.Receipt = true // a company's message, whose status is to become failed
	// fits with the event's headers, but not with those of a dead letter
	room := int(b.JetStream().Conn().MaxPayload()) - 700
	e.Message.Data = []byte(`{"text":"` + strings.Repeat("x", room) + `"}`)
	publish(t, b, e)
	consume(t, b, bus.Consumer{Handle: func(context.Context, bus.Delivery) error { return apperr.New(apperr.Invalid, "R", "m") }})
	m := heard.Next()
	if len(m.Data) != 0 || m.Header.Get(bus.HeaderDeadTruncated) != "true" || m.Header.Get(bus.HeaderDeadSender) != "company" {
		t.Errorf("got %d bytes and headers %v, want no payload, the truncated header and the sender", len(m.Data), m.Header)
	}
}

func TestPanicIsAnInternalError(t *testing.T) {
	t.Parallel()
	url := bustest.Start(t).URL()
	var log logbook
	b := bustest.OpenConfig(t, bus.Config{URL: url, Logger: log.logger()})
	dead := bustest.Collect(t, url, subject.AllDead)
	var calls atomic.Int64
	handled := make(chan int, 1)
	consume(t, b, bus.Consumer{Handle: func(_ context.Context, d bus.Delivery) error {
		if strings.HasSuffix(d.Subject, "bad") {
			calls.Add(1)
			panic("boom\nand more")
		}
		handled <- number(d)
		return nil
	}})
	publish(t, b, reply("bad", 0))
	publish(t, b, reply("good", 1))
	if got := receive(t, "the other key", handled); got != 1 {
		t.Errorf("got %d, want 1", got)
	}
	m := dead.Next()
	if got := m.Header.Get(bus.HeaderDeadMessage); got != "Internal error" {
		t.Errorf("got the message %q, want it without the cause", got)
	}
	if got := m.Header.Get(bus.HeaderDeadReason); !strings.HasPrefix(got, "internal: panic: boom") ||
		strings.Contains(got, "more") || strings.Contains(got, "goroutine") {
		t.Errorf("got reason %q, want the panic without its stack", got)
	}
	if calls.Load() != 5 {
		t.Errorf("got %d tries, want 5", calls.Load())
	}
	if !strings.Contains(log.String(), "consume_test.go") {
		t.Error("got no stack in the log, want one")
	}
}

func TestOrderPerKeyUnderFailuresAndConcurrency(t *testing.T) {
	t.Parallel()
	b := bustest.Open(t, bustest.Start(t).URL())
	const keys, each = 40, 50
	handled := newSequences()
	var running sync.Map
	consume(t, b, bus.Consumer{Concurrency: 32, Handle: func(_ context.Context, d bus.Delivery) error {
		if _, twice := running.LoadOrStore(d.Subject, true); twice {
			t.Errorf("two concurrent deliveries of %s", d.Subject)
		}
		defer running.Delete(d.Subject)
		if d.Attempt < 3 && rand.IntN(20) == 0 {
			return apperr.Unreachable("MongoDB", errors.New("away"))
		}
		handled.record(d)
		return nil
	}})
	publishAll(t, b, keys, 0, each)
	timetest.Until(t, "all are handled", func() bool { return handled.len() >= keys*each })
	awaitEmpty(t, b, "tester")
	handled.check(t, keys, each)
}

// With a single worker, a failing delivery does not block other keys.
func TestFailingKeyDoesNotBlockOthers(t *testing.T) {
	t.Parallel()
	url := bustest.Start(t).URL()
	b := bustest.Open(t, url)
	progress := bustest.CollectProgress(t, url, subject.Replies, "tester")
	handled := newSequences()
	var mended atomic.Bool
	consume(t, b, bus.Consumer{Concurrency: 1, Handle: func(_ context.Context, d bus.Delivery) error {
		if strings.HasSuffix(d.Subject, "visitor0") && !mended.Load() {
			return apperr.Unreachable("MongoDB", errors.New("away"))
		}
		handled.record(d)
		return nil
	}})
	publishAll(t, b, 5, 0, 10)
	timetest.Until(t, "the other four are handled", func() bool { return handled.len() == 40 })
	progress.AwaitRepeated(beyondAckWait) // waiting deliveries must not be redelivered
	mended.Store(true)
	timetest.Until(t, "the fifth is handled", func() bool { return handled.len() >= 50 })
	awaitEmpty(t, b, "tester")
	handled.check(t, 5, 10)
}

func TestSlowHandlerIsNotOvertakenByItsOwnRedelivery(t *testing.T) {
	t.Parallel()
	url := bustest.Start(t).URL()
	b := bustest.Open(t, url)
	progress := bustest.CollectProgress(t, url, subject.Replies, "tester")
	var calls atomic.Int64
	release := make(chan struct{})
	consume(t, b, bus.Consumer{Handle: func(context.Context, bus.Delivery) error {
		if calls.Add(1) == 1 {
			<-release
		}
		return nil
	}})
	publish(t, b, reply("visitor", 0))
	progress.AwaitRepeated(beyondAckWait)
	close(release)
	awaitEmpty(t, b, "tester")
	if got := calls.Load(); got != 1 {
		t.Errorf("got %d calls, want 1", got)
	}
}

// The process crashes with unfinished deliveries while more arrive. The next process handles the unfinished ones first.
func TestOrderAfterACrash(t *testing.T) {
	t.Parallel()
	url := bustest.Start(t).URL()
	b := bustest.Open(t, url)
	const keys, each = 10, 20
	publishAll(t, b, keys, 0, each)

	first, err := bus.Open(bus.Config{URL: url, Name: "first", Logger: new(logbook).logger()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(first.Close)
	bustest.AwaitReady(t, first)
	handled := newSequences()
	stuck := make(chan struct{})
	doomed := consume(t, first, bus.Consumer{Handle: func(_ context.Context, d bus.Delivery) error {
		if number(d) >= 5 {
			<-stuck
			return errors.New("dead")
		}
		handled.record(d)
		return nil
	}})
	timetest.Until(t, "some are handled", func() bool { return handled.len() == keys*5 })
	awaitPending(t, b, keys*(each-5))
	first.Crash()

	consume(t, b, bus.Consumer{Handle: func(_ context.Context, d bus.Delivery) error { handled.record(d); return nil }})
	publishAll(t, b, keys, each, each)
	timetest.Until(t, "all are handled", func() bool { return handled.len() >= keys*2*each })
	close(stuck)
	doomed.end()
	awaitEmpty(t, b, "tester")
	handled.check(t, keys, 2*each)
}

// awaitPending waits until the server counts exactly n deliveries as pending.
func awaitPending(t testing.TB, b *bus.Bus, n int) {
	t.Helper()
	timetest.Until(t, fmt.Sprintf("%d are pending", n), func() bool {
		c, err := b.Group(t.Context(), subject.Replies, "tester")
		return err == nil && c.Total().AckPending == n
	})
}

// Replicas take over from each other repeatedly, once after a crash. Every key stays in order, and no
// delivery is handled twice.
func TestReplicasStandByForEachOther(t *testing.T) {
	t.Parallel()
	url := bustest.Start(t).URL()
	b := bustest.Open(t, url)
	const keys, each, rounds = 8, 25, 4
	handled := newSequences()
	handle := func(_ context.Context, d bus.Delivery) error { handled.record(d); return nil }
	replicas := []*consumer{
		consume(t, bustest.Open(t, url), bus.Consumer{Handle: handle}),
		consume(t, bustest.Open(t, url), bus.Consumer{Handle: handle}),
	}
	for round := range rounds {
		publishing := make(chan struct{})
		go func() {
			defer close(publishing)
			publishAll(t, b, keys, round*each, each)
		}()
		timetest.Until(t, "traffic flows", func() bool { return handled.len() > round*keys*each })
		replicas = append(replicas, consume(t, bustest.Open(t, url), bus.Consumer{Handle: handle}))
		replicas[0].end()
		replicas = replicas[1:]
		receive(t, "the publishers", publishing)
		timetest.Until(t, "all are handled", func() bool { return handled.len() >= (round+1)*keys*each })
	}
	awaitEmpty(t, b, "tester")
	handled.check(t, keys, rounds*each)
}

// A stop waits for running handlers and leaves the rest to the next consumer. Each delivery is handled once.
func TestStopNeitherLosesNorDuplicates(t *testing.T) {
	t.Parallel()
	b := bustest.Open(t, bustest.Start(t).URL())
	const keys, each = 20, 50
	handled := newSequences()
	handle := func(_ context.Context, d bus.Delivery) error {
		time.Sleep(time.Duration(rand.IntN(2000)) * time.Microsecond) // so that some handlers are running at the stop
		handled.record(d)
		return nil
	}
	publishing := make(chan struct{})
	go func() {
		defer close(publishing)
		publishAll(t, b, keys, 0, each)
	}()
	for handled.len() < keys*each {
		before := handled.len()
		c := consume(t, b, bus.Consumer{Handle: handle, AckWait: 5 * time.Second})
		timetest.Until(t, "some are handled", func() bool { return handled.len() > before+100 || handled.len() == keys*each })
		c.end()
	}
	receive(t, "the publishers", publishing)
	awaitEmpty(t, b, "tester")
	handled.check(t, keys, each)
}

func TestConsumerSurvivesAServerRestart(t *testing.T) {
	t.Parallel()
	e := startEngine(t)
	b := bustest.Open(t, e.nats.URL())
	const keys, each = 10, 30
	handled := newSequences()
	release := make(chan struct{})
	var held atomic.Int32
	consume(t, b, bus.Consumer{Handle: func(_ context.Context, d bus.Delivery) error {
		if number(d) == each-1 {
			held.Add(1)
			<-release // running while the server is down
		}
		handled.record(d)
		return nil
	}})
	publishAll(t, b, keys, 0, each)
	timetest.Until(t, "all but the last are handled", func() bool { return handled.len() == keys*(each-1) && held.Load() == keys })
	e.stop()
	close(release)
	timetest.Until(t, "the last are handled while NATS is disconnected", func() bool { return handled.len() == keys*each })
	e.start()
	bustest.AwaitReady(t, b)
	publishAll(t, b, keys, each, each)
	timetest.Until(t, "the new ones are handled", func() bool { return handled.len() >= keys*2*each })
	awaitEmpty(t, b, "tester")
	handled.check(t, keys, 2*each)
}

func TestConsumeBeforeNATSStarts(t *testing.T) {
	t.Parallel()
	e := startEngine(t)
	e.stop()
	b, err := bus.Open(bus.Config{URL: "nats://" + e.addr, Name: "test", Logger: new(logbook).logger()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	handled := make(chan int, 1)
	consume(t, b, bus.Consumer{Handle: func(_ context.Context, d bus.Delivery) error { handled <- number(d); return nil }})
	e.start()
	bustest.AwaitReady(t, b)
	publish(t, b, reply("visitor", 42))
	if got := receive(t, "the delivery", handled); got != 42 {
		t.Errorf("got %d, want 42", got)
	}
}

func TestStopWhileNATSIsDown(t *testing.T) {
	t.Parallel()
	e := startEngine(t)
	b := bustest.Open(t, e.nats.URL())
	handled := make(chan int, 1)
	c := consume(t, b, bus.Consumer{Handle: func(_ context.Context, d bus.Delivery) error { handled <- number(d); return nil }})
	publish(t, b, reply("visitor", 1))
	receive(t, "the delivery", handled)
	e.stop()
	started := time.Now()
	c.end()
	if took := time.Since(started); took > 3*time.Second {
		t.Errorf("stop took %v, want it at once", took)
	}
}

func TestDeletedConsumerIsRecreated(t *testing.T) {
	t.Parallel()
	b := bustest.Open(t, bustest.Start(t).URL())
	handled := make(chan int, 10)
	consume(t, b, bus.Consumer{Handle: func(_ context.Context, d bus.Delivery) error { handled <- number(d); return nil }})
	publish(t, b, reply("visitor", 1))
	receive(t, "the first delivery", handled)
	awaitEmpty(t, b, "tester")
	durable := "tester-" + strconv.Itoa(subject.Partition(reply("visitor", 1).Subject(), 32))
	if err := b.JetStream().DeleteConsumer(t.Context(), subject.Replies, durable); err != nil {
		t.Fatal(err)
	}
	publish(t, b, reply("visitor", 2))
	// The new consumer starts at the beginning of the stream; the process does not handle finished deliveries again.
	if got := receive(t, "the second delivery", handled); got != 2 {
		t.Errorf("got %d, want 2", got)
	}
	awaitEmpty(t, b, "tester")
}

func TestRecreatedStreamIsConsumed(t *testing.T) {
	t.Parallel()
	url := bustest.Start(t).URL()
	b := bustest.Open(t, url)
	handled := make(chan int, 10)
	consume(t, b, bus.Consumer{Handle: func(_ context.Context, d bus.Delivery) error { handled <- number(d); return nil }})
	publish(t, b, reply("visitor", 1))
	receive(t, "the first delivery", handled)
	if err := b.JetStream().DeleteStream(t.Context(), subject.Replies); err != nil {
		t.Fatal(err)
	}
	bustest.DeclareSmall(t, url)
	timetest.Until(t, "a publish works", func() bool { return b.Publish(t.Context(), event.Derived(), reply("visitor", 2)) == nil })
	if got := receive(t, "the delivery of the new stream", handled); got != 2 {
		t.Errorf("got %d, want 2", got)
	}
}

func TestConsumeReportsEveryFault(t *testing.T) {
	t.Parallel()
	b := bustest.Open(t, bustest.Start(t).URL())
	err := b.Consume(t.Context(), bus.Consumer{Durable: "a.b", Concurrency: -1, MaxAckPending: -1, AckWait: -1})
	if err == nil {
		t.Fatal("got no error, want one")
	}
	for _, word := range []string{"Stream", "Durable", "Handle", "Concurrency", "MaxAckPending", "AckWait"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("got %q, want %s named", err, word)
		}
	}
}
