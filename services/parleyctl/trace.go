package parleyctl

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/proto-events/subject"
)

// clockSkew is how far apart the clocks of a service and of NATS may be.
const clockSkew = time.Minute

// What a consumer may have done with an event.
const (
	consumerWaiting     = "waiting"      // it has not been given to it yet
	consumerDelivered   = "delivered"    // it has been given to it, and whether it is done nobody knows
	consumerPassedOver  = "passed over"  // it came again, for another consumer
	consumerAcknowledge = "acknowledged" // done
	consumerDead        = "dead"         // given up
)

type traceView struct {
	MessageID   string        `json:"messageId"`
	CompanyID   string        `json:"companyId,omitempty"`
	ChatID      string        `json:"chatId,omitempty"`
	CreatedAt   stamp         `json:"createdAt,omitzero"` // by its id
	Events      []tracedEvent `json:"events"`
	Stored      *tracedRecord `json:"stored,omitempty"`
	Status      *tracedStatus `json:"status,omitempty"`
	DeadLetters []letterView  `json:"deadLetters"`
}

type tracedEvent struct {
	Time      stamp            `json:"time"`
	Stream    string           `json:"stream"`
	Sequence  uint64           `json:"sequence"`
	Subject   string           `json:"subject"`
	Kind      string           `json:"kind"`
	Type      string           `json:"type,omitempty"`
	Source    string           `json:"source,omitempty"`
	ReplayOf  string           `json:"replayOfLetter,omitempty"`
	ReplayFor string           `json:"replayForConsumer,omitempty"`
	Text      string           `json:"text,omitempty"`
	Consumers []tracedConsumer `json:"consumers"`
}

type tracedConsumer struct {
	Name      string `json:"name"`
	State     string `json:"state"`
	Attempts  int    `json:"attempts,omitempty"` // 0: not known any more
	LastError string `json:"lastError,omitempty"`
	NextTry   stamp  `json:"nextTry,omitzero"`
}

type tracedRecord struct {
	ChatID    string           `json:"chatId"`
	CreatedAt stamp            `json:"createdAt"`
	Type      chat.MessageType `json:"type"`
	From      string           `json:"from"`
}

func (a *app) trace() *cobra.Command {
	var within string
	c := &cobra.Command{
		Use: "trace MESSAGE", Short: "Say where a message is", Args: takes("MESSAGE"),
		Long: `Say where a message is, a company's, a visitor's or a reply: when it was accepted, its stream and sequence, what each consumer has
done with it and how often it tried, whether it is in the history, what became of it at the reader, and its dead letters.

A message's id holds the time at which it was made, and events are looked for from then on. How often a consumer has tried is known
while its process remembers.`,
		Example: "  parleyctl trace 01939f3c-8a4e-7c7b-9a53-5f2f8b3b8c11",
		RunE: func(c *cobra.Command, args []string) error {
			id, err := parseID("MESSAGE", args[0])
			if err != nil {
				return err
			}
			reach, err := parseDuration(within)
			if err != nil || reach < 0 {
				return usage("--within must be a duration such as 1h or 2d")
			}
			b, err := a.openBus(c.Context())
			if err != nil {
				return err
			}
			if _, err := a.openStore(c.Context()); err != nil {
				return err
			}
			t := &tracer{app: a, bus: b, id: id, reach: reach}
			view, err := t.run(c.Context())
			if err != nil {
				return err
			}
			return a.printTrace(view)
		},
	}
	c.Flags().StringVar(&within, "within", "1h", "how long after its making the streams are searched where nothing tells whose it is; 0: to their end")
	return c
}

// tracer follows one message.
type tracer struct {
	app   *app
	bus   *bus.Bus
	id    string
	reach time.Duration // how far to search where nobody knows whose message it is

	subjects []string // on which the message may be
	view     traceView
}

func (t *tracer) run(ctx context.Context) (traceView, error) {
	t.view = traceView{MessageID: t.id, Events: []tracedEvent{}, DeadLetters: []letterView{}}
	if at, ok := chat.IDTime(t.id); ok {
		t.view.CreatedAt = stamp(at)
	}
	for _, follow := range []func(context.Context) error{t.deadLetters, t.stored, t.locate, t.address, t.events, t.status} {
		if err := follow(ctx); err != nil {
			return t.view, err
		}
	}
	if len(t.view.Events) == 0 && len(t.view.DeadLetters) == 0 && t.view.Stored == nil && t.view.Status == nil {
		return t.view, apperr.New(apperr.NotFound, "MESSAGE_NOT_FOUND", "There is no trace of message "+t.id)
	}
	return t.view, nil
}

// since is from when on something of the message may be in a stream.
func (t *tracer) since() time.Time {
	if t.view.CreatedAt.IsZero() {
		return time.Time{}
	}
	return time.Time(t.view.CreatedAt).Add(-clockSkew)
}

