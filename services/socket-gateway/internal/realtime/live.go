package realtime

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/ratelimit"
	"github.com/parley-chat/parley/pkg/socketio"
	"github.com/parley-chat/parley/proto-events/subject"
)

// Events that say what happens at this moment (docs/decisions/0023-typing-read-presence.md). They have no offset: nothing replays them.
// Their arguments are objects, because the official clients would take a string for an offset.
const (
	// EventTyping tells a visitor that the other side writes, and the gateway that the visitor does.
	EventTyping = "typing"
	// EventRead tells a visitor how far a side has read, and the gateway how far the visitor has.
	EventRead = "read"
	// EventUnread tells a visitor after the connect how far the chat is read, if the handshake's auth has unread: true.
	EventUnread = "unread"
)

const (
	// signalGroup is the gateways, one of which takes each signal.
	signalGroup = durable
	// signalRoom is how many signals wait for Redis; more are dropped, for they would be late.
	signalRoom  = 1024
	signalBatch = 64

	askTimeout = 3 * time.Second
	// maxMessageID is what the longest id of a message has, in bytes.
	maxMessageID = 256
)

// The pace of one visitor on one gateway.
var (
	typingRate = config.Rate{Count: 1, Per: event.TypingPause}
	readRate   = config.Rate{Count: 30, Per: time.Minute}
)

// Reader moves a visitor's read cursor; see [bus.Bus.ReadUpTo].
type Reader interface {
	ReadUpTo(ctx context.Context, companyID, appID, chatUserID, messageID string) (bus.Reading, error)
}

// Signals are what passes over core NATS.
type Signals interface {
	Signal(s event.Signal) error
	OnSignal(filter, group string, heard func(subj string, data []byte)) (stop func(), err error)
}

// Live carries what happens at this moment: from visitors to the other services, and from these into the visitors' rooms.
type Live struct {
	namespace *socketio.Namespace
	rooms     *Rooms
	signals   Signals
	reader    Reader
	metrics   *Metrics
	now       func() time.Time
	logger    *slog.Logger

	typing *ratelimit.Limiter
	reads  *ratelimit.Limiter
	coming chan *socketio.Broadcast
}

// listen takes the events of visitors.
func (l *Live) listen() {
	l.namespace.On(EventTyping, l.visitorTypes)
	l.namespace.On(EventRead, l.visitorReads)
}

// outcome is the acknowledgement of EventTyping and EventRead.
type outcome struct {
	OK      bool   `json:"ok"`
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
	Unread  *int   `json:"unread,omitempty"`
}

var (
	tooMany = outcome{Code: apperr.TooManyRequests.Reason, Message: "Too many events. Please try again later."}
	invalid = outcome{Code: apperr.ValidationError.Reason, Message: "The argument must be an object with the id of a message: {messageId}"}
)

// Results of a visitor's event, for the metrics.
const (
	resultAccepted = "accepted"
	resultLimited  = "limited"
	resultInvalid  = "invalid"
	resultFailed   = "failed"
)

// visitorTypes tells agents that the visitor writes. Whatever the arguments are, they mean nothing.
func (l *Live) visitorTypes(s *socketio.Socket, _ socketio.Args, ack socketio.Ack) {
	known := s.Data().(*session)
	if !l.typing.Take(context.Background(), known.room).Allowed {
		l.metrics.clientEvent(EventTyping, resultLimited)
		_ = ack(tooMany) // the client may have left, or not ask
		return
	}
	err := l.signals.Signal(event.Typing{
		CompanyID: l.rooms.companyOf(known.room), AppID: known.appID(), ChatUserID: known.chatUserID(), Side: subject.SideVisitor, At: l.now(),
	})
	if err != nil {
		l.metrics.clientEvent(EventTyping, resultFailed)
		_ = ack(outcome{Code: apperr.ServiceUnavailable.Reason, Message: apperr.ServiceUnavailable.Message})
		return
	}
	l.metrics.clientEvent(EventTyping, resultAccepted)
	_ = ack(outcome{OK: true})
}

// visitorReads moves the visitor's read cursor. The acknowledgement says that it is stored.
func (l *Live) visitorReads(s *socketio.Socket, args socketio.Args, ack socketio.Ack) {
	result, answer := l.read(s.Data().(*session), args)
	l.metrics.clientEvent(EventRead, result)
	_ = ack(answer) // the client may have left, or not ask
}

