package realtime

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
)

const (
	// unfinishedTimeout is how long a joining socket waits for a message that is being written. Without an answer it goes on without: the
	// bot repeats the whole text every few seconds.
	unfinishedTimeout = time.Second
	// lastsAtOnce is how many subjects one request asks for; the server takes 1,024.
	lastsAtOnce = 500
)

// Unfinished finds messages that bots are still writing. The sockets that join at the same time ask together: one request for hundreds of
// them, and none of the text where nothing is being written.
type Unfinished struct {
	log     *Log
	now     func() time.Time
	timeout time.Duration

	mu      sync.Mutex
	next    *lastsCall // that has not begun yet
	running bool
}

// lastsCall asks for the last parts on subjects.
type lastsCall struct {
	subjects []string
	done     chan struct{}
	last     map[string]lastPart // by subject
	err      error
}

type lastPart struct {
	data []byte
	at   time.Time
}

// NewUnfinished returns what reads the stream PARTS.
func NewUnfinished(b *bus.Bus, now func() time.Time) *Unfinished {
	js := b.JetStream()
	return &Unfinished{log: &Log{bus: b, js: js, conn: js.Conn(), stream: subject.Parts}, now: now, timeout: unfinishedTimeout}
}

// Of returns the message that a bot is writing for a visitor, as one part with all of its text so far; ok is false where there is none.
func (u *Unfinished) Of(ctx context.Context, appID, chatUserID string) (whole event.MessagePart, ok bool, err error) {
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
	if call.err != nil || !known || u.now().Sub(last.at) > partStale {
		return whole, false, call.err
	}
	part, err := event.Decode[event.MessagePart](subj, last.data)
	if err != nil || part.Done {
		return whole, false, nil // nobody shows what is malformed
	}
	if part.Offset == 0 {
		return part, true, nil
	}
	stored, err := u.log.bus.Stored(ctx, subject.Parts, subj)
	if err != nil {
		return whole, false, err
	}
	err = u.log.Read(ctx, stored, 0, func(e Entry) error {
		if p, err := event.Decode[event.MessagePart](e.Subject, e.Data); err == nil {
			whole.Extend(p)
		}
		return nil
	})
	return whole, err == nil && whole.MessageID != "" && !whole.Done, err
}

func (u *Unfinished) join(subj string) *lastsCall {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.next == nil {
		u.next = &lastsCall{done: make(chan struct{})}
	}
	u.next.subjects = append(u.next.subjects, subj)
	if !u.running {
		u.running = true
		go u.answer()
	}
	return u.next
}

func (u *Unfinished) answer() {
	for {
		u.mu.Lock()
		call := u.next
		u.next, u.running = nil, call != nil
		u.mu.Unlock()
		if call == nil {
			return
		}
		call.last, call.err = u.lasts(call.subjects)
		close(call.done)
	}
}

// lasts asks the stream for the last message of each subject.
func (u *Unfinished) lasts(subjects []string) (map[string]lastPart, error) {
	ctx, cancel := context.WithTimeout(context.Background(), u.timeout)
	defer cancel()
	partitions, err := u.log.bus.Partitions(ctx, subject.Parts)
	if err != nil {
		return nil, err
	}
	stored := make([]string, len(subjects))
	for i, s := range subjects {
		stored[i] = subject.Stored(s, partitions)
	}
	sub, err := u.log.conn.SubscribeSync(u.log.conn.NewInbox())
	if err != nil {
		return nil, fmt.Errorf("subscribing for parts: %w", err)
	}
	defer sub.Unsubscribe() //nolint:errcheck // fails only when the connection is gone, and with it the subscription
	found := make(map[string]lastPart)
	for some := range slices.Chunk(stored, lastsAtOnce) {
		if err := u.lastsOf(ctx, sub, some, found); err != nil {
			return nil, fmt.Errorf("reading the last parts: %w", err)
		}
	}
	return found, nil
}

func (u *Unfinished) lastsOf(ctx context.Context, sub *nats.Subscription, stored []string, found map[string]lastPart) error {
	ask, err := json.Marshal(map[string][]string{"multi_last": stored}) // NATS ADR-31
	if err != nil {
		return err
	}
	if err := u.log.conn.PublishRequest("$JS.API.DIRECT.GET."+subject.Parts, sub.Subject, ask); err != nil {
		return err
	}
	for {
		m, err := sub.NextMsgWithContext(ctx)
		if err != nil {
			return err
		}
		switch status := m.Header.Get("Status"); status {
		case "":
		case "204", "404": // the end; nothing found
			return nil
		default:
			return fmt.Errorf("%s %s", status, m.Header.Get("Description"))
		}
		at, err := time.Parse(time.RFC3339Nano, m.Header.Get(jetstream.TimeStampHeaer))
		if err != nil {
			return err
		}
		found[subject.Published(m.Header.Get(jetstream.SubjectHeader))] = lastPart{m.Data, at}
	}
}
