package bus_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/proxy"
	"github.com/parley-chat/parley/testkit/timetest"
)

func spanSequences(t *testing.T, b *bus.Bus, s bus.Range) string {
	t.Helper()
	var got []string
	for d, err := range b.Read(t.Context(), s) {
		if err != nil {
			t.Fatal(err)
		}
		if s.HeadersOnly != (len(d.Data) == 0) || d.Stream != s.Stream || d.ID == "" {
			t.Errorf("got %+v of span %+v", d, s)
		}
		got = append(got, fmt.Sprint(d.Sequence))
	}
	return strings.Join(got, " ")
}

func TestReadEndsWithItsSpan(t *testing.T) {
	t.Parallel()
	b := bustest.Open(t, bustest.Start(t).URL())
	for i := range 5 {
		publish(t, b, reply([]string{"sara", "jo"}[i%2], i))
	}
	third, err := b.Get(t.Context(), subject.Replies, 3)
	if err != nil || number(third) != 2 || third.Stream != subject.Replies {
		t.Fatalf("got %+v, %v, want the third", third, err)
	}
	for _, test := range []struct {
		span bus.Range
		want string
	}{
		{bus.Range{}, "1 2 3 4 5"},
		{bus.Range{HeadersOnly: true}, "1 2 3 4 5"},
		{bus.Range{Since: third.Time}, "3 4 5"},
		{bus.Range{Filters: []string{"chat.reply.app.jo"}}, "2 4"},
		{bus.Range{Filters: []string{"chat.reply.app.jo", "chat.reply.app.sara"}}, "1 2 3 4 5"},
		{bus.Range{Filters: []string{"chat.reply.app.nobody"}}, ""},
		{bus.Range{New: true}, ""},
		{bus.Range{Since: time.Now().Add(time.Hour)}, ""},
	} {
		test.span.Stream = subject.Replies
		if got := spanSequences(t, b, test.span); got != test.want {
			t.Errorf("%+v: got %q, want %q", test.span, got, test.want)
		}
	}
	if _, err := b.Get(t.Context(), subject.Replies, 6); !apperr.Is(err, apperr.NotFound) {
		t.Errorf("missing sequence: got %v, want NotFound", err)
	}
	for _, err := range b.Read(t.Context(), bus.Range{Stream: "NONE"}) {
		if !apperr.Is(err, apperr.NotFound) {
			t.Errorf("missing stream: got %v, want NotFound", err)
		}
	}
}

