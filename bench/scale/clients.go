package main

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/bench/internal/rig"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
)

// clients are visitors who write, wait for all answers, and repeat.
type clients struct {
	deployment  *deployment
	visitors    []*visitor
	burst       int // number of consecutive messages of a visitor
	stopped     atomic.Bool
	writing     sync.WaitGroup
	reading     sync.WaitGroup
	stopReading context.CancelFunc

	mu         sync.Mutex
	answers    []answer
	fault      error
	doubled    int
	outOfOrder int // not the visitor's next answer
}

// answer is the arrival time of an answer, and its latency.
type answer struct {
	at   time.Time
	wait time.Duration
}

type visitor struct {
	index    int
	id       string
	text     string // prefix of its messages
	written  int    // owned by the visitor's goroutine
	received chan struct{}

	mu    sync.Mutex
	asked []time.Time // unanswered questions
	next  int         // the number of the next answer
}

// startClients lets n visitors write until end. They start within the first half second.
func (d *deployment) startClients(ctx context.Context, n, burst int) *clients {
	c := &clients{deployment: d, burst: burst}
	reading, stopReading := context.WithCancel(ctx)
	c.stopReading = stopReading
	byID := make(map[string]*visitor, n)
	for i := range n {
		v := &visitor{index: i, id: uuid.NewString(), text: "v", received: make(chan struct{}, 1024)}
		c.visitors = append(c.visitors, v)
		byID[v.id] = v
	}
	listening := make(chan struct{})
	c.reading.Go(func() { c.read(reading, byID, listening) })
	<-listening
	for _, v := range c.visitors {
		c.writing.Go(func() {
			pause(ctx, time.Duration(v.index%500)*time.Millisecond)
			for !c.stopped.Load() && ctx.Err() == nil {
				c.write(ctx, v, c.burst)
			}
		})
	}
	return c
}

// write sends messages and waits for their answers.
func (c *clients) write(ctx context.Context, v *visitor, messages int) {
	for range messages {
		v.mu.Lock()
		v.asked = append(v.asked, time.Now())
		v.mu.Unlock()
		e := event.VisitorMessageAccepted{
			CompanyID: "bench", AppID: c.deployment.rig.Demo.AppID, ChatUserID: v.id, ChatID: v.id,
			Message: chat.Message{
				ID:           uuid.Must(uuid.NewV7()).String(),
				CreatedAt:    time.Now().UTC(),
				Type:         chat.Text,
				NameOfSender: "Visitor",
				Data:         json.RawMessage(`{"text":"` + v.text + " " + strconv.Itoa(v.written) + `"}`),
			},
		}
		v.written++
		for ctx.Err() == nil {
			err := c.deployment.bus.Publish(ctx, event.Derived(), e)
			if err == nil {
				break
			}
			c.note(fmt.Errorf("writing: %w", err))
		}
	}
	for range messages {
		select {
		case <-v.received:
		case <-ctx.Done():
			return
		}
	}
}

func (c *clients) note(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fault == nil {
		c.fault = err
	}
}

// read consumes the stream of replies.
func (c *clients) read(ctx context.Context, byID map[string]*visitor, listening chan struct{}) {
	span := bus.Range{Stream: subject.Replies, Since: time.Now(), Follow: true}
	close(listening)
	for d, err := range c.deployment.bus.Read(ctx, span) {
		if err != nil {
			c.note(fmt.Errorf("reading replies: %w", err))
			return
		}
		_, id, _ := subject.ParseReply(d.Subject)
		v := byID[id]
		if v == nil {
			continue
		}
		var reply event.Reply
		reply, err = event.Decode[event.Reply](d.Subject, d.Data)
		if err != nil {
			c.note(err)
			return
		}
		c.receive(v, reply, d.Time)
	}
}

func (c *clients) receive(v *visitor, reply event.Reply, at time.Time) {
	var data struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(reply.Message.Data, &data) // foreign data has no number
	_, digits, _ := strings.Cut(data.Text, " ")
	number, err := strconv.Atoi(digits)
	v.mu.Lock()
	defer v.mu.Unlock()
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err == nil && number < v.next:
		c.doubled++
		return
	case err != nil || number > v.next || len(v.asked) == 0:
		c.outOfOrder++
		return
	}
	c.answers = append(c.answers, answer{at, at.Sub(v.asked[0])})
	v.asked = v.asked[1:]
	v.next++
	v.received <- struct{}{}
}

// figures are the results of clients within a time span.
type figures struct {
	answers int
	rate    float64 // per second
	p99     time.Duration
	longest time.Duration
}

// during returns the results between two times.
func (c *clients) during(from, until time.Time) figures {
	c.mu.Lock()
	defer c.mu.Unlock()
	var waits []time.Duration
	for _, a := range c.answers {
		if !a.at.Before(from) && a.at.Before(until) {
			waits = append(waits, a.wait)
		}
	}
	slices.Sort(waits)
	f := figures{
		answers: len(waits),
		rate:    float64(len(waits)) / until.Sub(from).Seconds(),
		p99:     rig.Quantile(waits, .99),
	}
	if len(waits) > 0 {
		f.longest = waits[len(waits)-1]
	}
	return f
}

// measure lets the clients run for span and returns its results.
func (c *clients) measure(ctx context.Context, span time.Duration) figures {
	from := time.Now()
	pause(ctx, span)
	return c.during(from, time.Now())
}

// writeHanging writes a message that the webhook holds; nobody waits for the answer.
func (c *clients) writeHanging(ctx context.Context) {
	v := &visitor{id: c.visitors[0].id + "-hangs", text: "hang", received: make(chan struct{}, 1)}
	v.received <- struct{}{}
	c.writing.Go(func() { c.write(ctx, v, 1) })
}

// tally counts the outcomes of all questions.
type tally struct{ asked, lost, doubled, outOfOrder int }

// end lets the visitors finish and returns the tally. A question without an answer after limit is lost.
func (c *clients) end(ctx context.Context, limit time.Duration) (tally, error) {
	c.stopped.Store(true)
	ended := make(chan struct{})
	go func() { c.writing.Wait(); close(ended) }()
	select {
	case <-ended:
	case <-time.After(limit):
	case <-ctx.Done():
	}
	pause(ctx, time.Second) // duplicates may arrive late
	c.stopReading()
	c.reading.Wait()
	var t tally
	for _, v := range c.visitors {
		v.mu.Lock()
		t.asked += v.next + len(v.asked)
		t.lost += len(v.asked)
		v.mu.Unlock()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	t.doubled = c.doubled
	t.outOfOrder = c.outOfOrder
	return t, c.fault
}
