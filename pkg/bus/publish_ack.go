package bus

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ackShards is a power of two; more of them mean less waiting for each other's lock.
const ackShards = 16

const (
	sweepInterval    = publishTimeout / sweepsPerTimeout
	sweepsPerTimeout = 20
)

var (
	errNoStream   = errors.New("no stream takes this subject")
	errAckTimeout = errors.New("the stream did not acknowledge in time")
)

// ackTable brings each stream's acknowledgement to the publisher that waits for it. All of a bus share one subscription, and
// a publisher's place in the table is the last token of the reply subject. Measured against the two ways that nats.go offers
// (see BenchmarkPublish) it costs the least processor time, and unlike an asynchronous publish it keeps nothing when an
// acknowledgement never comes.
type ackTable struct {
	prefix string // of the reply subjects, with the final dot
	next   atomic.Uint64
	round  atomic.Uint64 // counts the sweeps
	shards [ackShards]ackShard
	pool   sync.Pool
	late   func(stream string) // called for an acknowledgement that no publisher waits for
}

type ackShard struct {
	mu      sync.Mutex
	waiting map[uint64]*ackWaiter
}

// ackWaiter is the place of one publisher. The goroutine that removes it from the table, under the table's lock, sends at most one
// answer, so waiters can be reused.
type ackWaiter struct {
	answer  chan error // holds one
	expires uint64     // the round whose sweep gives up on the answer
}

func newAckTable(late func(stream string)) *ackTable {
	t := &ackTable{late: late}
	for i := range t.shards {
		t.shards[i].waiting = make(map[uint64]*ackWaiter)
	}
	t.pool.New = func() any { return &ackWaiter{answer: make(chan error, 1)} }
	return t
}

func (t *ackTable) listen(conn *nats.Conn) error {
	t.prefix = conn.NewInbox() + "."
	sub, err := conn.Subscribe(t.prefix+"*", t.receive)
	if err != nil {
		return err
	}
	return sub.SetPendingLimits(-1, -1)
}

// await calls send with a reply subject and returns what the acknowledgement said, or why none came: the message was refused, ctx
// has ended, or publishTimeout has passed.
func (t *ackTable) await(ctx context.Context, send func(reply string)) error {
	id := t.next.Add(1)
	w := t.pool.Get().(*ackWaiter)
	defer t.pool.Put(w)
	w.expires = t.round.Load() + sweepsPerTimeout
	t.put(id, w)
	send(t.reply(id))
	select {
	case err := <-w.answer:
		return err
	case <-ctx.Done():
		return t.abandon(id, w, ctx.Err())
	}
}

// sweep fails overdue answers until ctx ends. It replaces a timer for each publish, which would cost more than the rest of the
// publish except the write; in return a publish may wait up to one sweepInterval longer.
func (t *ackTable) sweep(ctx context.Context) {
	ticker := time.NewTicker(sweepInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			round := t.round.Add(1)
			t.fail(errAckTimeout, func(w *ackWaiter) bool { return w.expires < round })
		}
	}
}

func (t *ackTable) reply(id uint64) string {
	var buffer [64]byte
	return string(strconv.AppendUint(append(buffer[:0], t.prefix...), id, 36))
}

func (t *ackTable) put(id uint64, w *ackWaiter) {
	s := &t.shards[id%ackShards]
	s.mu.Lock()
	s.waiting[id] = w
	s.mu.Unlock()
}

func (t *ackTable) take(id uint64) (*ackWaiter, bool) {
	s := &t.shards[id%ackShards]
	s.mu.Lock()
	w, ok := s.waiting[id]
	delete(s.waiting, id)
	s.mu.Unlock()
	return w, ok
}

// abandon gives the place up. Where an answer has overtaken us it counts, because it is the truth.
func (t *ackTable) abandon(id uint64, w *ackWaiter, reason error) error {
	if _, ours := t.take(id); ours {
		return reason
	}
	return <-w.answer
}

// failAll fails all waiters.
func (t *ackTable) failAll(reason error) { t.fail(reason, func(*ackWaiter) bool { return true }) }

// fail fails the waiters that choose selects.
func (t *ackTable) fail(reason error, chosen func(*ackWaiter) bool) {
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		for id, w := range s.waiting {
			if chosen(w) {
				delete(s.waiting, id)
				w.answer <- reason
			}
		}
		s.mu.Unlock()
	}
}

// waiting returns how many publishers wait.
func (t *ackTable) waiting() int {
	n := 0
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		n += len(s.waiting)
		s.mu.Unlock()
	}
	return n
}

// drain returns when no waiter is left, or after limit.
func (t *ackTable) drain(limit time.Duration) {
	for deadline := time.Now().Add(limit); t.waiting() > 0 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
}

func (t *ackTable) receive(m *nats.Msg) {
	err := parseAck(m.Data, m.Header)
	if t.answer(m.Subject, err) || err != nil {
		return
	}
	var ack struct {
		Stream string `json:"stream"`
	}
	if json.Unmarshal(m.Data, &ack) == nil {
		t.late(ack.Stream)
	}
}

// answer passes an acknowledgement to the publisher that waits on the reply subject, and reports whether there is one.
func (t *ackTable) answer(reply string, err error) bool {
	id, wrong := strconv.ParseUint(strings.TrimPrefix(reply, t.prefix), 36, 64)
	if wrong != nil {
		return false
	}
	w, ok := t.take(id)
	if ok {
		w.answer <- err
	}
	return ok
}

var (
	ackStart = []byte(`{"stream":"`)
	ackError = []byte(`"error"`)
)

// parseAck returns nil where the stream says that it has the message. The streams' usual answer is recognised by its first
// member; all else goes through the JSON decoder.
func parseAck(data []byte, header nats.Header) error {
	if len(data) == 0 && header.Get("Status") == "503" {
		return errNoStream
	}
	if bytes.HasPrefix(data, ackStart) && !bytes.Contains(data, ackError) {
		return nil
	}
	var ack struct {
		Error  *jetstream.APIError `json:"error"`
		Stream string              `json:"stream"`
	}
	if err := json.Unmarshal(data, &ack); err != nil {
		return fmt.Errorf("reading the acknowledgement: %w", err)
	}
	switch {
	case ack.Error != nil:
		return ack.Error
	case ack.Stream == "":
		return jetstream.ErrInvalidJSAck
	}
	return nil
}