// Pending messages may be removed before they are read.
func TestReadEndsIfTheRestIsRemoved(t *testing.T) {
	t.Parallel()
	b := bustest.Open(t, bustest.Start(t).URL())
	for i := range 600 { // more than the server sends in advance
		publish(t, b, reply("visitor", i))
	}
	s, err := b.JetStream().Stream(t.Context(), subject.Replies)
	if err != nil {
		t.Fatal(err)
	}
	read := 0
	for _, err := range b.Read(t.Context(), bus.Range{Stream: subject.Replies}) {
		if err != nil {
			t.Fatal(err)
		}
		if read++; read == 1 {
			if err := s.Purge(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	}
	if read == 0 {
		t.Error("got nothing, want the first messages")
	}
}

// A connection that is lost takes the answers with it: their readers get an error, also without a deadline.
func TestReadsEndWithTheConnection(t *testing.T) {
	t.Parallel()
	e := startEngine(t)
	link := proxy.Start(t, strings.TrimPrefix(e.nats.URL(), "nats://"))
	b := bustest.Open(t, "nats://"+link.Addr())
	kept := reply("visitor", 0)
	publish(t, b, kept)
	reads := map[string]func() error{
		"since": func() (err error) {
			for _, err = range b.Since(t.Context(), subject.Replies, kept.Subject(), time.Now().Add(-time.Hour)) {
			}
			return err
		},
		"last": func() error {
			_, err := b.Last(t.Context(), subject.Replies, kept.Subject())
			return err
		},
		"last sequence": func() error {
			_, err := b.LastSequence(t.Context(), subject.Replies, kept.Subject())
			return err
		},
	}
	sent := func() uint64 { return b.JetStream().Conn().Stats().OutMsgs }
	for name, read := range reads {
		if err := read(); err != nil {
			t.Fatalf("%s: got %v", name, err)
		}
		link.Lose()
		before, ended := sent(), make(chan error, 1)
		go func() { ended <- read() }()
		timetest.Until(t, "the request is sent", func() bool { return sent() > before })
		link.Cut()() // and a new connection is made
		if err := receive(t, name, ended); !apperr.Is(err, apperr.Unavailable) {
			t.Errorf("%s: got %v, want Unavailable", name, err)
		}
		bustest.AwaitReady(t, b)
	}
}

// Following continues after the last message when NATS has restarted, also if there was none yet; while NATS is
// away it ends with its context.
func TestFollowingSurvivesTheServer(t *testing.T) {
	t.Parallel()
	e := startEngine(t)
	b := bustest.Open(t, e.nats.URL())
	publish(t, b, reply("visitor", 0))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	followed := func(selection bus.Range) (numbers chan int, ended chan error) {
		numbers, ended = make(chan int, 16), make(chan error, 1)
		selection.Stream, selection.Follow = subject.Replies, true
		go func() {
			defer close(ended)
			for d, err := range b.Read(ctx, selection) {
				if err != nil {
					ended <- err
					return
				}
				numbers <- number(d)
			}
		}()
		return numbers, ended
	}
	all, allEnded := followed(bus.Range{})
	fresh, freshEnded := followed(bus.Range{New: true})
	wantNext := func(want int, from ...chan int) {
		t.Helper()
		for _, numbers := range from {
			if got := receive(t, "a message", numbers); got != want {
				t.Errorf("got the message %d, want %d", got, want)
			}
		}
	}
	wantNext(0, all)
	consumers := func() int {
		s, err := b.JetStream().Stream(t.Context(), subject.Replies)
		if err != nil {
			return 0
		}
		return s.CachedInfo().State.Consumers
	}
	timetest.Until(t, "both follow", func() bool { return consumers() == 2 })
	publish(t, b, reply("visitor", 1))
	wantNext(1, all, fresh) // they know by now that their consumers exist
	e.stop()
	e.start()
	timetest.Until(t, "NATS is back", func() bool { return b.Ready(t.Context()) == nil })
	publish(t, b, reply("visitor", 2))
	wantNext(2, all, fresh)
	e.stop()
	cancel()
	for _, ended := range []chan error{allEnded, freshEnded} {
		if err, failed := <-ended; failed {
			t.Errorf("got %v, want no error", err)
		}
	}
}

func TestTailMergesStoredThenNewMessages(t *testing.T) {
	t.Parallel()
	b := bustest.Open(t, bustest.Start(t).URL())
	js := b.JetStream()
	put := func(subject string) {
		if _, err := js.Publish(t.Context(), subject, []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	subjects := []string{"chat.reply.a.1", "chat.in.message.a.1", "chat.reply.a.2", "chat.reply.a.3", "chat.in.message.a.2", "chat.reply.a.4"}
	for _, s := range subjects {
		put(s)
	}
	spans := []bus.Range{
		{Stream: subject.Sends, Since: time.Unix(1, 0)}, {Stream: subject.Replies, Since: time.Unix(1, 0)}, {Stream: subject.Outbound},
	}
	var past []string
	for d, err := range b.Tail(t.Context(), spans...) {
		if err != nil {
			t.Fatal(err)
		}
		past = append(past, d.Subject)
	}
	if !slices.Equal(past, subjects) {
		t.Errorf("got %v, want %v", past, subjects)
	}

	for i := range spans {
		spans[i].Follow = true
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	heard := make(chan string, 16)
	ended := make(chan error, 1)
	go func() {
		defer close(ended)
		for d, err := range b.Tail(ctx, spans...) {
			if err != nil {
				ended <- err
				return
			}
			heard <- d.Subject
		}
	}()
	for _, want := range subjects {
		if got := receive(t, "the past", heard); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	for _, s := range []string{"chat.out.phone.a", "chat.in.message.a.3", "chat.reply.a.5"} {
		put(s)
		if got := receive(t, "the present", heard); got != s {
			t.Errorf("got %s, want %s", got, s)
		}
	}
	cancel()
	if err, failed := <-ended; failed {
		t.Errorf("got %v, want no error", err)
	}
	for _, err := range b.Tail(t.Context(), bus.Range{Stream: subject.Replies}, bus.Range{Stream: "NONE"}) {
		if err != nil && !apperr.Is(err, apperr.NotFound) {
			t.Errorf("got %v, want NotFound", err)
		}
	}
}
