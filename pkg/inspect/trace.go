package inspect

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/proto-events/subject"
)

// clockSkew is the maximum difference between the clocks of a service and of NATS.
const clockSkew = time.Minute

// States of an event at a consumer.
const (
	ConsumerWaiting      = "waiting"      // not delivered yet
	ConsumerDelivered    = "delivered"    // delivered; whether it was handled is unknown
	ConsumerPassedOver   = "passed over"  // a replay for another consumer
	ConsumerAcknowledged = "acknowledged" // handled
	ConsumerDead         = "dead"         // given up
)

// Trace is the path of a message.
type Trace struct {
	MessageID   string        `json:"messageId"`
	CompanyID   string        `json:"companyId,omitempty"`
	ChatID      string        `json:"chatId,omitempty"`
	CreatedAt   chat.Time     `json:"createdAt,omitzero"` // derived from the message id
	Events      []TracedEvent `json:"events"`
	Stored      *TracedRecord `json:"stored,omitempty"`
	Status      *TracedStatus `json:"status,omitempty"`
	DeadLetters []DeadLetter  `json:"deadLetters"`
}

// TracedEvent is an event of the message with its state at each consumer.
type TracedEvent struct {
	Time      chat.Time        `json:"time"`
	Stream    string           `json:"stream"`
	Sequence  uint64           `json:"sequence"`
	Subject   string           `json:"subject"`
	Kind      string           `json:"kind"`
	Type      string           `json:"type,omitempty"`
	Source    string           `json:"source,omitempty"`
	ReplayOf  string           `json:"replayOfLetter,omitempty"`
	ReplayFor string           `json:"replayForConsumer,omitempty"`
	Text      string           `json:"text,omitempty"`
	Consumers []TracedConsumer `json:"consumers"`
}

// TracedConsumer is the state of an event at a consumer.
type TracedConsumer struct {
	Name      string    `json:"name"`
	State     string    `json:"state"`
	Attempts  int       `json:"attempts,omitempty"` // 0: unknown
	LastError string    `json:"lastError,omitempty"`
	NextTry   chat.Time `json:"nextTry,omitzero"`
}

// TracedRecord is the message in the history.
type TracedRecord struct {
	ChatID    string           `json:"chatId"`
	CreatedAt chat.Time        `json:"createdAt"`
	Type      chat.MessageType `json:"type"`
	From      string           `json:"from"`
}

// Store provides the stored message and its status.
type Store interface {
	Chat(ctx context.Context, id string) (chat.Chat, error)
	FindMessage(ctx context.Context, id string) (chatID string, m chat.Message, err error)
	MessageStatus(ctx context.Context, companyID, messageID string) (chat.MessageStatus, error)
}

// TraceMessage finds a message in the streams and the store. If its company is unknown, it searches each
// stream for up to within after the message's creation; 0: to the end. It returns NotFound if it finds nothing.
func TraceMessage(ctx context.Context, b *bus.Bus, s Store, id string, within time.Duration) (Trace, error) {
	return (&tracer{store: s, bus: b, id: id, within: within}).run(ctx)
}

// tracer traces one message.
type tracer struct {
	store  Store
	bus    *bus.Bus
	id     string
	within time.Duration // how long after the message's creation to search if its company is unknown

	subjects []string // subjects that may contain the message
	view     Trace
}

func (t *tracer) run(ctx context.Context) (Trace, error) {
	t.view = Trace{MessageID: t.id, Events: []TracedEvent{}, DeadLetters: []DeadLetter{}}
	if at, ok := chat.IDTime(t.id); ok {
		t.view.CreatedAt = chat.Time(at)
	}
	steps := []func(context.Context) error{
		t.deadLetters, t.stored, // may name the company and the chat
		t.locate, t.address, // the subjects, with the company and the chat
		t.events, t.status,
	}
	for _, step := range steps {
		if err := step(ctx); err != nil {
			return t.view, err
		}
	}
	if len(t.view.Events) == 0 && len(t.view.DeadLetters) == 0 && t.view.Stored == nil && t.view.Status == nil {
		return t.view, apperr.MessageNotFound.WithMessage("No trace of message " + t.id)
	}
	return t.view, nil
}

// since returns the earliest time at which a stream may contain events of the message.
func (t *tracer) since() time.Time {
	if t.view.CreatedAt.IsZero() {
		return time.Time{}
	}
	return time.Time(t.view.CreatedAt).Add(-clockSkew)
}