func (l *Live) read(known *session, args socketio.Args) (result string, answer outcome) {
	var upTo struct {
		MessageID string `json:"messageId"`
	}
	if args.Decode(0, &upTo) != nil || upTo.MessageID == "" || len(upTo.MessageID) > maxMessageID {
		return resultInvalid, invalid
	}
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	if !l.reads.Take(ctx, known.room).Allowed {
		return resultLimited, tooMany
	}
	reading, err := l.reader.ReadUpTo(ctx, l.rooms.companyOf(known.room), known.appID(), known.chatUserID(), upTo.MessageID)
	switch {
	case apperr.Is(err, apperr.NotFound):
		return resultInvalid, outcome{Code: apperr.ReasonOf(err), Message: "There is no such message in the open chat"}
	case err != nil:
		l.logger.WarnContext(ctx, "a visitor's reading cannot be stored", "error", err)
		return resultFailed, outcome{Code: apperr.ServiceUnavailable.Reason, Message: apperr.ServiceUnavailable.Message}
	}
	return resultAccepted, outcome{OK: true, Unread: &reading.Unread}
}

// sendUnread tells a socket that has asked for it how far its chat is read. A visitor without an open chat is told nothing.
func (l *Live) sendUnread(s *socketio.Socket, known *session) {
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	if !l.reads.Take(ctx, known.room).Allowed {
		return
	}
	reading, err := l.reader.ReadUpTo(ctx, l.rooms.companyOf(known.room), known.appID(), known.chatUserID(), "")
	if err != nil {
		return // GET /message tells the same
	}
	told := unreadEvent{Unread: reading.Unread, ReadUpTo: reading.ReadUpTo}
	if !reading.SeenUpTo.IsZero() {
		told.SeenUpTo = reading.SeenUpTo.UTC().Format(chat.TimeFormat)
	}
	_ = s.Emit(EventUnread, told) // it may have left
}

type unreadEvent struct {
	Unread   int    `json:"unread"`
	ReadUpTo string `json:"readUpTo,omitempty"`
	SeenUpTo string `json:"seenUpTo,omitempty"`
}

type typingEvent struct {
	Name string `json:"name,omitempty"`
	At   string `json:"at"`
}

type readEvent struct {
	ChatID    string `json:"chatId"`
	Side      string `json:"side"`
	MessageID string `json:"messageId,omitempty"`
	UpTo      string `json:"upTo"`
}

// Run emits the signals that this gateway takes, until ctx is done.
func (l *Live) Run(ctx context.Context) {
	for filter, take := range map[string]func(subj string, data []byte){
		subject.AllSupportTyping: l.supportTypes, subject.AllReadCursors: l.cursorMoved,
	} {
		stop, err := l.signals.OnSignal(filter, signalGroup, take)
		if err != nil {
			l.logger.ErrorContext(ctx, "visitors do not see who types and reads", "error", err)
			continue
		}
		defer stop()
	}
	batch := make([]*socketio.Broadcast, 0, signalBatch)
	for {
		select {
		case <-ctx.Done():
			return
		case b := <-l.coming:
			batch = append(batch[:0], b)
			for len(batch) < signalBatch && len(l.coming) > 0 {
				batch = append(batch, <-l.coming)
			}
			_ = l.namespace.EmitAll(ctx, batch) // what Redis has not taken is lost, and worth nothing later
		}
	}
}

func (l *Live) supportTypes(subj string, data []byte) {
	e, err := event.Decode[event.Typing](subj, data)
	if err != nil || l.now().Sub(e.At) > event.TypingLife { // it has lain about, as after an outage
		return
	}
	l.emit(e.AppID, e.ChatUserID, true, EventTyping, typingEvent{Name: e.Name, At: e.At.Format(chat.TimeFormat)})
}

func (l *Live) cursorMoved(subj string, data []byte) {
	e, err := event.Decode[event.ReadCursorMoved](subj, data)
	if err != nil {
		return
	}
	l.emit(e.AppID, e.ChatUserID, false, EventRead, readEvent{
		ChatID: e.ChatID, Side: e.Side, MessageID: e.MessageID, UpTo: e.UpTo.Format(chat.TimeFormat),
	})
}

// emit queues an event for a visitor's room. A volatile one is dropped for sockets that cannot take it at once.
func (l *Live) emit(appID, chatUserID string, volatile bool, name string, argument any) {
	data, err := json.Marshal([]any{name, argument})
	if err != nil {
		return // strings: always encodes
	}
	select {
	case l.coming <- &socketio.Broadcast{Selection: socketio.Selection{Rooms: []string{Room(appID, chatUserID)}}, Data: data, Volatile: volatile}:
	default:
	}
}
