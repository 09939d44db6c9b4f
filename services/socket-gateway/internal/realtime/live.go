package realtime

// Transient events: typing and read cursors, in both directions, and the unread count after a connect.

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/ratelimit"
	"github.com/parley-chat/parley/pkg/rpc"
	"github.com/parley-chat/parley/pkg/socketio"
	"github.com/parley-chat/parley/proto-events/subject"
)

// Transient events (docs/decisions/0009-live-signals-and-parts.md). They have no offset and are never replayed.
// Their arguments are objects, because the official clients would store a trailing string as the offset.
const (
	// eventTyping is sent to a visitor when the support side is typing, and by a visitor's client when the visitor is.
	eventTyping = "typing"
	// eventRead is sent to a visitor when a side's read cursor moves, and by a visitor's client to move the visitor's.
	eventRead = "read"
	// eventUnread is sent after the connect with the unread count and read cursors, if the handshake's auth
	// has unread: true.
	eventUnread = "unread"
)

const (
	// signalGroup is the queue group of the gateways: each signal is delivered to one of them.
	signalGroup = consumerGroup
	// signalQueueSize is the size of the queue to Redis; signals that exceed it are dropped, because they would
	// arrive too late.
	signalQueueSize = 1024
	signalBatch     = 64

	askTimeout = 3 * time.Second
	// maxMessageID is the maximum length of a message id in bytes.
	maxMessageID = 256
)

// Rate limits of one visitor on one gateway.
var (
	typingRate = config.Rate{Count: 1, Per: event.TypingPause}
	readRate   = config.Rate{Count: 30, Per: time.Minute}
)

// readCursors moves a visitor's read cursor; see [rpc.Conn.ReadUpTo].
type readCursors interface {
	ReadUpTo(ctx context.Context, companyID, appID, chatUserID, messageID string) (rpc.Reading, error)
}

// signals publishes and receives transient events over core NATS; see [rpc.Conn].
type signals interface {
	rpc.Subscriber
	Signal(a rpc.Announcement) error
}

// liveEvents forwards transient events: from visitors to the other services, and from those into the visitors' rooms.
type liveEvents struct {
	namespace *socketio.Namespace
	rooms     *rooms
	signals   signals
	reader    readCursors
	metrics   *Metrics
	now       func() time.Time
	logger    *slog.Logger

	typing      *ratelimit.Limiter
	reads       *ratelimit.Limiter
	signalQueue chan *socketio.Broadcast
}

// newLiveEvents returns the transient events of a gateway. run forwards those from the other services.
func newLiveEvents(cfg Config, rooms *rooms) *liveEvents {
	return &liveEvents{
		namespace:   cfg.Namespace,
		rooms:       rooms,
		signals:     cfg.Bus.RPC(),
		reader:      cfg.Bus.RPC(),
		metrics:     cfg.Metrics,
		now:         cfg.Now,
		logger:      cfg.Logger,
		typing:      ratelimit.New(ratelimit.Config{Name: "typing", Rate: typingRate, Now: cfg.Now}),
		reads:       ratelimit.New(ratelimit.Config{Name: "read", Rate: readRate, Now: cfg.Now}),
		signalQueue: make(chan *socketio.Broadcast, signalQueueSize),
	}
}

// handleEvents registers the handlers of visitors' events.
func (l *liveEvents) handleEvents() {
	l.namespace.On(eventTyping, l.visitorTypes)
	l.namespace.On(eventRead, l.visitorReads)
}

// eventAnswer is the acknowledgement of eventToken, eventTyping and eventRead.
type eventAnswer struct {
	OK      bool   `json:"ok"`
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
	Unread  *int   `json:"unread,omitempty"`
}

var (
	tooMany = eventAnswer{Code: apperr.TooManyRequests.Reason, Message: "Too many events. Please try again later."}
	invalid = eventAnswer{
		Code:    apperr.ValidationError.Reason,
		Message: "The argument must be an object with the id of a message: {messageId}",
	}
	unavailable = eventAnswer{
		Code:    apperr.ServiceUnavailable.Reason,
		Message: apperr.ServiceUnavailable.Message,
	}
)

// Results of a visitor's event, for the metrics.
const (
	resultAccepted = "accepted"
	resultLimited  = "limited"
	resultInvalid  = "invalid"
	resultFailed   = "failed"
)

// visitorTypes signals to agents that the visitor is typing. It ignores the arguments.
func (l *liveEvents) visitorTypes(s *socketio.Socket, _ socketio.Args, ack socketio.Ack) {
	known := s.Data().(*socketState)
	if !l.typing.Take(context.Background(), known.room).Allowed {
		l.metrics.clientEvent(eventTyping, resultLimited)
		_ = ack(tooMany) // the client may have disconnected or not requested an acknowledgement
		return
	}
	err := l.signals.Signal(event.Typing{
		CompanyID:  l.rooms.companyOf(known.room),
		AppID:      known.appID(),
		ChatUserID: known.chatUserID(),
		Side:       subject.SideVisitor,
		At:         l.now(),
	})
	if err != nil {
		l.metrics.clientEvent(eventTyping, resultFailed)
		_ = ack(unavailable)
		return
	}
	l.metrics.clientEvent(eventTyping, resultAccepted)
	_ = ack(eventAnswer{OK: true})
}

