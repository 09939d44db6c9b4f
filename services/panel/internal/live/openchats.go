package live

import (
	"strings"
	"time"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
)

// openChatsOfStream bounds the conversations that one event stream has open, each with two subscriptions:
// those that all tabs of a user show, which each of the user's streams follows.
const openChatsOfStream = 10

// openChats is the set of conversations that a browser has open, for which it gets typing and read cursors. A
// conversation is open for [PresenceTTL] after the browser's last request, so each browser gets only the
// signals of what it shows. One more than [openChatsOfStream] closes the one that was named the longest ago.
type openChats struct {
	bus       Bus
	companyID string
	signals   chan signal
	open      map[visitor]*opened
}

type visitor struct{ appID, id string }

type opened struct {
	until time.Time
	stops []func()
}

type signal struct {
	subject string
	data    []byte
}

func newOpenChats(b Bus, companyID string) *openChats {
	return &openChats{
		bus:       b,
		companyID: companyID,
		signals:   make(chan signal, noticeBuffer),
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
	for _, subj := range []string{subject.Typing("*", v.appID, v.id), subject.ReadCursor(subject.SideVisitor, v.appID, v.id)} {
		stop, err := l.bus.OnSignal(subj, "", func(subj string, data []byte) {
			select {
			case l.signals <- signal{subj, data}:
			default:
			}
		})
		if err != nil {
			o.stop()
			return err
		}
		o.stops = append(o.stops, stop)
	}
	l.open[v] = o
	return nil
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

const typingPrefix = "chat.typing."

// emit sends a signal. It skips malformed and expired ones, and those of other companies.
func (l *openChats) emit(s signal, now time.Time, emit func(Event) error) error {
	if strings.HasPrefix(s.subject, typingPrefix) {
		e, ok := decodedSignal[event.Typing](s)
		if !ok || e.CompanyID != l.companyID || now.Sub(e.At) > event.TypingTTL {
			return nil
		}
		return emitJSON(
			"typing",
			typingEvent{e.ChatUserID, e.AppID, e.Side, e.UserID, e.Name, e.At.Format(chat.TimeFormat)},
			emit,
		)
	}
	e, ok := decodedSignal[event.ReadCursorMoved](s)
	if !ok || e.CompanyID != l.companyID {
		return nil
	}
	return emitJSON("seen", seenEvent{e.ChatID, e.MessageID, e.UpTo.Format(chat.TimeFormat)}, emit)
}

// decodedSignal returns the event of a signal; false if it is malformed.
func decodedSignal[E event.Signal, P event.Checked[E]](s signal) (E, bool) {
	e, err := event.Decode[E, P](s.subject, s.data)
	return e, err == nil
}