func (t *tracer) deadLetters(ctx context.Context) error {
	for l, err := range t.bus.DeadLetters(ctx, "", "") {
		if apperr.Is(err, apperr.NotFound) {
			return nil // Parley has not run here yet
		}
		if err != nil {
			return err
		}
		if v := viewOfLetter(l); l.EventID == t.id || v.MessageID == t.id {
			t.view.DeadLetters = append(t.view.DeadLetters, v)
			t.learn(v.CompanyID, v.ChatID)
		}
	}
	return nil
}

// learn keeps what the message's traces say of its company and chat.
func (t *tracer) learn(companyID, chatID string) {
	t.view.CompanyID, t.view.ChatID = cmp.Or(t.view.CompanyID, companyID), cmp.Or(t.view.ChatID, chatID)
}

// locate looks where a message that was just made would be, to learn whose it is: with the ids the streams can be searched by
// subject, and need not be read.
func (t *tracer) locate(ctx context.Context) error {
	if t.view.CreatedAt.IsZero() || t.view.ChatID != "" {
		return nil
	}
	for _, stream := range []string{subject.Inbound, subject.Replies, subject.Outbound} {
		found, err := t.search(ctx, bus.Span{Stream: stream, Since: t.since()}, time.Time(t.view.CreatedAt).Add(clockSkew))
		if err != nil {
			return err
		}
		for _, d := range found {
			p := readPassing(d)
			t.learn(p.CompanyID, p.ChatID)
			t.subjects = append(t.subjects, d.Subject)
		}
	}
	return nil
}