// visitorReads moves the visitor's read cursor and acknowledges when it is stored.
func (l *liveEvents) visitorReads(s *socketio.Socket, args socketio.Args, ack socketio.Ack) {
	result, answer := l.moveCursor(s.Data().(*socketState), args)
	l.metrics.clientEvent(eventRead, result)
	_ = ack(answer) // the client may have disconnected or not requested an acknowledgement
}

// moveCursor stores a visitor's read cursor, and returns the result for the metrics and the acknowledgement.
func (l *liveEvents) moveCursor(known *socketState, args socketio.Args) (result string, answer eventAnswer) {
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
	reading, err := l.reader.ReadUpTo(
		ctx, l.rooms.companyOf(known.room), known.appID(), known.chatUserID(), upTo.MessageID,
	)
	switch {
	case apperr.Is(err, apperr.NotFound):
		const text = "There is no such message in the open chat"
		return resultInvalid, eventAnswer{Code: apperr.ReasonOf(err), Message: text}
	case err != nil:
		l.logger.WarnContext(ctx, "storing a visitor's read cursor failed", "error", err)
		return resultFailed, unavailable
	}
	return resultAccepted, eventAnswer{OK: true, Unread: &reading.Unread}
}

// sendUnread emits eventUnread to a socket. It sends nothing if the visitor has no open chat.
func (l *liveEvents) sendUnread(s *socketio.Socket, known *socketState) {
	ctx, cancel := context.WithTimeout(context.Background(), askTimeout)
	defer cancel()
	if !l.reads.Take(ctx, known.room).Allowed {
		return
	}
	reading, err := l.reader.ReadUpTo(ctx, l.rooms.companyOf(known.room), known.appID(), known.chatUserID(), "")
	if err != nil {
		return // GET /message returns the same data
	}
	told := unreadEvent{Unread: reading.Unread, ReadUpTo: reading.ReadUpTo}
	if !reading.SeenUpTo.IsZero() {
		told.SeenUpTo = reading.SeenUpTo.UTC().Format(chat.TimeFormat)
	}
	_ = s.Emit(eventUnread, told) // the client may have disconnected
}

// unreadEvent is the argument of eventUnread.
type unreadEvent struct {
	Unread   int    `json:"unread"`
	ReadUpTo string `json:"readUpTo,omitempty"`
	SeenUpTo string `json:"seenUpTo,omitempty"`
}

// typingEvent is the argument of eventTyping.
type typingEvent struct {
	Name string `json:"name,omitempty"`
	At   string `json:"at"`
}

// readEvent is the argument of eventRead.
type readEvent struct {
	ChatID    string `json:"chatId"`
	Side      string `json:"side"`
	MessageID string `json:"messageId,omitempty"`
	UpTo      string `json:"upTo"`
}

// run emits the signals that this gateway receives until ctx is done.
func (l *liveEvents) run(ctx context.Context) {
	for _, listen := range []func() (stop func(), err error){l.listenTyping, l.listenReadCursors} {
		stop, err := listen()
		if err != nil {
			const text = "subscribing to typing or read events failed, visitors do not receive them"
			l.logger.ErrorContext(ctx, text, "error", err)
			continue
		}
		defer stop()
	}
	batch := make([]*socketio.Broadcast, 0, signalBatch)
	for {
		select {
		case <-ctx.Done():
			return
		case b := <-l.signalQueue:
			batch = append(batch[:0], b)
			for len(batch) < signalBatch && len(l.signalQueue) > 0 {
				batch = append(batch, <-l.signalQueue)
			}
			_ = l.namespace.EmitAll(ctx, batch) // not retried: transient events are worthless later
		}
	}
}

func (l *liveEvents) listenTyping() (stop func(), err error) {
	return rpc.Listen(l.signals, subject.AllSupportTyping, signalGroup, event.Decode[event.Typing], l.supportTypes)
}

func (l *liveEvents) listenReadCursors() (stop func(), err error) {
	decode := event.Decode[event.ReadCursorMoved]
	return rpc.Listen(l.signals, subject.AllReadCursors, signalGroup, decode, l.cursorMoved)
}

// supportTypes sends the visitor that the support side is typing.
func (l *liveEvents) supportTypes(e event.Typing) {
	if l.now().Sub(e.At) > event.TypingTTL { // expired, for example after an outage
		return
	}
	l.queueSignal(e.AppID, e.ChatUserID, true, eventTyping, typingEvent{Name: e.Name, At: e.At.Format(chat.TimeFormat)})
}

// cursorMoved sends the visitor a moved read cursor of either side.
func (l *liveEvents) cursorMoved(e event.ReadCursorMoved) {
	l.queueSignal(e.AppID, e.ChatUserID, false, eventRead, readEvent{
		ChatID: e.ChatID, Side: e.Side, MessageID: e.MessageID, UpTo: e.UpTo.Format(chat.TimeFormat),
	})
}

// queueSignal queues an event for a visitor's room. A volatile event is dropped for sockets that cannot send it
// immediately. If the queue is full, the event is dropped: it would come too late.
func (l *liveEvents) queueSignal(appID, chatUserID string, volatile bool, name string, argument any) {
	data, err := json.Marshal([]any{name, argument})
	if err != nil {
		return // never: strings always encode
	}
	b := toRoom(Room(appID, chatUserID), data)
	b.Volatile = volatile
	select {
	case l.signalQueue <- b:
	default:
	}
}