func (t *tracer) deadLetters(ctx context.Context) error {
	for l, err := range t.bus.DeadLetters(ctx, "", "", 0) {
		if apperr.Is(err, apperr.NotFound) {
			return nil // stream not created yet
		}
		if err != nil {
			return err
		}
		if v := DeadLetterOf(l); l.EventID == t.id || v.MessageID == t.id {
			t.view.DeadLetters = append(t.view.DeadLetters, v)
			t.learn(v.CompanyID, v.ChatID)
		}
	}
	return nil
}

// learn records the message's company and chat.
func (t *tracer) learn(companyID, chatID string) {
	t.view.CompanyID = cmp.Or(t.view.CompanyID, companyID)
	t.view.ChatID = cmp.Or(t.view.ChatID, chatID)
}

// locate searches for the message around its creation time, to find its company and chat. With them, the
// streams can be searched by subject instead of reading them entirely.
func (t *tracer) locate(ctx context.Context) error {
	if t.view.CreatedAt.IsZero() || t.view.ChatID != "" {
		return nil
	}
	until := time.Time(t.view.CreatedAt).Add(clockSkew)
	for _, stream := range []string{subject.Inbound, subject.Sends, subject.Replies, subject.Outbound} {
		found, err := t.search(ctx, bus.Range{Stream: stream, Since: t.since()}, until)
		if err != nil {
			return err
		}
		for _, d := range found {
			p := ReadEvent(d)
			t.learn(p.CompanyID, p.ChatID)
			t.subjects = append(t.subjects, d.Subject)
		}
	}
	return nil
}

