package realtime

// Reading the stream REPLIES: low_watermarks.go asks for its state, recover.go and outage.go read messages.

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/proto-events/subject"
)

const (
	stateTimeout = 2 * time.Second
	// replicaPause is the pause before a replica that does not have the latest messages yet is read again.
	replicaPause = 20 * time.Millisecond
)

// replyStream reads replies from the stream REPLIES. It is safe for concurrent use.
type replyStream struct {
	bus *bus.Bus

	mu      sync.Mutex // guards the fields below
	next    *stateCall // not sent yet
	running bool
}

// stateCall is one request for the stream state, shared by all callers that arrived before it was sent.
type stateCall struct {
	done  chan struct{}
	state bus.StreamState
	err   error
}

// newReplyStream returns a reader of the stream REPLIES.
func newReplyStream(b *bus.Bus) *replyStream { return &replyStream{bus: b} }

// state returns the state of the stream, requested after the call began. Concurrent callers share requests.
func (r *replyStream) state(ctx context.Context) (bus.StreamState, error) {
	call := r.joinCall()
	select {
	case <-call.done:
		return call.state, call.err
	case <-ctx.Done():
		return bus.StreamState{}, ctx.Err()
	}
}

// joinCall returns the next shared request, which is not sent yet: its state is newer than the call.
func (r *replyStream) joinCall() *stateCall {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.next == nil {
		r.next = &stateCall{done: make(chan struct{})}
	}
	if !r.running {
		r.running = true
		go r.send()
	}
	return r.next
}

// send sends shared requests until none is waiting.
func (r *replyStream) send() {
	for {
		r.mu.Lock()
		call := r.next
		r.next = nil
		r.running = call != nil
		r.mu.Unlock()
		if call == nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), stateTimeout)
		call.state, call.err = r.bus.State(ctx, subject.Replies)
		cancel()
		close(call.done)
	}
}

// lowWatermarks returns, for each partition, the sequence up to which the gateways have published every reply.
// epoch is that of the stream.
func (r *replyStream) lowWatermarks(ctx context.Context, epoch time.Time) (watermarks []uint64, err error) {
	partitions, err := r.bus.Partitions(ctx, subject.Replies)
	if err != nil {
		return nil, err
	}
	offsets, err := r.bus.Offsets(ctx, subject.Replies, consumerGroup, epoch)
	if err != nil {
		return nil, err
	}
	if len(offsets) != partitions {
		return nil, errNotRead
	}
	watermarks = make([]uint64, partitions)
	for p := range watermarks {
		watermarks[p] = offsets[p]
	}
	return watermarks, nil
}

var errNotRead = errors.New("some partitions have no saved offset yet")

// read calls fn in order with all messages after a sequence whose stored subject matches filter. It stops at
// the first error of fn and returns it.
func (r *replyStream) read(ctx context.Context, filter string, after uint64, fn func(bus.Delivery) error) error {
	for d, err := range r.bus.After(ctx, subject.Replies, filter, after) {
		if err == nil {
			err = fn(d)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// lastOf returns the sequence of the last message on a stored subject or filter, read from the stream's
// leader; 0 if there is none.
func (r *replyStream) lastOf(ctx context.Context, stored string) (uint64, error) {
	return r.bus.LastSequence(ctx, subject.Replies, stored)
}

// publishedBefore reports whether the gateways have published a reply before, under an earlier offset: it is a dead
// letter of another consumer, which an operator has replayed for that consumer only.
func publishedBefore(d bus.Delivery) bool { return !bus.AddressedTo(d.Header, consumerGroup) }
