package bus_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
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

func TestPublishOnTheWire(t *testing.T) {
	t.Parallel()
	url := bustest.Start(t).URL()
	b := bustest.Open(t, url)
	heard := bustest.Collect(t, url, "chat.>")
	const trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	e := reply("visitor", 1)
	if err := b.Publish(event.WithTraceParent(t.Context(), trace), event.Derived(), e); err != nil {
		t.Fatalf("publishing: %v", err)
	}
	m := heard.Next()
	if m.Subject != "chat.reply.app.visitor" {
		t.Errorf("got subject %s, want chat.reply.app.visitor", m.Subject)
	}
	if got, want := string(m.Data), string(e.AppendJSON(nil)); got != want {
		t.Errorf("got payload %s, want %s", got, want)
	}
	want := map[string]string{
		"Nats-Msg-Id": e.Message.ID, "ce-id": e.Message.ID, "ce-type": "parley.events.v1.Reply", "ce-source": "/test",
		"ce-time": "2026-05-04T03:02:01.987Z", "ce-specversion": "1.0", "ce-datacontenttype": "application/json",
		"traceparent": trace,
	}
	got := make(map[string]string)
	for name, values := range m.Header {
		got[name] = strings.Join(values, "|")
	}
	if !maps.Equal(got, want) {
		t.Errorf("got headers %v, want %v", got, want)
	}
}

func TestPublishLeaksNothingIntoTheNextEvent(t *testing.T) {
	t.Parallel()
	url := bustest.Start(t).URL()
	b := bustest.Open(t, url)
	heard := bustest.Collect(t, url, "chat.>")
	traced := event.WithTraceParent(t.Context(), "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	for n := range 50 {
		ctx := t.Context()
		if n%2 == 0 {
			ctx = traced
		}
		if err := b.Publish(ctx, event.Derived(), reply("v", n)); err != nil {
			t.Fatalf("publishing: %v", err)
		}
		if got, want := heard.Next().Header.Get("traceparent") != "", n%2 == 0; got != want {
			t.Fatalf("event %d: got a traceparent %v, want %v", n, got, want)
		}
	}
}

func TestPublishTwiceIsOneEvent(t *testing.T) {
	t.Parallel()
	b := bustest.Open(t, bustest.Start(t).URL())
	e := reply("visitor", 1)
	for range 3 {
		if err := b.Publish(t.Context(), event.Derived(), e); err != nil {
			t.Fatalf("publishing: %v", err)
		}
	}
	if got := streamMessages(t, b, subject.Replies); got != 1 {
		t.Errorf("got %d messages in the stream, want 1", got)
	}
}

func TestFullStreamRejectsAndRecovers(t *testing.T) {
	t.Parallel()
	b := bustest.Open(t, bustest.StartSized(t, bus.StreamSettings{MaxBytes: 4096}).URL())
	var refused event.Event
	var err error
	for n := 0; err == nil; n++ {
		refused = reply("visitor", n)
		err = b.Publish(t.Context(), event.Derived(), refused)
		if n > 100 {
			t.Fatal("the stream never became full")
		}
	}
	e, ok := errors.AsType[*apperr.Error](err)
	if !ok || e.Code != apperr.Unavailable || e.Reason != "STREAM_FULL" || e.RetryAfter < 10*time.Second {
		t.Fatalf("got %#v, want Unavailable with STREAM_FULL and a long RetryAfter", err)
	}
	before := streamMessages(t, b, subject.Replies)
	if err := b.Publish(t.Context(), event.Derived(), company("c", "k")); err != nil {
		t.Errorf("another stream: got %v, want no error", err)
	}
	stream, err := b.JetStream().Stream(t.Context(), subject.Replies)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := b.Publish(t.Context(), event.Derived(), refused); err != nil {
		t.Fatalf("after the purge: got %v, want no error", err)
	}
	if got := streamMessages(t, b, subject.Replies); before == 0 || got != 1 {
		t.Errorf("got %d messages before and %d after the purge, want some and 1", before, got)
	}
}

func TestPublishRejectsInvalidEvents(t *testing.T) {
	t.Parallel()
	b := bustest.Open(t, bustest.Start(t).URL())
	huge := reply("visitor", 1)
	huge.Message.Data = []byte(`{"text":"` + strings.Repeat("x", 3<<20) + `"}`)
	noID := reply("visitor", 1)
	noID.Message.ID = ""
	for name, e := range map[string]event.Event{
		"too large": huge, "no id": noID, "empty token": reply("", 1), "wildcard": reply("*", 1), "all": reply(">", 1),
		"space": reply("a b", 1), "line end": reply("a\r\nPUB x 0", 1),
	} {
		if err := b.Publish(t.Context(), event.Derived(), e); !apperr.Is(err, apperr.Invalid) {
			t.Errorf("%s: got %v, want Invalid", name, err)
		}
	}
	if err := b.Publish(t.Context(), event.Derived(), reply("visitor", 2)); err != nil {
		t.Errorf("afterwards: got %v, want no error", err)
	}
}

