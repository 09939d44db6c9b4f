package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
)

// conversation is a load of visitors who ask a burst of questions, wait for all answers, and repeat. It lasts from
// [scaling.converse] to end.
type conversation struct {
	*scaling
	rooms   map[string]*tally // by the visitor's id
	burst   int
	stopped atomic.Bool

	asking      *errgroup.Group
	waiting     context.Context // of visitors for answers
	giveUp      context.CancelFunc
	reading     errgroup.Group
	stopReading context.CancelFunc
}

// converse lets n visitors ask until end. They start within the first half second.
func (s *scaling) converse(ctx context.Context, n, burst int) *conversation {
	c := &conversation{scaling: s, rooms: make(map[string]*tally, n), burst: burst}
	for _, v := range s.newVisitors(n) {
		t := s.trial.newTally(len(s.trial.tallies))
		t.answered = make(chan struct{}, burst)
		c.rooms[v.id] = t
	}
	reading, stopReading := context.WithCancel(ctx)
	c.stopReading = stopReading
	since := time.Now()
	c.reading.Go(func() error { return c.read(reading, since) })
	c.asking, ctx = errgroup.WithContext(ctx)
	c.waiting, c.giveUp = context.WithCancel(ctx)
	for id, t := range c.rooms {
		c.asking.Go(func() error { return c.ask(ctx, id, t) })
	}
	return c
}

// ask lets a visitor ask until the conversation is stopped. A question that cannot be asked ends the run.
func (c *conversation) ask(ctx context.Context, visitorID string, t *tally) error {
	pause(ctx, time.Duration(t.room%500)*time.Millisecond)
	for sequence := 1; !c.stopped.Load(); sequence += c.burst {
		for i := range c.burst {
			m := mark{trial: t.trial.id, room: t.room, sequence: sequence + i, planned: time.Since(t.trial.began)}
			if err := c.write(ctx, visitorID, m.data()); err != nil {
				return err
			}
			c.asked.Add(1)
		}
		for range c.burst {
			select {
			case <-t.answered:
			case <-c.waiting.Done():
				return nil
			}
		}
	}
	return nil
}

// write publishes a message as widget-api does.
func (s *scaling) write(ctx context.Context, visitorID, data string) error {
	m := newMessage(data)
	m.NameOfSender = "Visitor"
	m.IsFromSupport = false
	return s.bus.Publish(ctx, event.Derived(), event.VisitorMessageAccepted{
		CompanyID: "bench", AppID: s.demo.AppID, ChatUserID: visitorID, ChatID: visitorID, Message: m,
	})
}

// read counts the answers in the stream of replies.
func (c *conversation) read(ctx context.Context, since time.Time) error {
	for d, err := range c.bus.Read(ctx, bus.Range{Stream: subject.Replies, Since: since, Follow: true}) {
		if err != nil {
			return fmt.Errorf("reading replies: %w", err)
		}
		_, id, _ := subject.ParseReply(d.Subject)
		if t := c.rooms[id]; t != nil {
			t.note(d.Data, d.Time)
		}
	}
	return nil
}

// measure lets the visitors ask for span and returns its results.
func (c *conversation) measure(ctx context.Context, span time.Duration) outcome {
	from := time.Now()
	pause(ctx, span)
	return c.trial.outcome(from, time.Now(), 0)
}

// end lets the visitors finish. A question without an answer after limit is lost.
func (c *conversation) end(ctx context.Context, limit time.Duration) {
	c.stopped.Store(true)
	timer := time.AfterFunc(limit, c.giveUp)
	defer timer.Stop()
	err := c.asking.Wait()
	pause(ctx, time.Second) // duplicates may arrive late
	c.stopReading()
	c.check(errors.Join(err, c.reading.Wait()))
}

// webhookTime is the webhook's response time.
const webhookTime = 500 * time.Millisecond

// hangingText is the text of a message that the webhook holds.
const hangingText = "Please hold."

// webhook is the bot of the processors. It answers each message with its own data, after a delay, and holds one for
// longer. mu guards the numbers of requests.
type webhook struct {
	url  string
	hang time.Duration

	mu         sync.Mutex
	busy, peak int
}

func (d *deployment) startWebhook(hang time.Duration) *webhook {
	h := &webhook{hang: hang}
	server := httptest.NewServer(h)
	d.cleanup(server.Close)
	h.url = server.URL
	return h
}

func (h *webhook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var asked struct {
		Message chat.Message `json:"message"`
	}
	if err := json.NewDecoder(r.Body).Decode(&asked); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	h.count(1)
	defer h.count(-1)
	wait := webhookTime
	if bytes.Contains(asked.Message.Data, []byte(hangingText)) {
		wait = h.hang
	}
	pause(r.Context(), wait)
	w.Header().Set("Content-Type", "application/json")
	_, _ = fmt.Fprintf(w, `{"messages":[{"type":"TEXT","data":%s}]}`, asked.Message.Data)
}

func (h *webhook) count(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.busy += n
	h.peak = max(h.peak, h.busy)
}

// peakSince returns the maximum number of concurrent requests since the last call.
func (h *webhook) peakSince() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	peak := h.peak
	h.peak = h.busy
	return peak
}
