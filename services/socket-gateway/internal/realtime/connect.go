package realtime

// The way of a socket into its room: admit, authenticate, join, recover, connected, in this order. The engine
// calls admit for each CONNECT packet and connected after the answer.

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"
	"unicode/utf8"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/ratelimit"
	"github.com/parley-chat/parley/pkg/socketio"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/services/socket-gateway/internal/metadata"
)

// Namespace is the namespace that visitors connect to (spec, "Events").
const Namespace = "/message"

// headerOrigin is the only header kept for a connection.
const headerOrigin = "Origin"

// KeptHeaders returns the headers of a connection that the authenticator reads.
func KeptHeaders() []string { return []string{headerOrigin} }

// joinTimeout bounds the wait for NATS and Redis before a socket is refused as unavailable.
const joinTimeout = 3 * time.Second

// Room returns the room that all sockets of a visitor join.
func Room(appID, chatUserID string) string { return appID + "-" + chatUserID }

// tokenVerifier verifies visitor tokens. Verify returns apperr.Unauthenticated for an invalid token and
// apperr.Unavailable if the keys are not available.
type tokenVerifier interface {
	Verify(ctx context.Context, token string) (credential.VisitorClaims, error)
}

// authenticator admits visitors to the namespace. Its methods run concurrently, one call for each socket; its
// fields are set once, and each part guards itself.
type authenticator struct {
	namespace   *socketio.Namespace
	tokens      tokenVerifier
	expiry      *expiry
	revocations *revocations
	origins     *originCache
	rooms       *rooms
	receipts    *receiptQueue
	replies     *replyStream
	unfinished  *unfinishedMessages
	recoveries  *recoveryBounds
	renewals    *ratelimit.Limiter
	watermarks  *lowWatermarks
	metrics     *Metrics
	logger      *slog.Logger
	live        *liveEvents
	presence    *presenceWriter
}

// newAuthenticator returns the authenticator of a gateway whose other parts are made.
func newAuthenticator(g *Gateway, replies *replyStream) *authenticator {
	cfg := g.cfg
	return &authenticator{
		namespace:   cfg.Namespace,
		tokens:      cfg.Tokens,
		expiry:      g.expiry,
		revocations: newRevocations(cfg.Now),
		origins:     g.origins,
		rooms:       g.rooms,
		receipts:    g.receipts,
		replies:     replies,
		unfinished:  newUnfinishedMessages(cfg.Bus, cfg.Now),
		recoveries:  newRecoveryBounds(cfg.RecoveryRate, cfg.RecoveryBytes, cfg.Now),
		renewals:    ratelimit.New(ratelimit.Config{Name: "token", Rate: renewRate, Now: cfg.Now}),
		watermarks:  g.watermarks,
		metrics:     cfg.Metrics,
		logger:      cfg.Logger,
		live:        g.live,
		presence:    g.presence,
	}
}

// handleConnections makes the namespace admit only sockets with a valid token, and handles eventToken. live.go handles
// typing and read cursors; visitors send messages over HTTP.
func (a *authenticator) handleConnections() {
	a.namespace.Use(a.admit)
	a.namespace.OnConnection(a.connected)
	a.namespace.On(eventToken, a.renew)
}

// socketState is what the gateway keeps of a visitor's socket, as its Data.
type socketState struct {
	room   string
	appLen int  // length of the appId, the prefix of room
	unread bool // the client wants eventUnread
	lease  lease
	until  time.Time // the first expiry
	// A socket that resumes a session is held until the missed replies are sent; it has all replies up to replayedUpTo.
	held         bool
	replayedUpTo uint64
	part         metadata.Part // the last part in the snapshot of an unfinished message

	earlyRenewals int // consecutive ones above renewRate; used by the handler of eventToken only
}

// handshake is the auth object of a CONNECT: a token and, on a reconnect, the session's pid and the last offset.
type handshake struct {
	Token  string `json:"token"`
	PID    string `json:"pid"`
	Offset string `json:"offset"`

	Unread flag `json:"unread"` // the client wants eventUnread
}

// flag decodes JSON true as true and any other value as false, without an error.
type flag bool

// UnmarshalJSON implements json.Unmarshaler.
func (f *flag) UnmarshalJSON(text []byte) error {
	*f = string(text) == "true"
	return nil
}

