// Package live follows the streams for browsers: messages of visitors, bots, agents and companies, and
// changes of control, in the order of the streams. After an interruption a browser gets exactly what it
// missed.
//
// hub.go: browsers join and leave, and catch up. feed.go: one reader for all browsers of a company. live.go:
// cursors and events. openchats.go: typing and read cursors of the conversations that a browser shows.
//
// A cursor has the last sequence of each stream that was sent. It is the id of every durable event, so that
// any replica can continue from it. Presence, typing and read cursors arrive over core NATS and are not
// stored.
package live

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"iter"
	"strconv"
	"strings"
	"time"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
)

// Bus is what a [Hub] reads of the streams.
type Bus interface {
	State(ctx context.Context, stream string) (bus.StreamState, error)
	Holds(ctx context.Context, stream string, at bus.Place) (bool, error)
	Read(ctx context.Context, s bus.Range) iter.Seq2[bus.Delivery, error]
	Tail(ctx context.Context, ranges ...bus.Range) iter.Seq2[bus.Delivery, error]
}

// Cursor is how far a browser has read: the last sequence of INBOUND, REPLIES, OUTBOUND and STATUS. Before
// the first event of a stream it is 0.
type Cursor struct {
	last [4]uint64
	// time is that of the newest of these events, or of the state of the streams: see [bus.Place].
	time time.Time
	// epochs identifies the epochs of the four streams. Cursors of other epochs are not comparable.
	epochs uint64
}

// epochsOf returns the epochs of a cursor for the states of its streams.
func epochsOf(states [4]bus.StreamState) uint64 {
	h := fnv.New64a()
	for _, s := range states {
		_, _ = fmt.Fprint(h, s.Epoch.UnixNano(), " ") // never fails
	}
	return h.Sum64()
}

// streams are those of a [Cursor].
func streams() [4]string {
	return [4]string{subject.Inbound, subject.Replies, subject.Outbound, subject.Status}
}

// String returns the cursor as an event's id.
func (c Cursor) String() string {
	return fmt.Sprintf("%d-%d-%d-%d-%x-%x", c.last[0], c.last[1], c.last[2], c.last[3], c.time.UnixMilli(), c.epochs)
}

// ParseCursor parses an event's id. For anything else it returns the cursor of no epoch: the browser loads its pages.
func ParseCursor(s string) Cursor {
	var c Cursor
	parts := strings.Split(s, "-")
	if len(parts) != len(c.last)+2 {
		return Cursor{}
	}
	var errs [6]error
	for i := range c.last {
		c.last[i], errs[i] = strconv.ParseUint(parts[i], 10, 64)
	}
	ms, err := strconv.ParseInt(parts[4], 16, 64)
	c.time, errs[4] = time.UnixMilli(ms), err
	c.epochs, errs[5] = strconv.ParseUint(parts[5], 16, 64)
	if errors.Join(errs[:]...) != nil {
		return Cursor{}
	}
	return c
}

// sourceOf returns the index of a stream in a [Cursor].
func sourceOf(stream string) int {
	for i, s := range streams() {
		if s == stream {
			return i
		}
	}
	return 0 // the feeds read no other streams
}

// Event is a server-sent event.
type Event struct {
	ID   string // cursor; empty: not durable
	Name string
	Data json.RawMessage

	source int       // index of its stream in a [Cursor]
	place  bus.Place // in that stream; the zero value: not durable
}

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

