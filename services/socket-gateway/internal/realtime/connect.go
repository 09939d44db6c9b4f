// Package realtime connects visitors' sockets to the stream of replies. Reading order: connect.go
// (authentication and rooms), origin.go (allowed pages), token.go and expiry.go (token renewal and expiry),
// deliver.go (emits replies into rooms), live.go (typing and read cursors), presence.go (connected visitors),
// offset.go (event offsets), part.go and unfinished.go (messages that are still being written), room.go
// (exactly-once, ordered delivery), log.go and recover.go (replay for a client), receipt.go (delivery
// reports), floor.go and gap.go (replay for this gateway), drain.go, metrics.go.
//
// The engine (pkg/socketio) has sockets and rooms, the bus has streams; only this package has visitors and replies.
//
// Invariants (the reasons are in docs/decisions/0004-delivery.md):
//
//   - The position of a partition passes a reply only after Redis has accepted it, and the next reply of the
//     same room follows only then.
//   - A room delivers increasing offsets only; other events were delivered before, or were published before
//     the room had a socket.
//   - A client that reconnects with pid and offset receives the replies after them from the stream, and later
//     replies live.
package realtime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"time"
	"unicode/utf8"

	"github.com/parley-chat/parley/pkg/apperr"
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

// KeptHeaders returns the headers of a connection that the Authenticator reads.
func KeptHeaders() []string { return []string{headerOrigin} }

// joinTimeout bounds the wait for NATS and Redis before a socket is refused as unavailable.
const joinTimeout = 3 * time.Second

// Room returns the room that all sockets of a visitor join.
func Room(appID, chatUserID string) string { return appID + "-" + chatUserID }

// Tokens verifies visitor tokens. Verify returns apperr.Unauthenticated for an invalid token and
// apperr.Unavailable if the keys are not available.
type Tokens interface {
	Verify(ctx context.Context, token string) (credential.VisitorClaims, error)
}

// Authenticator admits visitors to the namespace.
type Authenticator struct {
	namespace   *socketio.Namespace
	tokens      Tokens
	expiry      *Expiry
	revocations *revocations
	origins     *Origins
	rooms       *Rooms
	receipts    *Receipts
	log         *Log
	unfinished  *Unfinished
	recoveries  *ratelimit.Limiter // nil: no limit
	renewals    *ratelimit.Limiter
	floors      *Floors
	metrics     *Metrics
	now         func() time.Time
	logger      *slog.Logger
	live        *Live
	presence    *Presence
}

// guard makes the namespace admit only sockets with a valid token, and handles EventToken. live.go handles
// typing and read cursors; visitors send messages over HTTP.
func (g *Authenticator) guard() {
	g.namespace.Use(g.admit)
	g.namespace.OnConnection(g.connected)
	g.namespace.On(EventToken, g.renew)
}

// session is the state of a socket of a visitor.
type session struct {
	room   string
	appLen int  // length of the appId, the prefix of room
	unread bool // the client wants EventUnread
	lease  Lease
	until  time.Time // the first expiry
	// A socket that resumes a session is held until the missed replies are sent; it has all replies up to caughtUp.
	held     bool
	caughtUp uint64
	part     metadata.Part // the last part in the snapshot of an unfinished message

	earlyRenewals int // consecutive ones above renewRate; used by the handler of EventToken only
}

// handshake is the auth object of a CONNECT: a token and, on a reconnect, the session's pid and the last offset.
type handshake struct {
	Token  string `json:"token"`
	PID    string `json:"pid"`
	Offset string `json:"offset"`

	Unread flag `json:"unread"` // the client wants EventUnread
}

// flag decodes JSON true as true and any other value as false, without an error.
type flag bool

func (f *flag) UnmarshalJSON(text []byte) error {
	*f = string(text) == "true"
	return nil
}

// appID returns the application of the visitor.
func (s *session) appID() string { return s.room[:s.appLen] }

func (s *session) chatUserID() string { return s.room[s.appLen+1:] }

// admit verifies the token of the CONNECT packet and joins the socket to its visitor's room. The client gets
// its answer after the room's subscription is confirmed: events published from then on reach it.
func (g *Authenticator) admit(ctx context.Context, s *socketio.Socket) error {
	from := s.Handshake()
	shown := readHandshake(from.Auth)
	claims, err := g.enter(ctx, shown.Token, from.Header.Get(headerOrigin))
	if err == nil {
		err = g.join(ctx, s, claims, shown)
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, socketio.ErrDisconnected) || ctx.Err() != nil:
		return err // the client has disconnected
	case shown.PID != "" && apperr.CodeOf(err) == apperr.Unavailable:
		s.CloseConnection() // the official client reconnects after a close, but not after a refusal
		g.metrics.connectError(apperr.ServiceUnavailable.Reason)
		return err
	}
	refused := g.refusal(ctx, err)
	g.metrics.connectError(refused.Reason)
	return &socketio.ConnectError{Message: refused.Message, Data: refusalData{refused.Reason}}
}

// enter returns the claims of a valid token if its application allows the origin.
func (g *Authenticator) enter(ctx context.Context, token, origin string) (credential.VisitorClaims, error) {
	claims, err := g.verify(ctx, token)
	if err != nil {
		return claims, err
	}
	return claims, g.origins.Check(ctx, claims.AppID, origin)
}