// appID returns the application of the visitor.
func (s *socketState) appID() string { return s.room[:s.appLen] }

// chatUserID returns the visitor, the rest of the room's name.
func (s *socketState) chatUserID() string { return s.room[s.appLen+1:] }

// admit verifies the token of the CONNECT packet and joins the socket to its visitor's room. The client gets
// its answer after the room's subscription is confirmed: events published from then on reach it.
func (a *authenticator) admit(ctx context.Context, s *socketio.Socket) error {
	from := s.Handshake()
	shown := readHandshake(from.Auth)
	claims, err := a.authenticate(ctx, shown.Token, from.Header.Get(headerOrigin))
	if err == nil {
		err = a.join(ctx, s, claims, shown)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, socketio.ErrDisconnected) || ctx.Err() != nil:
		return err // the client has disconnected
	case shown.PID != "" && apperr.CodeOf(err) == apperr.Unavailable:
		s.CloseConnection() // the official client reconnects after a close, but not after a refusal
		a.metrics.connectError(apperr.ServiceUnavailable.Reason)
		return err
	}
	refused := a.refusal(ctx, err)
	a.metrics.connectError(refused.Reason)
	return &socketio.ConnectError{Message: refused.Message, Data: refusalData{refused.Reason}}
}

// authenticate returns the claims of a valid token if its application allows the origin.
func (a *authenticator) authenticate(ctx context.Context, token, origin string) (credential.VisitorClaims, error) {
	claims, err := a.verify(ctx, token)
	if err != nil {
		return claims, err
	}
	return claims, a.origins.check(ctx, claims.AppID, origin)
}

// join joins the socket to its room. The session starts at a low watermark read before the join, so that later
// events that do not reach the client live are replayed when it reconnects.
func (a *authenticator) join(
	ctx context.Context,
	s *socketio.Socket,
	claims credential.VisitorClaims,
	shown handshake,
) error {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	watermark, epoch, err := a.watermarks.of(ctx, subject.Reply(claims.AppID, claims.ChatUserID))
	if err != nil {
		return apperr.Unreachable("NATS", err)
	}
	known := &socketState{
		room:   Room(claims.AppID, claims.ChatUserID),
		appLen: len(claims.AppID),
		until:  claims.ExpiresAt,
		unread: bool(shown.Unread),
	}
	a.rooms.open(known.room, claims.CompanyID, watermark)
	if shown.PID != "" {
		s.HoldBroadcasts()
		known.held = true
	}
	if err := s.JoinContext(ctx, known.room); err != nil {
		return apperr.Unreachable("redis", err)
	}
	if err := a.revocations.check(ctx, claims); err != nil { // again: it may have been revoked during the join
		return err
	}
	pid := newPID(bus.Place{Sequence: watermark, Time: a.replies.bus.Now()}, epoch)
	if shown.PID == "" {
		a.metrics.recovery(recoveryNone)
	} else {
		pid, err = a.recover(ctx, s, known, claims, shown, pid)
		if err != nil {
			return err
		}
	}
	a.showUnfinished(ctx, s, known, claims)
	s.SetData(known)
	return s.AddAnswer("pid", pid)
}

// showUnfinished sends a snapshot of the message that a bot is writing for the visitor, and suppresses the
// parts that it contains. If reading fails, the socket connects without a snapshot: the bot repeats the text.
func (a *authenticator) showUnfinished(
	ctx context.Context,
	s *socketio.Socket,
	known *socketState,
	claims credential.VisitorClaims,
) {
	whole, ok, err := a.unfinished.of(ctx, claims.AppID, claims.ChatUserID)
	if err != nil {
		a.metrics.part(partUnread)
		return
	}
	if !ok {
		return
	}
	s.HoldBroadcasts()
	known.held = true
	known.part = metadata.Part{MessageID: whole.MessageID, N: whole.N}
	a.rooms.markPartsReplayed(known.room, s.ID(), known.part)
	if s.Emit(eventPart, json.RawMessage(whole.AppendShown(nil))) == nil {
		a.metrics.part(partSnapshot)
	}
}

