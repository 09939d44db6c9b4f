package realtime

// The message that a bot is writing when a socket joins; connect.go sends it as a snapshot.

import (
	"context"
	"sync"
	"time"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
)

const (
	// unfinishedTimeout bounds how long a join waits for a message that is being written. On timeout the
	// socket joins without it: the bot repeats the whole text every few seconds.
	unfinishedTimeout = time.Second
)

// unfinishedMessages finds messages that bots are still writing. Sockets that join at the same time share one request
// for the last parts; the text is read only if a message is being written.
type unfinishedMessages struct {
	bus     *bus.Bus
	now     func() time.Time
	timeout time.Duration

	mu      sync.Mutex // guards the fields below
	next    *lastsCall // not sent yet
	running bool
}

// lastsCall is a shared request for the last part on each of the subjects.
type lastsCall struct {
	subjects []string
	done     chan struct{}
	last     map[string]bus.Delivery // by subject
	err      error
}

// newUnfinishedMessages returns a reader of the stream PARTS.
func newUnfinishedMessages(b *bus.Bus, now func() time.Time) *unfinishedMessages {
	return &unfinishedMessages{bus: b, now: now, timeout: unfinishedTimeout}
}

// of returns the message that a bot is writing for a visitor, as one part with the text so far; ok is false
// if there is none.
func (u *unfinishedMessages) of(
	ctx context.Context,
	appID, chatUserID string,
) (whole event.MessagePart, ok bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, u.timeout)
	defer cancel()
	subj := subject.Part(appID, chatUserID)
	call := u.join(subj)
	select {
	case <-call.done:
	case <-ctx.Done():
		return whole, false, ctx.Err()
	}
	last, known := call.last[subj]
	if call.err != nil || !known || u.now().Sub(last.Time) > partStale {
		return whole, false, call.err
	}
	part, err := event.Decode[event.MessagePart](subj, last.Data)
	if err != nil || part.Done {
		return whole, false, nil // malformed
	}
	if part.Offset == 0 {
		return part, true, nil
	}
	stored, err := u.bus.Stored(ctx, subject.Parts, subj)
	if err != nil {
		return whole, false, err
	}
	for d, err := range u.bus.After(ctx, subject.Parts, stored, 0) {
		if err != nil {
			return whole, false, err
		}
		if p, err := event.Decode[event.MessagePart](d.Subject, d.Data); err == nil {
			whole.Extend(p)
		}
	}
	return whole, whole.MessageID != "" && !whole.Done, nil
}

// join adds a subject to the next shared request and returns it.
func (u *unfinishedMessages) join(subj string) *lastsCall {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.next == nil {
		u.next = &lastsCall{done: make(chan struct{})}
	}
	u.next.subjects = append(u.next.subjects, subj)
	if !u.running {
		u.running = true
		go u.send()
	}
	return u.next
}

// send sends shared requests until none is waiting. Callers who come meanwhile share the next one.
func (u *unfinishedMessages) send() {
	for {
		u.mu.Lock()
		call := u.next
		u.next = nil
		u.running = call != nil
		u.mu.Unlock()
		if call == nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), u.timeout)
		call.last, call.err = u.bus.Lasts(ctx, subject.Parts, call.subjects)
		cancel()
		close(call.done)
	}
}
