package clientapi_test

import (
	"context"
	"encoding/json"
	"net/http"
	"sync"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/httpapitest"
	"github.com/parley-chat/parley/testkit/timetest"
)

// load runs clients that send one message after the other, and collects their responses.
type load struct {
	w       *world
	ending  chan struct{}
	clients sync.WaitGroup

	mu       sync.Mutex
	accepted map[string]bool // ids of messages that were answered with 200
	refused  int             // answers with 503
}

func (w *world) load(clients int) *load {
	l := &load{w: w, ending: make(chan struct{}), accepted: map[string]bool{}}
	for range clients {
		l.clients.Go(l.run)
	}
	return l
}

// run ends when it is stopped or the server refuses connections.
func (l *load) run() {
	for {
		select {
		case <-l.ending:
			return
		default:
		}
		got, err := l.w.do(http.MethodPost, "/message/send", sendBody("TEXT", `{"text":"hi"}`, l.w.chatID),
			headers{"x-access-token": l.w.token, "Content-Type": "application/json"})
		if err != nil {
			return
		}
		l.note(got)
	}
}

func (l *load) note(got httpapitest.Response) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch got.Status {
	case http.StatusOK:
		var s success
		if err := json.Unmarshal([]byte(got.Body), &s); err != nil {
			l.w.t.Errorf("reading %q: %v", got.Body, err)
		}
		l.accepted[s.MessageID] = true
	case http.StatusServiceUnavailable:
		l.refused++
	default:
		l.w.t.Errorf("got %d %s, want 200 or 503", got.Status, got.Body)
	}
}

func (l *load) counts() (accepted, refused int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.accepted), l.refused
}

// awaitMore waits until n more messages have been accepted.
func (l *load) awaitMore(n int) {
	l.w.t.Helper()
	before, _ := l.counts()
	timetest.Until(l.w.t, "more accepted messages", func() bool {
		now, _ := l.counts()
		return now >= before+n
	})
}

func (l *load) stop() {
	close(l.ending)
	l.clients.Wait()
}

// check looks for every accepted message in the stream.
func (l *load) check() {
	l.w.t.Helper()
	stored := l.w.storedIDs()
	for id := range l.accepted {
		if !stored[id] {
			l.w.t.Errorf("message %s was answered with 200 and is not in the stream", id)
		}
	}
}

// storedIDs returns the ids of all messages that were sent.
func (w *world) storedIDs() map[string]bool {
	return bustest.MessageIDs(w.t, w.engines.NATSURL, "SENDS")
}

// A shutdown under load loses no request that was answered with 200, and answers every request that it accepted.
func TestStopUnderLoadLosesNothing(t *testing.T) {
	t.Parallel()
	w := start(t)
	l := w.load(16)
	l.awaitMore(300)
	w.stop()
	l.clients.Wait() // their connections are refused now
	l.check()
	if _, refused := l.counts(); refused > 0 {
		t.Errorf("got %d answers with 503 during the stop, want none", refused)
	}
}

// NATS restarts during traffic: callers get Retry-After, and accepted messages are stored.
func TestTrafficOutlivesNATS(t *testing.T) {
	t.Parallel()
	w := start(t)
	l := w.load(8)
	l.awaitMore(100)
	w.engines.NATS.Stop()
	timetest.Until(t, "503", func() bool { _, refused := l.counts(); return refused > 0 })
	w.engines.RestartNATS()
	l.awaitMore(100)
	l.stop()
	l.check()
}

// The store stops during traffic.
func TestTrafficOutlivesTheStore(t *testing.T) {
	t.Parallel()
	w := start(t)
	l := w.load(8)
	l.awaitMore(100)
	w.engines.Store.Begin()
	timetest.Until(t, "503", func() bool { _, refused := l.counts(); return refused > 0 })
	w.engines.Store.End()
	l.awaitMore(100)
	l.stop()
	l.check()
}

// A full stream refuses with STREAM_FULL until there is room again.
func TestFullStreamRefuses(t *testing.T) {
	t.Parallel()
	w := start(t)
	nc, err := nats.Connect(w.engines.NATSURL)
	w.must(err)
	defer nc.Close()
	js, err := jetstream.New(nc)
	w.must(err)
	ctx, cancel := context.WithTimeout(t.Context(), timetest.Limit)
	defer cancel()
	stream, err := js.Stream(ctx, "SENDS")
	w.must(err)
	cfg := stream.CachedInfo().Config
	cfg.MaxMsgs = 3
	_, err = js.UpdateStream(ctx, cfg)
	w.must(err)
	for range 3 {
		succeeded(t, w.send(`{"text":"hi"}`))
	}
	full := w.send(`{"text":"hi"}`)
	if full.Status != http.StatusServiceUnavailable || full.Problem(t).Code != "STREAM_FULL" || full.Header.Get("Retry-After") == "" {
		t.Errorf("got %d %s, want 503 STREAM_FULL with Retry-After", full.Status, full.Body)
	}
	w.must(stream.Purge(ctx))
	succeeded(t, w.send(`{"text":"hi"}`))
}
