package bus

// The waits for acknowledgements, and the reply subjects by which they are found. publish.go waits.

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

// ackShards is a power of two; more shards mean less lock contention.
const ackShards = 16

const (
	sweepInterval    = publishTimeout / sweepsPerTimeout
	sweepsPerTimeout = 20
)

var (
	errNoStream   = errors.New("no stream for the subject")
	errAckTimeout = errors.New("the stream did not acknowledge in time")
)

// ackTable routes acknowledgements to the waiting publishers. All share one subscription; the last token of
// the reply subject is the publisher's id. It needs less CPU than the publish functions of nats.go (see
// BenchmarkPublish) and, unlike an asynchronous publish, retains nothing if an acknowledgement never arrives.
type ackTable struct {
	prefix string // of reply subjects, including the final dot
	next   atomic.Uint64
	round  atomic.Uint64 // counts the sweeps
	shards [ackShards]ackShard
	pool   sync.Pool
	late   func(stream string) // called for a positive acknowledgement without a waiting publisher
	stored func(ack []byte)    // called for each positive acknowledgement

	due []*streamSync // to be requested after the acknowledgements that have arrived; only for receive
}

type ackShard struct {
	mu      sync.Mutex // guards waiting
	waiting map[uint64]*ackWaiter
}

// ackWaiter waits for the acknowledgement of one publish. Only the goroutine that removes it from the table,
// under the shard's lock, sends to result, at most once. Waiters can therefore be reused.
//
// A waiter for a sync (round) passes the result to the publishes of the sync instead.
type ackWaiter struct {
	result  chan error  // capacity 1; nil in a round
	expires uint64      // number of the last sweep before the timeout
	sync    *streamSync // that the publish waits for after the acknowledgement; nil: none
	round   *streamSync // whose request this waits for; nil: a publish
}

// end passes on the result. It must be called without locks.
func (w *ackWaiter) end(err error) {
	if w.round != nil {
		w.round.end(err)
		return
	}
	w.result <- err
}

func newAckTable(late func(stream string), stored func(ack []byte)) *ackTable {
	t := &ackTable{late: late, stored: stored}
	for i := range t.shards {
		t.shards[i].waiting = make(map[uint64]*ackWaiter)
	}
	t.pool.New = func() any { return &ackWaiter{result: make(chan error, 1)} }
	return t
}

func (t *ackTable) listen(conn *nats.Conn) error {
	t.prefix = conn.NewInbox() + "."
	received := func(m *nats.Msg) {
		t.receive(m)
		t.requestDue(m.Sub)
	}
	sub, err := conn.Subscribe(t.prefix+"*", received)
	if err != nil {
		return err
	}
	return sub.SetPendingLimits(-1, -1)
}

// await calls send with a reply subject and returns the result of the acknowledgement, or the error if the
// message could not be sent, ctx ended, or publishTimeout passed. After a positive acknowledgement it waits for sync,
// within the same time; nil: it does not.
func (t *ackTable) await(ctx context.Context, sync *streamSync, send func(reply string)) error {
	return t.wait(ctx, sync, func(id uint64) { send(t.reply(id)) })
}

// awaitSync waits for a sync as await does after an acknowledgement.
func (t *ackTable) awaitSync(ctx context.Context, sync *streamSync) error {
	return t.wait(ctx, nil, func(id uint64) {
		if sync.add(id) {
			sync.request()
		}
	})
}

func (t *ackTable) wait(ctx context.Context, sync *streamSync, begin func(id uint64)) error {
	id := t.next.Add(1)
	w := t.pool.Get().(*ackWaiter)
	defer t.pool.Put(w)
	w.expires = t.round.Load() + sweepsPerTimeout
	w.sync = sync
	t.add(id, w)
	begin(id)
	select {
	case err := <-w.result:
		return err
	case <-ctx.Done():
		return t.abandon(id, w, ctx.Err())
	}
}

// expect returns the reply subject for a request of a sync.
func (t *ackTable) expect(round *streamSync) (reply string) {
	id := t.next.Add(1)
	t.add(id, &ackWaiter{round: round, expires: t.round.Load() + sweepsPerTimeout})
	return t.reply(id)
}

