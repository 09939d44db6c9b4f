package bus_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/timetest"
)

// refusing returns a handler that fails permanently while right returns false, and otherwise sends the
// delivery to handled.
func refusing(handled chan bus.Delivery, right func() bool) func(context.Context, bus.Delivery) error {
	return func(_ context.Context, d bus.Delivery) error {
		if !right() {
			return apperr.New(apperr.Invalid, "R", "not yet")
		}
		handled <- d
		return nil
	}
}

func letters(t *testing.T, b *bus.Bus, stream, consumer string) []bus.DeadLetter {
	t.Helper()
	var all []bus.DeadLetter
	for l, err := range b.DeadLetters(t.Context(), stream, consumer, 0) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, l)
	}
	return all
}

// The event id is still in the stream's duplicate window.
func TestReplayReachesOnlyTheFailedConsumer(t *testing.T) {
	t.Parallel()
	b := bustest.Open(t, bustest.Start(t).URL())
	e := reply("visitor", 7)
	publish(t, b, e)
	var repaired = make(chan struct{})
	isRepaired := func() bool {
		select {
		case <-repaired:
			return true
		default:
			return false
		}
	}
	failed, fine := make(chan bus.Delivery, 8), make(chan bus.Delivery, 8)
	consume(t, b, bus.Consumer{Durable: "failed", Handle: refusing(failed, isRepaired)})
	consume(t, b, bus.Consumer{Durable: "fine", Handle: refusing(fine, func() bool { return true })})
	receive(t, "the other consumer", fine)
	timetest.Until(t, "DEAD has the dead letter", func() bool { return streamMessages(t, b, subject.Dead) == 1 })

	l := letters(t, b, "", "")[0]
	if l.Stream != subject.Replies || l.Consumer != "failed" || l.EventID != e.EventID() || l.EventType != e.Type() || l.Original != 1 ||
		l.Attempts != 1 || l.Subject != e.Subject() || l.Reason != "invalid: not yet" || l.Time.IsZero() {
		t.Fatalf("got dead letter %+v", l)
	}
	close(repaired)
	for range 2 { // a second replay is deduplicated
		if err := b.Replay(t.Context(), l); err != nil && !apperr.Is(err, apperr.NotFound) {
			t.Fatal(err)
		}
	}
	d := receive(t, "the event again", failed)
	if string(d.Data) != string(e.AppendJSON(nil)) || d.Header.Get("ce-id") != e.EventID() || d.Header.Get("ce-type") != e.Type() ||
		d.Subject != e.Subject() || d.Header.Get(bus.HeaderReplayLetter) != "1" {
		t.Errorf("got %s with %v, want the original event", d.Data, d.Header)
	}
	for name := range d.Header {
		if strings.HasPrefix(name, "Parley-Dead-") {
			t.Errorf("got header %s, want no header of the dead letter", name)
		}
	}
	publish(t, b, reply("visitor", 8)) // arrives next, so nothing was delivered before it
	for name, next := range map[string]chan bus.Delivery{"failed": failed, "fine": fine} {
		if d := receive(t, "the next event", next); number(d) != 8 {
			t.Errorf("consumer %s: got number %d, want 8", name, number(d))
		}
	}
	if left := letters(t, b, "", ""); len(left) != 0 {
		t.Errorf("got %d dead letters, want the replayed one removed", len(left))
	}
}