// A subject with a subscriber but no stream gets no response, like one whose stream leader is unreachable.
func TestPublishTimesOut(t *testing.T) {
	t.Parallel()
	url := plainNATS(t)
	b, err := bus.Open(bus.Config{URL: url, Name: "test", Logger: new(logbook).logger()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	deaf := bustest.Collect(t, url, "chat.>")
	timetest.Until(t, "NATS is connected", func() bool { return b.JetStream().Conn().IsConnected() })

	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	started := time.Now()
	err = b.Publish(ctx, event.Derived(), reply("visitor", 1))
	if !apperr.Is(err, apperr.Unavailable) || !errors.Is(err, context.DeadlineExceeded) && time.Since(started) > time.Second {
		t.Errorf("deadline: got %v after %v, want Unavailable after 50 ms", err, time.Since(started))
	}
	ctx, cancel = context.WithCancel(t.Context())
	result := make(chan error)
	go func() { result <- b.Publish(ctx, event.Derived(), reply("visitor", 2)) }()
	deaf.Await(2)
	cancel()
	if err := receive(t, "the cancelled publish", result); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: got %v, want context.Canceled", err)
	}
	if got := b.Waiting(); got != 0 {
		t.Errorf("got %d waiting publishers, want none", got)
	}
}

func TestPublishWithoutStreamFails(t *testing.T) {
	t.Parallel()
	b, err := bus.Open(bus.Config{URL: plainNATS(t), Name: "test", Logger: new(logbook).logger()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(b.Close)
	timetest.Until(t, "NATS is connected", func() bool { return b.JetStream().Conn().IsConnected() })
	if err := b.Publish(t.Context(), event.Derived(), reply("visitor", 1)); !apperr.Is(err, apperr.Unavailable) {
		t.Errorf("publish: got %v, want Unavailable", err)
	}
	if err := b.Ready(t.Context()); !apperr.Is(err, apperr.Unavailable) {
		t.Errorf("ready: got %v, want Unavailable", err)
	}
}

// A service does not create a missing stream: it logs the command that does, and recovers after the command has run.
func TestMissingStreamIsAwaited(t *testing.T) {
	t.Parallel()
	url := bustest.Start(t).URL()
	var log logbook
	b := bustest.OpenConfig(t, bus.Config{URL: url, Logger: log.logger()})
	if err := b.JetStream().DeleteStream(t.Context(), subject.Replies); err != nil {
		t.Fatal(err)
	}
	if err := b.Publish(t.Context(), event.Derived(), reply("visitor", 0)); !apperr.Is(err, apperr.Unavailable) {
		t.Errorf("publish: got %v, want Unavailable", err)
	}
	const reason, line = "stream REPLIES is missing: run `parleyctl streams apply`", "a stream is missing: run `parleyctl streams apply`\" stream=REPLIES"
	timetest.Until(t, "the bus is not ready and reports the missing stream", func() bool {
		err := b.Ready(t.Context())
		return err != nil && strings.Contains(err.Error(), reason)
	})
	if _, err := b.JetStream().Stream(t.Context(), subject.Replies); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("got %v, want the stream to be missing still", err)
	}
	bustest.DeclareSmall(t, url)
	bustest.AwaitReady(t, b)
	if got := strings.Count(log.String(), line); got != 1 {
		t.Errorf("got %d log lines %q, want 1:\n%s", got, line, log.String())
	}
	timetest.Until(t, "a publish works", func() bool { return b.Publish(t.Context(), event.Derived(), reply("visitor", 1)) == nil })
	if got := streamMessages(t, b, subject.Replies); got != 1 {
		t.Errorf("got %d messages, want 1", got)
	}
}

func TestNATSRestart(t *testing.T) {
	t.Parallel()
	e := startEngine(t)
	var log logbook
	b := bustest.OpenConfig(t, bus.Config{URL: e.nats.URL(), Logger: log.logger()})

	var acknowledged sync.Map
	var ok, failed atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	for caller := range 16 {
		callers.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				r := reply(fmt.Sprintf("visitor%d", caller), n)
				if err := b.Publish(t.Context(), event.Derived(), r); err != nil {
					failed.Add(1)
					continue
				}
				ok.Add(1)
				acknowledged.Store(r.Message.ID, true)
			}
		})
	}
	timetest.Until(t, "traffic flows", func() bool { return ok.Load() > 500 })
	e.stop()
	timetest.Until(t, "publishing fails", func() bool { return failed.Load() > 100 })
	started := time.Now()
	if err := b.Publish(t.Context(), event.Derived(), reply("visitor", 1)); !apperr.Is(err, apperr.Unavailable) || time.Since(started) > time.Second {
		t.Errorf("while NATS is down: got %v after %v, want Unavailable at once", err, time.Since(started))
	}
	if err := b.Ready(t.Context()); !apperr.Is(err, apperr.Unavailable) {
		t.Errorf("ready while NATS is down: got %v, want Unavailable", err)
	}
	before := ok.Load()
	e.start()
	timetest.Until(t, "traffic flows again", func() bool { return ok.Load() > before+500 })
	stop()
	callers.Wait()
	bustest.AwaitReady(t, b)

	stored := storedIDs(t, b, subject.Replies)
	acknowledged.Range(func(id, _ any) bool {
		if stored[id.(string)] != 1 {
			t.Errorf("acknowledged event %v: got it %d times in the stream, want once", id, stored[id.(string)])
		}
		return !t.Failed()
	})
	for line, want := range map[string]int{"NATS disconnected, reconnecting": 1, "NATS connected": 2} {
		if got := strings.Count(log.String(), line); got != want {
			t.Errorf("got %d log lines %q, want %d:\n%s", got, line, want, log.String())
		}
	}
	if got := b.Waiting(); got != 0 {
		t.Errorf("got %d waiting publishers, want none", got)
	}
}