// join joins the socket to its room. The session starts at a position read before the join, so that later
// events that do not reach the client live are replayed when it reconnects.
func (g *Authenticator) join(
	ctx context.Context,
	s *socketio.Socket,
	claims credential.VisitorClaims,
	shown handshake,
) error {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	position, stream, err := g.floors.Position(ctx, subject.Reply(claims.AppID, claims.ChatUserID))
	if err != nil {
		return apperr.Unreachable("NATS", err)
	}
	known := &session{
		room:   Room(claims.AppID, claims.ChatUserID),
		appLen: len(claims.AppID),
		until:  claims.ExpiresAt,
		unread: bool(shown.Unread),
	}
	if g.rooms.Open(known.room, claims.CompanyID, position); shown.PID != "" {
		s.Hold()
		known.held = true
	}
	if err := s.JoinContext(ctx, known.room); err != nil {
		return apperr.Unreachable("redis", err)
	}
	if err := g.revocations.check(ctx, claims); err != nil { // again: it may have been revoked during the join
		return err
	}
	pid := newPID(position, stream)
	if shown.PID != "" {
		if pid, err = g.recover(ctx, s, known, claims, shown, pid); err != nil {
			return err
		}
	} else {
		g.metrics.recovery(recoveryNone)
	}
	g.showUnfinished(ctx, s, known, claims)
	s.SetData(known)
	return s.AddAnswer("pid", pid)
}

// showUnfinished sends a snapshot of the message that a bot is writing for the visitor, and suppresses the
// parts that it contains. If reading fails, the socket connects without a snapshot: the bot repeats the text.
func (g *Authenticator) showUnfinished(
	ctx context.Context,
	s *socketio.Socket,
	known *session,
	claims credential.VisitorClaims,
) {
	whole, ok, err := g.unfinished.Of(ctx, claims.AppID, claims.ChatUserID)
	if err != nil {
		g.metrics.part(partUnread)
		return
	}
	if !ok {
		return
	}
	s.Hold()
	known.held, known.part = true, metadata.Part{MessageID: whole.MessageID, N: whole.N}
	g.rooms.AheadOfParts(known.room, s.ID(), known.part)
	if s.Emit(EventPart, json.RawMessage(whole.AppendShown(nil))) == nil {
		g.metrics.part(partSnapshot)
	}
}

// recover queues the missed events, which follow the answer to the CONNECT. An answer with the same pid means
// that the client has all events; a new pid, also sent to a client that reconnects too often, makes it load
// the history.
func (g *Authenticator) recover(
	ctx context.Context,
	s *socketio.Socket,
	known *session,
	claims credential.VisitorClaims,
	shown handshake,
	fresh string,
) (pid string, err error) {
	if !g.recoveries.Take(ctx, known.room).Allowed {
		g.metrics.recovery(recoveryLimited)
		return fresh, nil
	}
	found, err := g.log.Missed(ctx, claims.AppID, claims.ChatUserID, shown.PID, shown.Offset)
	if errors.Is(err, errNotRecoverable) {
		g.metrics.recovery(recoveryMiss)
		return fresh, nil
	}
	if err != nil {
		return "", err
	}
	for _, e := range found.events {
		if err := s.Emit(Event, e.payload, formatOffset(e.offset)); err != nil {
			return "", err
		}
		if e.receipt != (metadata.Receipt{}) {
			g.receipts.Report(claims.CompanyID, e.receipt)
		}
	}
	known.caughtUp = found.upTo
	g.rooms.Ahead(known.room, s.ID(), found.upTo)
	g.metrics.recovery(recoveryHit)
	g.metrics.replayed.Add(float64(len(found.events)))
	return shown.PID, nil
}

// connected is called after the answer to the CONNECT is sent; OnDisconnect handlers run only for sockets
// that got this far.
func (g *Authenticator) connected(s *socketio.Socket) {
	known := s.Data().(*session)
	if known.held {
		s.Release(known.isNew)
	}
	g.expiry.Watch(&known.lease, s, known.until)
	g.presence.Changed(known.room)
	s.OnDisconnect(func(string) {
		g.expiry.Forget(&known.lease)
		g.presence.Changed(known.room)
	})
	if known.unread {
		g.live.sendUnread(s, known)
	}
}

// isNew reports whether a held event is newer than the replay and the snapshot.
func (s *session) isNew(b *socketio.Broadcast) bool {
	m := metadata.Of(b)
	if m.Part != (metadata.Part{}) {
		return !s.part.Covers(m.Part)
	}
	return m.Offset == 0 || m.Offset > s.caughtUp
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

type refusalData struct {
	Code string `json:"code"`
}

// refusal returns the public error for err. Errors of the service are logged; invalid tokens are only
// counted.
func (g *Authenticator) refusal(ctx context.Context, err error) (refused apperr.Definition) {
	if errors.Is(err, errOriginNotAllowed) {
		return apperr.OriginNotAllowed
	}
	switch apperr.CodeOf(err) {
	case apperr.Unauthenticated, apperr.Invalid:
		return apperr.Unauthorized
	case apperr.Unavailable, apperr.TooMany:
		g.logger.WarnContext(ctx, "socket refused", "error", err)
		return apperr.ServiceUnavailable
	default:
		g.logger.ErrorContext(ctx, "socket refused", "error", err)
		return apperr.InternalError
	}
}