// An event of another program may have a Nats-Msg-Id and no CloudEvents attributes.
func TestReplayKeepsTheIDOfAnEventWithoutAttributes(t *testing.T) {
	t.Parallel()
	b := bustest.Open(t, bustest.Start(t).URL())
	e := reply("visitor", 7)
	if _, err := b.JetStream().Publish(t.Context(), e.Subject(), e.AppendJSON(nil), jetstream.WithMsgID("their-id")); err != nil {
		t.Fatal(err)
	}
	consume(t, b, bus.Consumer{Durable: "failed", Handle: refusing(nil, func() bool { return false })})
	timetest.Until(t, "DEAD has the dead letter", func() bool { return streamMessages(t, b, subject.Dead) == 1 })
	for _, truncated := range []bool{true, false} { // the payload of the original, then that of the letter
		letter := letters(t, b, "", "")[0]
		letter.Truncated = truncated
		if err := b.Replay(t.Context(), letter); err != nil {
			t.Fatal(err)
		}
		timetest.Until(t, "the consumer gives up again", func() bool {
			again := letters(t, b, "", "")
			return len(again) == 1 && again[0].Sequence > letter.Sequence
		})
		if again := letters(t, b, "", "")[0]; again.EventID != "their-id" {
			t.Errorf("got the id %q, want that of the event", again.EventID)
		}
	}
}

func TestReplayOfATruncatedDeadLetterReadsTheOriginal(t *testing.T) {
	t.Parallel()
	b := bustest.Open(t, bustest.Start(t).URL())
	e := reply("visitor", 0)
	e.Message.Data = []byte(`{"text":"` + strings.Repeat("x", int(b.JetStream().Conn().MaxPayload())-700) + `"}`)
	publish(t, b, e)
	stop := consume(t, b, bus.Consumer{Handle: refusing(nil, func() bool { return false })})
	timetest.Until(t, "DEAD has the dead letter", func() bool { return streamMessages(t, b, subject.Dead) == 1 })
	stop.end()
	l := letters(t, b, "", "")[0]
	if !l.Truncated || len(l.Data) != 0 {
		t.Fatalf("got %d bytes, want a dead letter without its payload", len(l.Data))
	}
	if err := b.Replay(t.Context(), l); err != nil {
		t.Fatal(err)
	}
	again, err := b.Get(t.Context(), subject.Replies, 2)
	if err != nil || string(again.Data) != string(e.AppendJSON(nil)) {
		t.Fatalf("got %d bytes, %v, want the event's", len(again.Data), err)
	}
}

func TestReplayKeepsADeadLetterWithoutOriginal(t *testing.T) {
	t.Parallel()
	b := bustest.Open(t, bustest.Start(t).URL())
	if err := b.Replay(t.Context(), bus.DeadLetter{Sequence: 1, Stream: subject.Replies, Consumer: "c", Truncated: true}); !apperr.Is(err, apperr.NotFound) {
		t.Errorf("got %v, want NotFound", err)
	}
	if err := b.Replay(t.Context(), bus.DeadLetter{Sequence: 1}); !apperr.Is(err, apperr.Invalid) {
		t.Errorf("a dead letter without a consumer: got %v, want Invalid", err)
	}
}

