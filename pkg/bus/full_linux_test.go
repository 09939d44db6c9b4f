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

// While the disk is full, publishes fail at once with their own reason, readiness names the stream, and
// acknowledged events can be read. When there is room again, everything recovers without intervention.
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
		if err = b.Publish(t.Context(), event.Derived(), large(accepted)); err == nil {
			accepted++
		}
	}
	refused := func(err error) bool {
		e, ok := errors.AsType[*apperr.Error](err)
		return ok && e.Code == apperr.Unavailable && e.Reason == "STREAM_NOT_WRITABLE" && e.RetryAfter > 0
	}
	if !refused(err) {
		t.Fatalf("on a full disk after %d events: got %v, want the stream not writable", accepted, err)
	}
	began := time.Now()
	for range 100 {
		if err := b.Publish(t.Context(), event.Derived(), large(1000)); !refused(err) {
			t.Fatalf("on a full disk: got %v, want the stream not writable", err)
		}
	}
	if took := time.Since(began); took > time.Second {
		t.Errorf("100 rejections took %v, want them at once", took)
	}
	if err := b.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), "stream REPLIES does not acknowledge") {
		t.Errorf("got %v from readiness, want the stream's name", err)
	}
	timetest.Until(t, "the server reports that it cannot write", func() bool { return n.Writable() != nil })
	if err := b.Publish(t.Context(), event.Derived(), company("c", "k")); err != nil { // a small event to another stream
		t.Errorf("another stream: got %v, want no error", err)
	}
	if got := streamMessages(t, b, subject.Replies); got != uint64(accepted) {
		t.Errorf("got %d events, want the %d accepted", got, accepted)
	}

	restore()
	timetest.Until(t, "publishing recovers", func() bool { return b.Publish(t.Context(), event.Derived(), large(2000)) == nil })
	if got := streamMessages(t, b, subject.Replies); got != uint64(accepted)+1 {
		t.Errorf("got %d events, want the %d accepted and one more", got, accepted)
	}
	if err := b.Ready(t.Context()); err != nil || n.Writable() != nil {
		t.Errorf("got %v and %v, want no errors", err, n.Writable())
	}
	seen := 0
	for d, err := range b.Read(t.Context(), bus.Range{Stream: subject.Replies}) {
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