func TestStartWithNATSDown(t *testing.T) {
	t.Parallel()
	e := startEngine(t)
	e.stop()
	var log logbook
	b, err := bus.Open(bus.Config{URL: "nats://user:secret@" + e.addr, Name: "test", Logger: log.logger()})
	if err != nil {
		t.Fatalf("opening: got %v, want no error", err)
	}
	t.Cleanup(b.Close)
	started := time.Now()
	if err := b.Publish(t.Context(), event.Derived(), reply("visitor", 1)); !apperr.Is(err, apperr.Unavailable) || time.Since(started) > time.Second {
		t.Errorf("publish: got %v after %v, want Unavailable at once", err, time.Since(started))
	}
	if err := b.Ready(t.Context()); !apperr.Is(err, apperr.Unavailable) {
		t.Errorf("ready: got %v, want Unavailable", err)
	}
	if got := strings.Count(log.String(), "NATS not available"); got != 1 || strings.Contains(log.String(), "secret") {
		t.Errorf("got the log\n%s\nwant one line that NATS is not available, without the password", log.String())
	}
	e.start()
	bustest.AwaitReady(t, b)
	if err := b.Publish(t.Context(), event.Derived(), reply("visitor", 1)); err != nil {
		t.Errorf("publish after NATS started: got %v, want no error", err)
	}
	if got := strings.Count(log.String(), "NATS connected"); got != 1 {
		t.Errorf("got the log\n%s\nwant one line that NATS is connected", log.String())
	}
}

func TestOpenReportsEveryFault(t *testing.T) {
	t.Parallel()
	_, err := bus.Open(bus.Config{Streams: []string{"a.b"}, CredsFile: "no/such/file"})
	if err == nil {
		t.Fatal("got no error, want one")
	}
	for _, word := range []string{"URL", "Name", "Logger", "Streams", "CredsFile"} {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("got %q, want %s named", err, word)
		}
	}
	if _, err := bus.Open(bus.Config{URL: "nats://[::1", Name: "test", Logger: new(logbook).logger()}); err == nil {
		t.Error("malformed URL: got no error, want one")
	}
}

func TestInProcessNeedsNoSocket(t *testing.T) {
	t.Parallel()
	n := bustest.Start(t)
	b := bustest.OpenConfig(t, bus.Config{InProcess: n.Server()})
	if err := b.Publish(t.Context(), event.Derived(), reply("visitor", 1)); err != nil {
		t.Errorf("got %v, want no error", err)
	}
}