// address adds the subjects of the message's chat.
func (t *tracer) address(ctx context.Context) error {
	if t.view.ChatID == "" {
		return nil
	}
	c, err := t.store.Chat(ctx, t.view.ChatID)
	if apperr.Is(err, apperr.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	t.learn(c.CompanyID, c.ID)
	t.subjects = append(
		t.subjects, subject.CompanyMessage(c.CompanyID, c.ID), subject.Push(c.CompanyID, "*"),
		subject.OutboundMessage("*", c.CompanyID),
	)
	if c.AppID != "" {
		t.subjects = append(t.subjects, subject.VisitorMessage(c.AppID, c.ChatUserID))
		t.subjects = append(t.subjects, subject.Reply(c.AppID, c.ChatUserID))
	}
	return nil
}

// events finds all events of the message, including replays.
func (t *tracer) events(ctx context.Context) error {
	for _, s := range subject.Streams() {
		r := bus.Range{Stream: s.Name, Since: t.since(), Filters: t.filters(s)}
		if s.Name == subject.Dead || len(t.subjects) > 0 && len(r.Filters) == 0 {
			continue
		}
		until := time.Time{}
		if len(t.subjects) == 0 && t.within > 0 { // its company is unknown
			until = t.since().Add(clockSkew + t.within)
		}
		found, err := t.search(ctx, r, until)
		if err != nil {
			return err
		}
		if err := t.examine(ctx, s.Name, found); err != nil {
			return err
		}
	}
	return nil
}

// filters returns the subjects of a stream that may contain the message.
func (t *tracer) filters(s subject.Stream) (filters []string) {
	if s.Name == subject.Status {
		return []string{strings.TrimSuffix(subject.AllStatuses, ">") + "*." + t.id}
	}
	for _, subj := range t.subjects {
		if wantsSubject(s.Subjects, subj) {
			filters = addFilter(filters, subj)
		}
	}
	return filters
}

// addFilter avoids overlapping filters, which JetStream rejects.
func addFilter(filters []string, f string) []string {
	if len(filters) > 0 && wantsSubject(filters, f) {
		return filters
	}
	narrower := func(other string) bool { return wantsSubject([]string{f}, other) }
	return append(slices.DeleteFunc(filters, narrower), f)
}

// search finds the events of the message by their headers and then fetches them with their payload. It stops
// at until, or at the end of the stream if until is zero.
func (t *tracer) search(ctx context.Context, r bus.Range, until time.Time) (found []bus.Delivery, err error) {
	r.HeadersOnly = true
	for d, err := range t.bus.Read(ctx, r) {
		switch {
		case apperr.Is(err, apperr.NotFound):
			return nil, nil // stream not created yet
		case err != nil:
			return nil, err
		case !until.IsZero() && d.Time.After(until):
			return found, nil
		case r.Stream != subject.Status && d.EventID() != t.id:
			continue
		}
		whole, err := t.bus.Get(ctx, d.Stream, d.Sequence)
		if apperr.Is(err, apperr.NotFound) {
			continue // it has just expired
		}
		if err != nil {
			return nil, err
		}
		found = append(found, whole)
	}
	return found, nil
}

func (t *tracer) examine(ctx context.Context, stream string, found []bus.Delivery) error {
	if len(found) == 0 {
		return nil
	}
	consumers, err := t.bus.Groups(ctx, stream)
	if err != nil {
		return err
	}
	for _, d := range found {
		p := ReadEvent(d)
		t.learn(p.CompanyID, p.ChatID)
		e := TracedEvent{
			Time:      p.Time,
			Stream:    p.Stream,
			Sequence:  p.Sequence,
			Subject:   p.Subject,
			Kind:      p.Kind,
			Type:      p.Type,
			Source:    p.Source,
			Text:      p.Text,
			ReplayOf:  d.Header.Get(bus.HeaderReplayLetter),
			ReplayFor: d.Header.Get(bus.HeaderReplayFor),
			Consumers: []TracedConsumer{},
		}
		for _, g := range consumers {
			if len(g.Filters) > 0 && !wantsSubject(g.Filters, d.Subject) {
				continue
			}
			c, err := t.consumer(ctx, g, d)
			if err != nil {
				return err
			}
			e.Consumers = append(e.Consumers, c)
		}
		t.view.Events = append(t.view.Events, e)
	}
	return nil
}

// consumer returns the state of an event at a consumer: from the dead letters, from the process that holds
// the event, or from the progress of the group.
func (t *tracer) consumer(ctx context.Context, g bus.GroupInfo, d bus.Delivery) (TracedConsumer, error) {
	at := g.Of(d.Subject)
	c := TracedConsumer{Name: g.Name}
	if !bus.AddressedTo(d.Header, g.Name) {
		c.State = ConsumerPassedOver
		return c, nil
	}
	for _, l := range t.view.DeadLetters {
		if l.Stream == d.Stream && l.Consumer == g.Name && l.Original == d.Sequence {
			c.State = ConsumerDead
			c.Attempts = l.Attempts
			c.LastError = l.Reason
			return c, nil
		}
	}
	p, err := t.bus.Progress(ctx, d.Stream, g.Name, d.Sequence)
	switch {
	case err == nil:
		c.State = string(p.State)
		c.Attempts = p.Attempts
		c.LastError = p.LastError
		c.NextTry = chat.Time(p.NextTry)
	case !apperr.Is(err, apperr.NotFound):
		return c, err
	case d.Sequence > at.Delivered:
		c.State = ConsumerWaiting
	case d.Sequence <= at.AckFloor || at.AckPending == 0:
		c.State = ConsumerAcknowledged
	default:
		c.State = ConsumerDelivered
	}
	return c, nil
}

// wantsSubject reports whether one of the filters matches a subject; without filters, every subject matches.
func wantsSubject(filters []string, subj string) bool {
	for _, f := range filters {
		if subject.Matches(f, subj) {
			return true
		}
	}
	return len(filters) == 0
}

func (t *tracer) stored(ctx context.Context) error {
	chatID, m, err := t.store.FindMessage(ctx, t.id)
	if apperr.Is(err, apperr.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	t.learn("", chatID)
	t.view.Stored = &TracedRecord{ChatID: chatID, CreatedAt: chat.Time(m.CreatedAt), Type: m.Type, From: SenderOf(m)}
	return nil
}

// TracedStatus is the message status visible to its company, with the time at which each status was first reached.
type TracedStatus struct {
	Status      string    `json:"status"`
	AcceptedAt  chat.Time `json:"acceptedAt,omitzero"`
	StoredAt    chat.Time `json:"storedAt,omitzero"`
	DeliveredAt chat.Time `json:"deliveredAt,omitzero"`
	ReadAt      chat.Time `json:"readAt,omitzero"`
	FailedAt    chat.Time `json:"failedAt,omitzero"`
	Failure     string    `json:"failure,omitempty"`
}

// status sets the status of a message that a company sent.
func (t *tracer) status(ctx context.Context) error {
	if t.view.CompanyID == "" {
		return nil
	}
	s, err := t.store.MessageStatus(ctx, t.view.CompanyID, t.id)
	if apperr.Is(err, apperr.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	t.view.Status = &TracedStatus{
		Status:      s.Status(),
		AcceptedAt:  chat.Time(s.AcceptedAt),
		StoredAt:    chat.Time(s.StoredAt),
		DeliveredAt: chat.Time(s.Delivered()),
		ReadAt:      chat.Time(s.ReadAt),
		FailedAt:    chat.Time(s.Failure.At),
		Failure:     s.Failure.Reason,
	}
	t.learn("", s.ChatID)
	return nil
}