func TestDeadLettersAreFilteredAndDropped(t *testing.T) {
	t.Parallel()
	b := bustest.Open(t, bustest.Start(t).URL())
	for _, to := range [][2]string{{"INBOUND", "bot"}, {"INBOUND", "recorder"}, {"REPLIES", "recorder"}} {
		if _, err := b.JetStream().Publish(t.Context(), subject.DeadLetter(to[0], to[1]), []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	for _, test := range []struct{ stream, consumer, want string }{
		{"", "", "1 2 3"}, {"INBOUND", "", "1 2"}, {"", "recorder", "2 3"}, {"REPLIES", "recorder", "3"}, {"OUTBOUND", "", ""},
	} {
		var got []string
		for _, l := range letters(t, b, test.stream, test.consumer) {
			got = append(got, fmt.Sprint(l.Sequence))
		}
		if s := strings.Join(got, " "); s != test.want {
			t.Errorf("stream %q, consumer %q: got %q, want %q", test.stream, test.consumer, s, test.want)
		}
	}
	if err := b.DropDeadLetter(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	if err := b.DropDeadLetter(t.Context(), 2); !apperr.Is(err, apperr.NotFound) {
		t.Errorf("dropping again: got %v, want NotFound", err)
	}
	if _, err := b.DeadLetter(t.Context(), 2); !apperr.Is(err, apperr.NotFound) {
		t.Errorf("reading a dropped dead letter: got %v, want NotFound", err)
	}
	if l, err := b.DeadLetter(t.Context(), 3); err != nil || l.Sequence != 3 {
		t.Errorf("got %+v, %v, want dead letter 3", l, err)
	}
}

func TestProgressReportsTries(t *testing.T) {
	t.Parallel()
	url := bustest.Start(t).URL()
	b, requester := bustest.Open(t, url), bustest.Open(t, url)
	if _, err := requester.Progress(t.Context(), subject.Replies, "tester", 1); !apperr.Is(err, apperr.NotFound) {
		t.Fatalf("without a consumer: got %v, want NotFound", err)
	}
	var right = make(chan struct{})
	consume(t, b, bus.Consumer{Handle: func(ctx context.Context, d bus.Delivery) error {
		select {
		case <-right:
			return nil
		default:
			return apperr.New(apperr.Unavailable, "AWAY", "the dog ate it")
		}
	}})
	publish(t, b, reply("visitor", 0))
	progress := func(state bus.ProgressState) (p bus.Progress) {
		timetest.Until(t, "the delivery is "+string(state), func() bool {
			var err error
			p, err = requester.Progress(t.Context(), subject.Replies, "tester", 1)
			return err == nil && p.State == state
		})
		return p
	}
	if p := progress(bus.ProgressRetrying); p.Attempts < 1 || !strings.Contains(p.LastError, "the dog ate it") || p.NextTry.IsZero() {
		t.Errorf("got %+v, want attempts, last error and time of the next try", p)
	}
	close(right)
	if p := progress(bus.ProgressDone); p.Attempts < 2 {
		t.Errorf("got %+v, want it acknowledged after more than one attempt", p)
	}
	if _, err := requester.Progress(t.Context(), subject.Replies, "tester", 2); !apperr.Is(err, apperr.NotFound) {
		t.Errorf("another sequence: got %v, want NotFound", err)
	}
}

// An observer is ready without streams and creates none.
func TestObserverDoesNotWaitForStreams(t *testing.T) {
	t.Parallel()
	b := bustest.OpenConfig(t, bus.Config{URL: bustest.StartBare(t).URL(), Observe: true})
	if err := b.Publish(t.Context(), event.Derived(), reply("visitor", 0)); !apperr.Is(err, apperr.Unavailable) {
		t.Errorf("without streams: got %v, want Unavailable", err)
	}
	names := b.JetStream().StreamNames(t.Context())
	for name := range names.Name() {
		t.Errorf("the observer created the stream %s", name)
	}
}

// nats-server ends a connection that sends a line of more than 4,096 bytes, and nats.go then gives it up for good.
func TestNamesOfAnyLengthLeaveTheConnection(t *testing.T) {
	t.Parallel()
	b := bustest.Open(t, bustest.Start(t).URL())
	for _, name := range []string{strings.Repeat("a", 5000), strings.Repeat("a", subject.MaxToken+1), "a b", "a.b", "*", ">", "\r\nPING\r\n", "rec\x7frder", "\xed\xa0\x80"} {
		for _, err := range b.DeadLetters(t.Context(), name, "", 0) {
			if !apperr.Is(err, apperr.Invalid) {
				t.Errorf("stream %.20q: got %v, want Invalid", name, err)
			}
		}
		for _, err := range b.DeadLetters(t.Context(), "", name, 0) {
			if !apperr.Is(err, apperr.Invalid) {
				t.Errorf("consumer %.20q: got %v, want Invalid", name, err)
			}
		}
		for _, err := range b.Read(t.Context(), bus.Range{Stream: subject.Replies, Filters: []string{"chat.reply." + name + ".x y"}}) {
			if err == nil {
				t.Errorf("filter with %.20q: got no error", name)
			}
		}
	}
	if got := letters(t, b, strings.Repeat("a", subject.MaxToken), ""); len(got) > 0 {
		t.Errorf("got %v, want none", got)
	}
	if err := b.Ready(t.Context()); err != nil {
		t.Errorf("after it: %v", err)
	}
}
