package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/testkit/httpapitest"
)

// traffic writes into chats as visitors and as the company until it is stopped, and records every success.
type traffic struct {
	visitors []*visitor
	company  *api
	cancel   context.CancelFunc
	writers  sync.WaitGroup
	accepted atomic.Int64
	refused  atomic.Int64 // answered with 503
	broken   atomic.Int64 // no connection
	cut      atomic.Int64 // connection closed without a response

	mu       sync.Mutex
	messages map[string]string // message id -> chat user id
	strange  []string          // responses other than a success or a 503
}

// startTraffic registers a few visitors and starts to write. The traffic ends with the test at the latest.
func startTraffic(t testing.TB, p place) *traffic {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	f := &traffic{company: p.clientAPI(t), cancel: cancel, messages: map[string]string{}}
	t.Cleanup(f.stop)
	widget := p.widgetAPI(t)
	for range 3 {
		v := register(t, p, widget)
		chatID := chatOf(t, p, v)
		f.visitors = append(f.visitors, v)
		f.writers.Go(func() { f.write(ctx, v, chatID) })
	}
	return f
}

// chatOf gets the id of a visitor's chat as the demo page does: from a realtime event.
func chatOf(t testing.TB, p place, v *visitor) string {
	t.Helper()
	s := connected(t, p.SocketURLs[0], v.token, "websocket")
	v.write(t, "which chat is this?")
	return s.next(t).ChatID
}

func (f *traffic) stop() {
	f.cancel()
	f.writers.Wait()
}

// write writes as the visitor and as the company in turn.
func (f *traffic) write(ctx context.Context, v *visitor, chatID string) {
	for n := 0; ctx.Err() == nil; n++ {
		data := map[string]string{"text": fmt.Sprint("message ", n)}
		if n%4 == 3 {
			body := map[string]any{"type": "TEXT", "chatId": chatID, "data": data}
			got, err := f.company.try(http.MethodPost, "/message/send", body, accessToken(v.place.AccessToken))
			f.note(v, http.StatusOK, "messageId", got, err)
			continue
		}
		got, err := v.api.try(http.MethodPost, "/message", map[string]any{"type": "TEXT", "data": data}, bearer(v.token))
		f.note(v, http.StatusCreated, "id", got, err)
	}
}

func (f *traffic) note(v *visitor, success int, idMember string, got httpapitest.Response, err error) {
	switch {
	case err != nil:
		if errors.Is(err, syscall.ECONNREFUSED) {
			f.broken.Add(1)
		} else {
			f.cut.Add(1)
		}
		time.Sleep(10 * time.Millisecond) // the server is down: avoid a busy loop
	case got.Status == success:
		var members map[string]any
		_ = json.Unmarshal([]byte(got.Body), &members)
		id, _ := members[idMember].(string)
		f.mu.Lock()
		f.messages[id] = v.token
		f.mu.Unlock()
		f.accepted.Add(1)
	case got.Status == http.StatusServiceUnavailable && got.Header.Get("Retry-After") != "":
		f.refused.Add(1)
		time.Sleep(10 * time.Millisecond)
	default:
		f.mu.Lock()
		f.strange = append(f.strange, fmt.Sprintf("%d %s", got.Status, got.Body))
		f.mu.Unlock()
	}
}

// await waits until the counter has grown by n.
func (f *traffic) await(t testing.TB, what string, counter *atomic.Int64, n int) {
	t.Helper()
	goal := counter.Load() + int64(n)
	eventually(t, what, func() error {
		if got := counter.Load(); got < goal {
			return fmt.Errorf("got %d, want %d", got, goal)
		}
		return nil
	})
}

// checkNothingLost stops the traffic and checks that every accepted message is in the streams and reaches the
// history, at the place p, which may differ from the one that accepted it.
func (f *traffic) checkNothingLost(t *testing.T, p place) {
	t.Helper()
	f.stop()
	if len(f.strange) > 0 {
		t.Errorf("traffic: got %d answers that are neither a success nor a 503 with Retry-After, for example %s", len(f.strange), f.strange[0])
	}
	t.Logf("traffic: %d accepted, %d refused with 503, %d without a connection, %d cut off",
		f.accepted.Load(), f.refused.Load(), f.broken.Load(), f.cut.Load())
	kept := streamed(t, p.NATSURL)
	for id := range f.messages {
		if !kept[id] {
			t.Errorf("message %s was accepted, but no stream has it", id)
		}
	}
	wantNoDeadLetters(t, p.NATSURL)
	widget, begun := p.widgetAPI(t), time.Now()
	for _, v := range f.visitors {
		now := &visitor{place: p, api: widget, token: v.token}
		eventually(t, "the history after the fault", func() error { return f.missing(now, now.history(t)) })
	}
	t.Logf("the histories are complete after %v", time.Since(begun).Round(time.Millisecond))
}

// missing returns an error for an accepted message of v that is missing from its history, or one that is in it twice.
func (f *traffic) missing(v *visitor, history []record) error {
	there := map[string]bool{}
	for _, r := range history {
		if there[r.ID] {
			return fmt.Errorf("message %s is in the history twice", r.ID)
		}
		there[r.ID] = true
	}
	absent := 0
	for id, owner := range f.messages {
		if owner == v.token && !there[id] {
			absent++
		}
	}
	if absent > 0 {
		return fmt.Errorf("%d accepted messages are missing", absent)
	}
	return nil
}

// streamed returns the ids of all events that the APIs have accepted.
func streamed(t testing.TB, url string) map[string]bool {
	t.Helper()
	js := plainJetStream(t, url)
	ids := map[string]bool{}
	for _, name := range []string{subject.Inbound, subject.Sends} {
		eachStreamed(t, js, name, func(id string) { ids[id] = true })
	}
	return ids
}

// eachStreamed calls each with the id of every event of a stream.
func eachStreamed(t testing.TB, js jetstream.JetStream, name string, each func(id string)) {
	t.Helper()
	stream, err := js.Stream(t.Context(), name)
	check(t, err)
	info, err := stream.Info(t.Context())
	check(t, err)
	if info.State.Msgs == 0 {
		return
	}
	consumer, err := stream.OrderedConsumer(t.Context(), jetstream.OrderedConsumerConfig{HeadersOnly: true})
	check(t, err)
	messages, err := consumer.Messages()
	check(t, err)
	defer messages.Stop()
	for {
		m, err := messages.Next()
		check(t, err)
		each(m.Headers().Get(nats.MsgIdHdr))
		meta, err := m.Metadata()
		check(t, err)
		if meta.Sequence.Stream >= info.State.LastSeq {
			return
		}
	}
}

// wantNoDeadLetters checks that no consumer has given up an event.
func wantNoDeadLetters(t testing.TB, url string) {
	t.Helper()
	stream, err := plainJetStream(t, url).Stream(t.Context(), subject.Dead)
	check(t, err)
	state := stream.CachedInfo().State
	if state.Msgs == 0 {
		return
	}
	first, err := stream.GetMsg(t.Context(), state.FirstSeq)
	check(t, err)
	t.Errorf("%d events were given up, the first one: %v %s", state.Msgs, first.Header, first.Data)
}

func plainJetStream(t testing.TB, url string) jetstream.JetStream {
	t.Helper()
	nc, err := nats.Connect(url)
	check(t, err)
	t.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	check(t, err)
	return js
}