func TestStreamsAreDeclaredAsDesigned(t *testing.T) {
	t.Parallel()
	b := bustest.Open(t, bustest.StartSized(t, bus.StreamSettings{MaxAge: time.Hour, MaxBytes: 1 << 20, TokenTTL: 48 * time.Hour}).URL())
	for _, s := range subject.Streams() {
		stream, err := b.JetStream().Stream(t.Context(), s.Name)
		if err != nil {
			t.Fatalf("%s: %v", s.Name, err)
		}
		c := stream.CachedInfo().Config
		age, perSubject := time.Hour, int64(-1)
		if s.LastOnly {
			age, perSubject = 400*24*time.Hour, 1
		}
		if s.Name == subject.Revocations { // no token lives longer
			age = 48 * time.Hour
		}
		discard, window := jetstream.DiscardNew, 2*time.Minute
		if s.Short { // loses old events by design
			age, discard, window = subject.PartsAge, jetstream.DiscardOld, 10*time.Second
		}
		if c.Storage != jetstream.FileStorage || c.Retention != jetstream.LimitsPolicy || c.Discard != discard ||
			c.MaxAge != age || c.MaxMsgsPerSubject != perSubject || c.MaxBytes != 1<<20 || c.Replicas != 1 || c.Duplicates != window || !c.AllowDirect {
			t.Errorf("%s: got %+v", s.Name, c)
		}
	}
}

func TestTwoBusesShareTheirMetrics(t *testing.T) {
	t.Parallel()
	url := bustest.Start(t).URL()
	registry := prometheus.NewRegistry()
	for range 2 {
		b := bustest.OpenConfig(t, bus.Config{URL: url, Registerer: registry})
		if err := b.Publish(t.Context(), event.Derived(), reply("visitor", 1)); err != nil {
			t.Fatal(err)
		}
	}
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != "parley_bus_publish_seconds" {
			continue
		}
		for _, m := range f.GetMetric() {
			if m.GetLabel()[0].GetValue() == "ok" && m.GetHistogram().GetSampleCount() == 2 {
				return
			}
		}
	}
	t.Errorf("got %v, want two publishes with the result ok", families)
}

func TestCloseWaitsForPublishes(t *testing.T) {
	t.Parallel()
	url := bustest.Start(t).URL()
	b := bustest.Open(t, url)
	watch := bustest.Open(t, url)
	var callers sync.WaitGroup
	var acknowledged atomic.Int64
	for n := range 200 {
		callers.Go(func() {
			if b.Publish(t.Context(), event.Derived(), reply("visitor", n)) == nil {
				acknowledged.Add(1)
			}
		})
	}
	b.Close()
	b.Close()
	callers.Wait()
	if got, want := int64(streamMessages(t, watch, subject.Replies)), acknowledged.Load(); got < want {
		t.Errorf("got %d in the stream, want the %d acknowledged ones", got, want)
	}
	if err := b.Publish(t.Context(), event.Derived(), reply("visitor", 1)); !apperr.Is(err, apperr.Unavailable) {
		t.Errorf("after Close: got %v, want Unavailable", err)
	}
}

func company(companyID, chatID string) event.CompanyMessageAccepted {
	return event.CompanyMessageAccepted{CompanyID: companyID, ChatID: chatID, Message: reply("v", 0).Message}
}

// plainNATS starts a server without JetStream.
func plainNATS(t *testing.T) (url string) {
	t.Helper()
	s, err := server.NewServer(&server.Options{Host: "127.0.0.1", Port: server.RANDOM_PORT, NoLog: true, NoSigs: true})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(patience) {
		t.Fatal("the server did not start")
	}
	return s.ClientURL()
}

func streamMessages(t *testing.T, b *bus.Bus, name string) uint64 {
	t.Helper()
	stream, err := b.JetStream().Stream(t.Context(), name)
	if err != nil {
		t.Fatalf("stream %s: %v", name, err)
	}
	return stream.CachedInfo().State.Msgs
}

// storedIDs counts the event ids in a stream.
func storedIDs(t *testing.T, b *bus.Bus, name string) map[string]int {
	t.Helper()
	ordered, err := b.JetStream().OrderedConsumer(t.Context(), name, jetstream.OrderedConsumerConfig{})
	if err != nil {
		t.Fatal(err)
	}
	ids := make(map[string]int)
	for want := int(streamMessages(t, b, name)); want > 0; {
		batch, err := ordered.Fetch(min(want, 500), jetstream.FetchMaxWait(patience))
		if err != nil {
			t.Fatal(err)
		}
		for m := range batch.Messages() {
			ids[m.Headers().Get(nats.MsgIdHdr)]++
			want--
		}
		if batch.Error() != nil {
			t.Fatal(batch.Error())
		}
	}
	return ids
}