// recover queues the missed events, which follow the answer to the CONNECT. An answer with the same pid means
// that the client has all events; a new pid, also sent to a client beyond the bounds of recoveries, makes it
// load the history.
func (a *authenticator) recover(
	ctx context.Context,
	s *socketio.Socket,
	known *socketState,
	claims credential.VisitorClaims,
	shown handshake,
	fresh string,
) (pid string, err error) {
	place, ok := a.recoveries.start(ctx, claims.CompanyID, known.room)
	if !ok {
		a.metrics.recovery(recoveryLimited)
		return fresh, nil
	}
	defer place.Release()
	found, err := a.replies.missed(ctx, claims.AppID, claims.ChatUserID, shown.PID, shown.Offset)
	paid := a.recoveries.pay(ctx, claims.CompanyID, found.bytes) // whatever the error: the bytes have been read
	if errors.Is(err, errNotRecoverable) {
		a.metrics.recovery(recoveryMiss)
		return fresh, nil
	}
	if err != nil {
		return "", err
	}
	if !paid {
		a.metrics.recovery(recoveryLimited)
		return fresh, nil
	}
	for _, e := range found.events {
		if err := s.Emit(eventMessage, e.payload, formatOffset(e.at)); err != nil {
			return "", err
		}
	}
	a.receipts.reportRecovered(ctx, claims.CompanyID, known.room, found)
	known.replayedUpTo = found.upTo
	a.rooms.markReplayed(known.room, s.ID(), found.upTo)
	a.metrics.recovery(recoveryHit)
	a.metrics.replayed.Add(float64(len(found.events)))
	return shown.PID, nil
}

// connected is called after the answer to the CONNECT is sent; OnDisconnect handlers run only for sockets
// that got this far.
func (a *authenticator) connected(s *socketio.Socket) {
	known := s.Data().(*socketState)
	if known.held {
		s.ReleaseBroadcasts(known.isNew)
	}
	a.expiry.watch(&known.lease, s, known.until)
	a.presence.markChanged(known.room)
	s.OnDisconnect(func(string) {
		a.expiry.forget(&known.lease)
		a.presence.markChanged(known.room)
	})
	if known.unread {
		a.live.sendUnread(s, known)
	}
}

// isNew reports whether a held event is newer than the replay and the snapshot.
func (s *socketState) isNew(b *socketio.Broadcast) bool {
	m := metadata.Of(b)
	if m.Part != (metadata.Part{}) {
		return !s.part.Covers(m.Part)
	}
	return m.Offset == 0 || m.Offset > s.replayedUpTo
}

// readHandshake reads the members that are there. A malformed handshake has no token, and a session that
// cannot be recovered.
func readHandshake(auth json.RawMessage) (h handshake) {
	if token, ok := onlyToken(auth); ok {
		return handshake{Token: token}
	}
	if json.Unmarshal(auth, &h) != nil {
		return handshake{Token: h.Token, PID: "malformed"}
	}
	return h
}

// onlyToken reads the handshake of a first connection, {"token":"..."}, without a JSON decoder.
func onlyToken(auth []byte) (token string, ok bool) {
	rest, head := bytes.CutPrefix(auth, []byte(`{"token":"`))
	rest, tail := bytes.CutSuffix(rest, []byte(`"}`))
	if !head || !tail {
		return "", false
	}
	for _, c := range rest {
		if c >= utf8.RuneSelf || c < ' ' || c == '"' || c == '\\' {
			return "", false
		}
	}
	return string(rest), true
}

// refusalData is the data of a CONNECT_ERROR.
type refusalData struct {
	Code string `json:"code"`
}

// refusal returns the public error for err. Errors of the service are logged; invalid tokens are only
// counted.
func (a *authenticator) refusal(ctx context.Context, err error) (refused apperr.Definition) {
	if errors.Is(err, errOriginNotAllowed) {
		return apperr.OriginNotAllowed
	}
	switch apperr.CodeOf(err) {
	case apperr.Unauthenticated, apperr.Invalid:
		return apperr.Unauthorized
	case apperr.Unavailable, apperr.TooMany:
		a.logger.WarnContext(ctx, "socket refused", "error", err)
		return apperr.ServiceUnavailable
	default:
		a.logger.ErrorContext(ctx, "socket refused", "error", err)
		return apperr.InternalError
	}
}
