// Package live follows the streams for one browser: messages of visitors, bots, agents and companies, and changes of control, in
// the order of the streams. After an interruption the browser gets exactly what it missed.
//
// A position has the last sequence of each stream that was sent. It is the id of every durable event, so that any replica can
// continue from it. Presence, typing and read cursors arrive over core NATS and are not stored.
package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
)

// Bus is the bus of a feed.
type Bus interface {
	State(ctx context.Context, stream string) (bus.StreamState, error)
	Read(ctx context.Context, s bus.Span) iter.Seq2[bus.Delivery, error]
	Tail(ctx context.Context, spans ...bus.Span) iter.Seq2[bus.Delivery, error]
	OnNotice(subj string, heard func(data []byte)) (stop func(), err error)
	Notify(ctx context.Context, subj string, data []byte) error
	OnSignal(filter, group string, heard func(subj string, data []byte)) (stop func(), err error)
	Signal(s event.Signal) error
}

// Position is the position of a browser: the last sequence of INBOUND, REPLIES, OUTBOUND and STATUS. Before the first event of a
// stream it is 0.
type Position [4]uint64

// streams are those of a [Position].
func streams() [4]string {
	return [4]string{subject.Inbound, subject.Replies, subject.Outbound, subject.Status}
}

// String returns the position as an event's id.
func (p Position) String() string { return fmt.Sprintf("%d-%d-%d-%d", p[0], p[1], p[2], p[3]) }

// ParsePosition parses an event's id; false for anything else.
func ParsePosition(s string) (p Position, ok bool) {
	parts := strings.Split(s, "-")
	if len(parts) != len(p) {
		return p, false
	}
	for i, part := range parts {
		n, err := strconv.ParseUint(part, 10, 64)
		if err != nil {
			return p, false
		}
		p[i] = n
	}
	return p, true
}

// advance records a delivery.
func (p *Position) advance(d bus.Delivery) {
	for i, s := range streams() {
		if s == d.Stream {
			p[i] = max(p[i], d.Sequence)
		}
	}
}

// Event is a server-sent event.
type Event struct {
	ID   string // position; empty: not durable
	Name string
	Data json.RawMessage
}

// Feed streams the events of one browser.
type Feed struct {
	Bus       Bus
	CompanyID string
	UserID    string // the browser's user
	AppIDs    []string
	From      *Position // nil: from now on
}

// noticeBuffer is the queue length of notices for a slow browser; further ones are dropped, since they soon expire.
const noticeBuffer = 64

// Run calls emit for every event until ctx is done, emit fails, or NATS disconnects. It returns the error of emit or NATS, and
// nil when ctx is done.
func (f Feed) Run(ctx context.Context, emit func(Event) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	notices := make(chan []byte, noticeBuffer)
	stop, err := f.Bus.OnNotice(subject.PanelNotice(f.CompanyID), func(data []byte) {
		select {
		case notices <- data:
		default:
		}
	})
	if err != nil {
		return err
	}
	defer stop()
	at, reset, err := f.start(ctx)
	if err != nil {
		return err
	}
	if reset {
		if err := emit(Event{Name: "reset", Data: empty}); err != nil {
			return err
		}
	}
	if err := f.catchUp(ctx, &at, emit); err != nil {
		return err
	}
	if err := emit(Event{ID: at.String(), Name: "ready", Data: empty}); err != nil {
		return err
	}
	return f.follow(ctx, at, notices, emit)
}

var empty = json.RawMessage(`{}`)

// start returns the position to start from, and whether events may be missing: the streams have dropped those after the position,
// or have been recreated.
func (f Feed) start(ctx context.Context) (at Position, reset bool, err error) {
	for i, stream := range streams() {
		state, err := f.Bus.State(ctx, stream)
		if err != nil {
			return at, false, err
		}
		at[i] = state.Last
		if f.From == nil {
			continue
		}
		if from := f.From[i]; from > state.Last || from+1 < state.First {
			reset = true
		}
	}
	if f.From != nil && !reset {
		at = *f.From
	}
	return at, reset, nil
}

// catchUp sends the stored events after the position.
func (f Feed) catchUp(ctx context.Context, at *Position, emit func(Event) error) error {
	if f.From == nil {
		return nil
	}
	for _, span := range f.spans(*at) {
		for d, err := range f.Bus.Read(ctx, span) {
			if err != nil {
				return err
			}
			at.advance(d)
			if err := f.emit(*at, d, emit); err != nil {
				return err
			}
		}
	}
	return nil
}

