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

// replyLog reads replies from the stream REPLIES. It is safe for concurrent use.
type replyLog struct {
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

// newReplyLog returns a reader of the stream REPLIES.
func newReplyLog(b *bus.Bus) *replyLog { return &replyLog{bus: b} }

// state returns the state of the stream, requested after the call began. Concurrent callers share requests.
func (l *replyLog) state(ctx context.Context) (bus.StreamState, error) {
	call := l.joinCall()
	select {
	case <-call.done:
		return call.state, call.err
	case <-ctx.Done():
		return bus.StreamState{}, ctx.Err()
	}
}

// joinCall returns the next shared request, which is not sent yet: its state is newer than the call.
func (l *replyLog) joinCall() *stateCall {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.next == nil {
		l.next = &stateCall{done: make(chan struct{})}
	}
	if !l.running {
		l.running = true
		go l.send()
	}
	return l.next
}

// send sends shared requests until none is waiting.
func (l *replyLog) send() {
	for {
		l.mu.Lock()
		call := l.next
		l.next, l.running = nil, call != nil
		l.mu.Unlock()
		if call == nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), stateTimeout)
		call.state, call.err = l.bus.State(ctx, subject.Replies)
		cancel()
		close(call.done)
	}
}

// lowWatermarks returns, for each partition, the sequence up to which the gateways have published every reply.
// created is the creation time of the stream.
func (l *replyLog) lowWatermarks(ctx context.Context, created time.Time) (watermarks []uint64, err error) {
	partitions, err := l.bus.Partitions(ctx, subject.Replies)
	if err != nil {
		return nil, err
	}
	offsets, err := l.bus.Offsets(ctx, subject.Replies, durable, created)
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
func (l *replyLog) read(ctx context.Context, filter string, after uint64, fn func(bus.Delivery) error) error {
	for d, err := range l.bus.After(ctx, subject.Replies, filter, after) {
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
func (l *replyLog) lastOf(ctx context.Context, stored string) (uint64, error) {
	return l.bus.LastSequence(ctx, subject.Replies, stored)
}

// emitted reports whether a reply was emitted before. Such a reply was republished from the dead letters of
// another consumer.
func emitted(d bus.Delivery) bool { return !bus.AddressedTo(d.Header, durable) }