// address learns the subjects of the message's chat.
func (t *tracer) address(ctx context.Context) error {
	if t.view.ChatID == "" {
		return nil
	}
	c, err := t.app.connections.store.Chat(ctx, t.view.ChatID)
	if apperr.Is(err, apperr.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	t.learn(c.CompanyID, c.ID)
	t.subjects = append(t.subjects, subject.CompanyMessage(c.CompanyID, c.ID), subject.Push(c.CompanyID, "*"), subject.OutboundMessage("*", c.CompanyID))
	if c.AppID != "" {
		t.subjects = append(t.subjects, subject.VisitorMessage(c.AppID, c.ChatUserID), subject.Reply(c.AppID, c.ChatUserID))
	}
	return nil
}

// events finds all of the message's events, replayed ones too.
func (t *tracer) events(ctx context.Context) error {
	for _, s := range subject.Streams() {
		span, until := bus.Span{Stream: s.Name, Since: t.since(), Filters: t.filters(s)}, time.Time{}
		if len(t.subjects) == 0 && t.reach > 0 { // nobody knows whose it is
			until = t.since().Add(clockSkew + t.reach)
		}
		if s.Name == subject.Dead || len(t.subjects) > 0 && len(span.Filters) == 0 {
			continue
		}
		found, err := t.search(ctx, span, until)
		if err != nil {
			return err
		}
		if err := t.examine(ctx, s.Name, found); err != nil {
			return err
		}
	}
	return nil
}

// filters are the subjects of a stream on which the message may be.
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

// addFilter keeps filters from overlapping, which JetStream refuses.
func addFilter(filters []string, f string) []string {
	if len(filters) > 0 && wantsSubject(filters, f) {
		return filters
	}
	return append(slices.DeleteFunc(filters, func(narrower string) bool { return wantsSubject([]string{f}, narrower) }), f)
}

// search finds the message's events by their headers, and reads those whole. It ends with the stream, or at a time.
func (t *tracer) search(ctx context.Context, span bus.Span, until time.Time) (found []bus.Delivery, err error) {
	span.HeadersOnly = true
	for d, err := range t.bus.Read(ctx, span) {
		switch {
		case apperr.Is(err, apperr.NotFound):
			return nil, nil // Parley has not run here yet
		case err != nil:
			return nil, err
		case !until.IsZero() && d.Time.After(until):
			return found, nil
		case span.Stream != subject.Status && d.EventID() != t.id:
			continue
		}
		whole, err := t.bus.Get(ctx, d.Stream, d.Sequence)
		if apperr.Is(err, apperr.NotFound) {
			continue // it has just become too old
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
		p := readPassing(d)
		t.learn(p.CompanyID, p.ChatID)
		e := tracedEvent{
			Time: p.Time, Stream: p.Stream, Sequence: p.Sequence, Subject: p.Subject, Kind: p.Kind, Type: p.Type, Source: p.Source, Text: p.Text,
			ReplayOf: d.Header.Get(bus.HeaderReplayLetter), ReplayFor: d.Header.Get(bus.HeaderReplayFor), Consumers: []tracedConsumer{},
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

// consumer says what a consumer has done with an event. Whoever holds it knows best; then the letter; then JetStream.
func (t *tracer) consumer(ctx context.Context, g bus.GroupInfo, d bus.Delivery) (tracedConsumer, error) {
	at := g.Of(d.Subject)
	c := tracedConsumer{Name: g.Name}
	if !bus.MeantFor(d.Header, g.Name) {
		c.State = consumerPassedOver
		return c, nil
	}
	for _, l := range t.view.DeadLetters {
		if l.Stream == d.Stream && l.Consumer == g.Name && l.Original == d.Sequence {
			c.State, c.Attempts, c.LastError = consumerDead, l.Attempts, l.Reason
			return c, nil
		}
	}
	p, err := t.bus.Progress(ctx, d.Stream, g.Name, d.Sequence)
	switch {
	case err == nil:
		c.State, c.Attempts, c.LastError, c.NextTry = string(p.State), p.Attempts, p.LastError, stamp(p.NextTry)
	case !apperr.Is(err, apperr.NotFound):
		return c, err
	case d.Sequence > at.Delivered:
		c.State = consumerWaiting
	case d.Sequence <= at.AckFloor || at.AckPending == 0:
		c.State = consumerAcknowledge
	default:
		c.State = consumerDelivered
	}
	return c, nil
}

// wantsSubject reports whether one of the filters takes a subject; without any, all is taken.
func wantsSubject(filters []string, subj string) bool {
	for _, f := range filters {
		if matches(strings.Split(f, "."), strings.Split(subj, ".")) {
			return true
		}
	}
	return len(filters) == 0
}

func matches(filter, subj []string) bool {
	for i, token := range filter {
		if token == ">" {
			return len(subj) > i
		}
		if i >= len(subj) || token != "*" && token != subj[i] {
			return false
		}
	}
	return len(filter) == len(subj)
}

func (t *tracer) stored(ctx context.Context) error {
	chatID, m, err := t.app.connections.store.FindMessage(ctx, t.id)
	if apperr.Is(err, apperr.NotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	t.learn("", chatID)
	t.view.Stored = &tracedRecord{ChatID: chatID, CreatedAt: stamp(m.CreatedAt), Type: m.Type, From: senderOf(m)}
	return nil
}

// step is a line of what is printed.
type step struct{ time, what, detail string }

func (a *app) printTrace(v traceView) error {
	if a.wantsJSON() {
		return a.printJSON(v)
	}
	err := printOne(a, v,
		column[traceView]{"message", func(v traceView) string { return v.MessageID }},
		column[traceView]{"company", func(v traceView) string { return v.CompanyID }},
		column[traceView]{"chat", func(v traceView) string { return v.ChatID }},
		column[traceView]{"made", func(v traceView) string { return v.CreatedAt.String() }})
	if err != nil {
		return err
	}
	if _, err := fmt.Fprintln(a.Out); err != nil {
		return err
	}
	return printList(a, v.steps(),
		column[step]{"time", func(s step) string { return s.time }},
		column[step]{"what", func(s step) string { return s.what }},
		column[step]{"detail", func(s step) string { return shorten(s.detail, 140) }})
}

func (v traceView) steps() (steps []step) {
	if v.Status != nil && !v.Status.AcceptedAt.IsZero() {
		steps = append(steps, step{time: v.Status.AcceptedAt.String(), what: "accepted"})
	}
	for _, e := range v.Events {
		what := fmt.Sprintf("%s in %s/%d", e.Kind, e.Stream, e.Sequence)
		detail := "from " + strings.TrimPrefix(e.Source, "/")
		if e.ReplayFor != "" {
			detail = fmt.Sprintf("letter %s again, for %s", e.ReplayOf, e.ReplayFor)
		}
		if e.Text != "" {
			detail += ": " + e.Text
		}
		steps = append(steps, step{e.Time.String(), what, detail})
		for _, c := range e.Consumers {
			steps = append(steps, step{"", "  " + c.Name, c.describe()})
		}
	}
	if v.Stored != nil {
		steps = append(steps, step{v.storedTime(), "in the history", fmt.Sprintf("%s from %s, created %s", v.Stored.Type, v.Stored.From, v.Stored.CreatedAt)})
	}
	steps = append(steps, v.Status.steps()...)
	for _, l := range v.DeadLetters {
		steps = append(steps, step{l.Time.String(), "dead letter " + strconv.FormatUint(l.Sequence, 10), l.Consumer + ": " + l.Reason})
	}
	return steps
}

func (c tracedConsumer) describe() string {
	text := c.State
	if c.Attempts > 0 {
		text += fmt.Sprintf(" after %d", c.Attempts)
		if c.Attempts == 1 {
			text += " try"
		} else {
			text += " tries"
		}
	}
	if c.LastError != "" {
		text += ", last: " + c.LastError
	}
	if !c.NextTry.IsZero() {
		text += ", next " + c.NextTry.String()
	}
	return text
}