// spans returns the company's parts of the streams.
func (f Feed) spans(at Position) []bus.Span {
	inbound := []string{subject.ControlChanged(f.CompanyID, "*")}
	var replies []string
	for _, app := range f.AppIDs {
		inbound = append(inbound, subject.VisitorMessage(app, "*"), subject.VisitorRegistered(app, "*"), subject.ChatRated(app, "*"))
		replies = append(replies, subject.Reply(app, "*"))
	}
	spans := []bus.Span{{Stream: subject.Inbound, Filters: inbound, After: at[0]}}
	if len(replies) > 0 {
		spans = append(spans, bus.Span{Stream: subject.Replies, Filters: replies, After: at[1]})
	}
	return append(spans,
		bus.Span{Stream: subject.Outbound, Filters: []string{subject.OutboundMessage("*", f.CompanyID)}, After: at[2]},
		bus.Span{Stream: subject.Status, Filters: []string{subject.MessageStatus(f.CompanyID, "*")}, After: at[3]})
}

// follow sends new events and notices.
func (f Feed) follow(ctx context.Context, at Position, notices <-chan []byte, emit func(Event) error) error {
	type delivered struct {
		d   bus.Delivery
		err error
	}
	deliveries, done := make(chan delivered), make(chan struct{})
	ctx, cancel := context.WithCancel(ctx)
	defer func() { cancel(); <-done }()
	spans := f.spans(at)
	for i := range spans {
		spans[i].Follow = true
	}
	go func() {
		defer close(done)
		for d, err := range f.Bus.Tail(ctx, spans...) {
			select {
			case deliveries <- delivered{d, err}:
			case <-ctx.Done():
				return
			}
		}
		if ctx.Err() == nil {
			select {
			case deliveries <- delivered{err: apperr.Unreachable("NATS", errEnded)}:
			case <-ctx.Done():
			}
		}
	}()
	openChats := newOpenChats(f)
	defer openChats.close()
	tick := time.NewTicker(PresenceTTL / 3)
	defer tick.Stop()
	for {
		var err error
		select {
		case <-ctx.Done():
			return nil
		case now := <-tick.C:
			openChats.expire(now)
		case s := <-openChats.signals:
			err = openChats.emit(s, time.Now(), emit)
		case data := <-notices:
			err = f.emitNotice(data, openChats, emit)
		case next := <-deliveries:
			if next.err != nil {
				return next.err
			}
			at.advance(next.d)
			err = f.emit(at, next.d, emit)
		}
		if err != nil {
			return err
		}
	}
}

var errEnded = errors.New("a stream's reader has ended")

type messageEvent struct {
	ChatID  string          `json:"chatId"`
	AppID   string          `json:"appId,omitempty"`
	Message json.RawMessage `json:"message"`
}

type controlEvent struct {
	ChatID     string `json:"chatId"`
	AppID      string `json:"appId,omitempty"`
	Control    string `json:"control"`
	AssigneeID string `json:"assigneeId,omitempty"`
	ByUserID   string `json:"byUserId,omitempty"`
	ClosedAt   string `json:"closedAt,omitempty"`

	Handover *event.Handover `json:"handover,omitempty"`
}

// ratedEvent has the rating as a chat has it.
type ratedEvent struct {
	ChatID string      `json:"chatId"`
	AppID  string      `json:"appId"`
	Rating ratingEvent `json:"rating"`
}

type ratingEvent struct {
	Score   int    `json:"score"`
	Comment string `json:"comment,omitempty"`
	RatedAt string `json:"ratedAt"`
}