// read decodes a delivery and emits it. It skips malformed events, which the processor's consumers move to
// DEAD, and events of other companies.
func (f source) read(d bus.Delivery, emit func(Event) error) error {
	emit = durable(d, emit)
	switch {
	case strings.HasPrefix(d.Subject, strings.TrimSuffix(subject.AllVisitorMessages, ">")):
		e, ok := decoded[event.VisitorMessageAccepted](d)
		if !ok || e.CompanyID != f.companyID {
			return nil
		}
		e.Message.IsFromSupport = false
		return emitMessage(e.ChatID, e.AppID, e.Message, emit)
	case strings.HasPrefix(d.Subject, strings.TrimSuffix(subject.AllReplies, ">")):
		e, ok := decoded[event.Reply](d)
		if !ok || e.CompanyID != f.companyID {
			return nil
		}
		e.Message.IsFromSupport = true
		return emitMessage(e.ChatID, e.AppID, e.Message, emit)
	case strings.HasPrefix(d.Subject, strings.TrimSuffix(subject.AllOutbound, ">")):
		e, ok := decoded[event.OutboundMessage](d)
		if !ok || e.CompanyID != f.companyID {
			return nil
		}
		e.Message.IsFromSupport = true
		return emitMessage(e.ChatID, "", e.Message, emit)
	case strings.HasPrefix(d.Subject, strings.TrimSuffix(subject.AllControls, ">")):
		e, ok := decoded[event.ChatControlChanged](d)
		if !ok || e.CompanyID != f.companyID {
			return nil
		}
		v := controlEvent{
			ChatID:     e.ChatID,
			AppID:      e.AppID,
			Control:    e.Control,
			AssigneeID: e.AssigneeID,
			ByUserID:   e.ByUserID,
		}
		if e.Handover.By != "" {
			v.Handover = &e.Handover
		}
		if !e.ClosedAt.IsZero() {
			v.ClosedAt = e.ClosedAt.Format(chat.TimeFormat)
		}
		return emitJSON("chat", v, emit)
	case strings.HasPrefix(d.Subject, strings.TrimSuffix(subject.AllRatings, ">")):
		e, ok := decoded[event.ChatRated](d)
		if !ok || e.CompanyID != f.companyID {
			return nil
		}
		return emitJSON(
			"rated",
			ratedEvent{e.ChatID, e.AppID, ratingEvent{e.Score, e.Comment, e.RatedAt.Format(chat.TimeFormat)}},
			emit,
		)
	case strings.HasPrefix(d.Subject, strings.TrimSuffix(subject.AllStatuses, ">")):
		e, ok := decoded[event.MessageStatusChanged](d)
		if !ok || e.CompanyID != f.companyID {
			return nil
		}
		changed := map[string]string{"chatId": e.ChatID, "messageId": e.MessageID, "status": e.Status}
		return emitJSON("status", changed, emit)
	case strings.HasPrefix(d.Subject, strings.TrimSuffix(subject.AllRegistrations, ">")):
		e, ok := decoded[event.VisitorRegistered](d)
		if !ok || e.CompanyID != f.companyID || !e.ChatOpened {
			return nil
		}
		return emitJSON(
			"registered",
			map[string]string{"appId": e.AppID, "chatId": e.ChatID, "visitorId": e.ChatUserID},
			emit,
		)
	}
	return nil
}

// durable marks what is emitted with its place in the stream.
func durable(d bus.Delivery, emit func(Event) error) func(Event) error {
	return func(e Event) error {
		e.source, e.place = sourceOf(d.Stream), d.Place()
		return emit(e)
	}
}

// decoded returns the event of a delivery; false if it is malformed.
func decoded[E event.Event, P event.Checked[E]](d bus.Delivery) (E, bool) {
	e, err := event.DecodeStored[E, P](d.Subject, d.Data, d.Time)
	return e, err == nil
}

func emitMessage(chatID, appID string, m chat.Message, emit func(Event) error) error {
	return emitJSON("message", messageEvent{ChatID: chatID, AppID: appID, Message: m.AppendJSON(nil)}, emit)
}

func emitJSON(name string, v any, emit func(Event) error) error {
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("encoding an event: %w", err)
	}
	return emit(Event{Name: name, Data: data})
}

// Notice is a notification of all browsers of a company, an [rpc.Announcement].
type Notice struct {
	CompanyID string `json:"-"` // in the subject

	Kind    string `json:"kind"`
	ChatID  string `json:"chatId,omitempty"`
	UserID  string `json:"userId,omitempty"`
	Name    string `json:"name,omitempty"`
	Expires int    `json:"expires,omitempty"` // seconds

	AppID     string `json:"appId,omitempty"` // of the chat
	VisitorID string `json:"visitorId,omitempty"`
}

// Subject implements [rpc.Announcement].
func (n Notice) Subject() string { return subject.PanelNotice(n.CompanyID) }

// AppendJSON implements [rpc.Announcement].
func (n Notice) AppendJSON(dst []byte) []byte {
	text, _ := json.Marshal(n) // texts and a number: always encodes
	return append(dst, text...)
}

// Kinds of [Notice].
const (
	Presence = "presence"
	Read     = "read"
	Access   = "access" // the role or the state of UserID has changed
)

// errAccess ends the streams of a user whose access has changed. The browser comes back, if it still may.
var errAccess = errors.New("the user's access has changed")

// PresenceTTL is how long an agent counts as present in a chat.
const PresenceTTL = 30 * time.Second

type presenceEvent struct {
	ChatID  string `json:"chatId"`
	UserID  string `json:"userId"`
	Name    string `json:"name"`
	Expires int    `json:"expiresInSeconds"`
}

// emitNotice emits a notice to a browser.
func (b Browser) emitNotice(n Notice, openChats *openChats, emit func(Event) error) error {
	switch n.Kind {
	case Presence:
		if n.UserID == b.UserID && n.VisitorID != "" {
			if err := openChats.at(visitor{n.AppID, n.VisitorID}, time.Now()); err != nil {
				return err
			}
		}
		return emitJSON(n.Kind, presenceEvent{n.ChatID, n.UserID, n.Name, n.Expires}, emit)
	case Access:
		if n.UserID == b.UserID {
			return errAccess
		}
	case Read:
		return emitJSON(n.Kind, map[string]string{"chatId": n.ChatID}, emit)
	}
	return nil
}
