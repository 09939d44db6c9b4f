package live

import (
	"errors"
	"time"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/rpc"
	"github.com/parley-chat/parley/proto-events/subject"
)

// openChatsOfStream bounds the conversations that one event stream has open, each with two subscriptions:
// those that all tabs of a user show, which each of the user's streams follows.
const openChatsOfStream = 10

// openChats is the set of conversations that a browser has open, for which it gets typing and read cursors. A
// conversation is open for [PresenceTTL] after the browser's last request, so each browser gets only the
// signals of what it shows. One more than [openChatsOfStream] closes the one that was named the longest ago.
type openChats struct {
	calls     rpc.Subscriber
	companyID string
	signals   chan any // event.Typing or event.ReadCursorMoved
	open      map[visitor]*opened
}

type visitor struct{ appID, id string }

type opened struct {
	until time.Time
	stops []func()
}

func newOpenChats(calls rpc.Subscriber, companyID string) *openChats {
	return &openChats{
		calls:     calls,
		companyID: companyID,
		signals:   make(chan any, noticeBuffer),
		open:      make(map[visitor]*opened),
	}
}

// at records that the browser shows a visitor's conversation.
func (l *openChats) at(v visitor, now time.Time) error {
	if o := l.open[v]; o != nil {
		o.until = now.Add(PresenceTTL)
		return nil
	}
	if len(l.open) >= openChatsOfStream {
		l.closeOldest()
	}
	o := &opened{until: now.Add(PresenceTTL)}
	typing := subject.Typing("*", v.appID, v.id)
	cursors := subject.ReadCursor(subject.SideVisitor, v.appID, v.id)
	err := errors.Join(
		listen(l, o, typing, event.Decode[event.Typing]),
		listen(l, o, cursors, event.Decode[event.ReadCursorMoved]),
	)
	if err != nil {
		o.stop()
		return err
	}
	l.open[v] = o
	return nil
}

// listen queues the signals on a subject until o is stopped. It drops those that exceed the queue: they expire soon.
func listen[E event.Signal](
	l *openChats, o *opened, subj string, decode func(subj string, data []byte) (E, error),
) error {
	stop, err := rpc.Listen(l.calls, subj, "", decode, func(e E) {
		select {
		case l.signals <- e:
		default:
		}
	})
	if err == nil {
		o.stops = append(o.stops, stop)
	}
	return err
}

func (l *openChats) closeOldest() {
	var oldest visitor
	for v, o := range l.open {
		if first := l.open[oldest]; first == nil || o.until.Before(first.until) {
			oldest = v
		}
	}
	l.open[oldest].stop()
	delete(l.open, oldest)
}

// expire drops conversations that the browser has not named within [PresenceTTL].
func (l *openChats) expire(now time.Time) {
	for v, o := range l.open {
		if now.After(o.until) {
			o.stop()
			delete(l.open, v)
		}
	}
}

func (l *openChats) close() {
	for _, o := range l.open {
		o.stop()
	}
}

func (o *opened) stop() {
	for _, stop := range o.stops {
		stop()
	}
}

type typingEvent struct {
	VisitorID string `json:"visitorId"`
	AppID     string `json:"appId"`
	Side      string `json:"side"`
	UserID    string `json:"userId,omitempty"`
	Name      string `json:"name,omitempty"`
	At        string `json:"at"`
}

type seenEvent struct {
	ChatID    string `json:"chatId"`
	MessageID string `json:"messageId"`
	UpTo      string `json:"upTo"`
}

// emit sends a signal. It skips expired ones, and those of other companies.
func (l *openChats) emit(signal any, now time.Time, emit func(Event) error) error {
	switch e := signal.(type) {
	case event.Typing:
		if e.CompanyID != l.companyID || now.Sub(e.At) > event.TypingTTL {
			return nil
		}
		return emitJSON(
			"typing",
			typingEvent{e.ChatUserID, e.AppID, e.Side, e.UserID, e.Name, e.At.Format(chat.TimeFormat)},
			emit,
		)
	case event.ReadCursorMoved:
		if e.CompanyID != l.companyID {
			return nil
		}
		return emitJSON("seen", seenEvent{e.ChatID, e.MessageID, e.UpTo.Format(chat.TimeFormat)}, emit)
	}
	return nil
}