// emit decodes a delivery and sends it. It skips malformed events, which the processor's consumers move to DEAD, and events of
// other companies.
func (f Feed) emit(at Position, d bus.Delivery, emit func(Event) error) error {
	id := at.String()
	switch {
	case strings.HasPrefix(d.Subject, strings.TrimSuffix(subject.AllVisitorMessages, ">")):
		e, ok := decoded[event.VisitorMessageAccepted](d)
		if !ok || e.CompanyID != f.CompanyID {
			return nil
		}
		e.Message.IsFromSupport = false
		return emitMessage(id, e.ChatID, e.AppID, e.Message, emit)
	case strings.HasPrefix(d.Subject, strings.TrimSuffix(subject.AllReplies, ">")):
		e, ok := decoded[event.Reply](d)
		if !ok || e.CompanyID != f.CompanyID {
			return nil
		}
		e.Message.IsFromSupport = true
		return emitMessage(id, e.ChatID, e.AppID, e.Message, emit)
	case strings.HasPrefix(d.Subject, strings.TrimSuffix(subject.AllOutbound, ">")):
		e, ok := decoded[event.OutboundMessage](d)
		if !ok || e.CompanyID != f.CompanyID {
			return nil
		}
		e.Message.IsFromSupport = true
		return emitMessage(id, e.ChatID, "", e.Message, emit)
	case strings.HasPrefix(d.Subject, strings.TrimSuffix(subject.AllControls, ">")):
		e, ok := decoded[event.ChatControlChanged](d)
		if !ok || e.CompanyID != f.CompanyID {
			return nil
		}
		v := controlEvent{ChatID: e.ChatID, AppID: e.AppID, Control: e.Control, AssigneeID: e.AssigneeID, ByUserID: e.ByUserID}
		if e.Handover.By != "" {
			v.Handover = &e.Handover
		}
		if !e.ClosedAt.IsZero() {
			v.ClosedAt = e.ClosedAt.Format(chat.TimeFormat)
		}
		return emitJSON(id, "chat", v, emit)
	case strings.HasPrefix(d.Subject, strings.TrimSuffix(subject.AllRatings, ">")):
		e, ok := decoded[event.ChatRated](d)
		if !ok || e.CompanyID != f.CompanyID {
			return nil
		}
		return emitJSON(id, "rated", ratedEvent{e.ChatID, e.AppID, ratingEvent{e.Score, e.Comment, e.RatedAt.Format(chat.TimeFormat)}}, emit)
	case strings.HasPrefix(d.Subject, strings.TrimSuffix(subject.AllStatuses, ">")):
		e, ok := decoded[event.MessageStatusChanged](d)
		if !ok || e.CompanyID != f.CompanyID {
			return nil
		}
		return emitJSON(id, "status", map[string]string{"chatId": e.ChatID, "messageId": e.MessageID, "status": e.Status}, emit)
	case strings.HasPrefix(d.Subject, strings.TrimSuffix(subject.AllRegistrations, ">")):
		e, ok := decoded[event.VisitorRegistered](d)
		if !ok || e.CompanyID != f.CompanyID || !e.ChatOpened {
			return nil
		}
		return emitJSON(id, "registered", map[string]string{"appId": e.AppID, "chatId": e.ChatID, "visitorId": e.ChatUserID}, emit)
	}
	return nil
}

// decoded returns the event of a delivery; false if it is malformed.
func decoded[E event.Event, P event.Checked[E]](d bus.Delivery) (E, bool) {
	e, err := event.Decode[E, P](d.Subject, d.Data)
	return e, err == nil
}

func emitMessage(id, chatID, appID string, m chat.Message, emit func(Event) error) error {
	return emitJSON(id, "message", messageEvent{ChatID: chatID, AppID: appID, Message: m.AppendJSON(nil)}, emit)
}

func emitJSON(id, name string, v any, emit func(Event) error) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding an event: %w", err)
	}
	return emit(Event{ID: id, Name: name, Data: data})
}

// Notice is a notification between agents' browsers.
type Notice struct {
	Kind    string `json:"kind"` // presence or read
	ChatID  string `json:"chatId"`
	UserID  string `json:"userId,omitempty"`
	Name    string `json:"name,omitempty"`
	Expires int    `json:"expires,omitempty"` // seconds

	AppID     string `json:"appId,omitempty"` // of the chat
	VisitorID string `json:"visitorId,omitempty"`
}

// Kinds of [Notice].
const (
	Presence = "presence"
	Read     = "read"
)

// PresenceTTL is how long an agent counts as present in a chat.
const PresenceTTL = 30 * time.Second

type presenceEvent struct {
	ChatID  string `json:"chatId"`
	UserID  string `json:"userId"`
	Name    string `json:"name"`
	Expires int    `json:"expiresInSeconds"`
}

func (f Feed) emitNotice(data []byte, openChats *openChats, emit func(Event) error) error {
	var n Notice
	_ = json.Unmarshal(data, &n) // a malformed notice has no kind
	switch n.Kind {
	case Presence:
		if n.UserID == f.UserID && n.VisitorID != "" {
			if err := openChats.at(visitor{n.AppID, n.VisitorID}, time.Now()); err != nil {
				return err
			}
		}
		return emitJSON("", n.Kind, presenceEvent{n.ChatID, n.UserID, n.Name, n.Expires}, emit)
	case Read:
		return emitJSON("", n.Kind, map[string]string{"chatId": n.ChatID}, emit)
	}
	return nil
}

// Notify sends a notice to all browsers of a company.
func Notify(ctx context.Context, b Bus, companyID string, n Notice) error {
	data, err := json.Marshal(n)
	if err != nil {
		return fmt.Errorf("encoding a notice: %w", err)
	}
	return b.Notify(ctx, subject.PanelNotice(companyID), data)
}
