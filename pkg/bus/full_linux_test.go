package bus_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/fulldisk"
	"github.com/parley-chat/parley/testkit/timetest"
)

func TestDiskFull(t *testing.T) {
	t.Parallel()
	fulldisk.Run(t, fillDisk)
}

// Publishes fail at once, with a reason of their own, readiness names the stream, what was acknowledged can be read, and when there is
// room again all goes on by itself.
func fillDisk(t *testing.T) {
	n := bustest.Start(t)
	b := bustest.Open(t, n.URL())
	ctx, stop := context.WithCancel(t.Context())
	recovering := make(chan error, 1)
	go func() { recovering <- n.Recover(ctx) }()
	t.Cleanup(func() {
		stop()
		<-recovering
	})
	large := func(i int) event.Event {
		e := reply("visitor", i)
		e.Message.Data = []byte(`{"text":"x","more":"` + strings.Repeat("x", 50_000) + `"}`)
		return e
	}
	restore := fulldisk.Limit(t, 1<<20)
	accepted := 0
	var err error
	for err == nil && accepted < 100 {
		if err = b.Publish(t.Context(), large(accepted)); err == nil {
			accepted++
		}
	}
	refused := func(err error) bool {
		e, ok := errors.AsType[*apperr.Error](err)
		return ok && e.Code == apperr.Unavailable && e.Reason == "STREAM_NOT_WRITABLE" && e.RetryAfter > 0
	}
	if !refused(err) {
		t.Fatalf("on a full disk after %d events: got %v, want that the stream is not writable", accepted, err)
	}
	began := time.Now()
	for range 100 {
		if err := b.Publish(t.Context(), large(1000)); !refused(err) {
			t.Fatalf("on a full disk: got %v, want that the stream is not writable", err)
		}
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("got 100 refusals in %v, want them at once", took)
	}
	if err := b.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "stream REPLIES does not acknowledge") {
		t.Errorf("got %v from readiness, want the stream's name", err)
	}
	timetest.Until(t, "the server is known not to write", func() bool { return n.Writable() != nil })
	if err := b.Publish(t.Context(), company("c", "k")); err != nil { // a small event, into another stream
		t.Errorf("another stream: got %v, want no error", err)
	}
	if got := streamMessages(t, b, subject.Replies); got != uint64(accepted) {
		t.Errorf("got %d events, want the %d that were accepted", got, accepted)
	}

	restore()
	timetest.Until(t, "publishing goes on", func() bool { return b.Publish(t.Context(), large(2000)) == nil })
	if got := streamMessages(t, b, subject.Replies); got != uint64(accepted)+1 {
		t.Errorf("got %d events, want the %d that were accepted and one more", got, accepted)
	}
	if err := b.Ready(t.Context()); err != nil || n.Writable() != nil {
		t.Errorf("got %v and %v, want that all is well", err, n.Writable())
	}
	seen := 0
	for d, err := range b.Read(t.Context(), bus.Span{Stream: subject.Replies}) {
		if err != nil {
			t.Fatal(err)
		}
		if _, err := event.Decode[event.Reply](d.Subject, d.Data); err != nil {
			t.Errorf("event %d: %v", d.Sequence, err)
		}
		seen++
	}
	if seen != accepted+1 {
		t.Errorf("got %d events to read, want %d", seen, accepted+1)
	}
}