// sweep fails overdue waiters until ctx ends. A timer per publish would cost more than everything but the
// write; instead, a publish may wait up to one sweepInterval longer.
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

func (t *ackTable) add(id uint64, w *ackWaiter) {
	s := &t.shards[id%ackShards]
	s.mu.Lock()
	s.waiting[id] = w
	s.mu.Unlock()
}

func (t *ackTable) remove(id uint64) (*ackWaiter, bool) {
	s := &t.shards[id%ackShards]
	s.mu.Lock()
	w, ok := s.waiting[id]
	delete(s.waiting, id)
	s.mu.Unlock()
	return w, ok
}

// abandon stops waiting. If an acknowledgement has arrived in the meantime, abandon returns its result
// instead of reason.
func (t *ackTable) abandon(id uint64, w *ackWaiter, reason error) error {
	if _, waiting := t.remove(id); waiting {
		return reason
	}
	return <-w.result
}

// failAll fails all waiters.
func (t *ackTable) failAll(reason error) { t.fail(reason, func(*ackWaiter) bool { return true }) }

// fail fails the waiters that chosen selects.
func (t *ackTable) fail(reason error, chosen func(*ackWaiter) bool) {
	var failed []*ackWaiter
	for i := range t.shards {
		s := &t.shards[i]
		s.mu.Lock()
		for id, w := range s.waiting {
			if chosen(w) {
				delete(s.waiting, id)
				failed = append(failed, w)
			}
		}
		s.mu.Unlock()
	}
	for _, w := range failed {
		w.end(reason)
	}
}

// waiting returns the number of waiting publishers.
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

// drain waits until no publisher is waiting, for at most limit.
func (t *ackTable) drain(limit time.Duration) {
	for deadline := time.Now().Add(limit); t.waiting() > 0 && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
}

func (t *ackTable) receive(m *nats.Msg) {
	err := parseAck(m.Data, m.Header)
	if err == nil {
		t.stored(m.Data)
	}
	if t.resolve(m.Subject, err) || err != nil {
		return
	}
	var ack struct {
		Stream string `json:"stream"`
	}
	if json.Unmarshal(m.Data, &ack) == nil {
		t.late(ack.Stream)
	}
}

// requestDue asks for the syncs of the acknowledgements that arrived together, after the last of them: they share one.
func (t *ackTable) requestDue(sub *nats.Subscription) {
	if len(t.due) == 0 {
		return
	}
	if pending, _, err := sub.Pending(); err == nil && pending > 1 { // it counts the one in hand
		return
	}
	for _, sync := range t.due {
		sync.request()
	}
	t.due = t.due[:0]
}

// resolve passes the result of an acknowledgement to the publisher that waits on the reply subject, and
// reports whether there is one.
func (t *ackTable) resolve(reply string, err error) bool {
	id, parseErr := strconv.ParseUint(strings.TrimPrefix(reply, t.prefix), 36, 64)
	if parseErr != nil {
		return false
	}
	if err == nil && t.syncNext(id) {
		return true
	}
	return t.finish(id, err)
}

// syncNext makes an acknowledged publish wait for its sync. It returns false if there is none.
func (t *ackTable) syncNext(id uint64) bool {
	s := &t.shards[id%ackShards]
	s.mu.Lock()
	var sync *streamSync
	if w := s.waiting[id]; w != nil {
		sync = w.sync
	}
	s.mu.Unlock()
	if sync == nil {
		return false
	}
	if sync.add(id) {
		t.due = append(t.due, sync)
	}
	return true
}

// finish passes the result to a waiter and reports whether there is one.
func (t *ackTable) finish(id uint64, err error) bool {
	w, ok := t.remove(id)
	if ok {
		w.end(err)
	}
	return ok
}

var (
	ackStart = []byte(`{"stream":"`)
	ackError = []byte(`"error"`)
)

// parseAck returns nil if the stream has stored the message. It recognises the usual acknowledgement by its
// prefix and decodes everything else as JSON.
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
		return fmt.Errorf("decoding the acknowledgement: %w", err)
	}
	switch {
	case ack.Error != nil:
		return ack.Error
	case ack.Stream == "":
		return jetstream.ErrInvalidJSAck
	}
	return nil
}
