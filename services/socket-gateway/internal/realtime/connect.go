// Package realtime connects visitors' sockets to the stream of replies. Reading order: connect.go (which sockets join which room), origin.go
// (from which pages), token.go and expiry.go (a socket ends with its token, unless that is renewed), deliver.go (from a reply to an emit
// into its room), live.go (typing and read cursors), presence.go (connected visitors), offset.go (the numbers of events), part.go and
// unfinished.go (messages that are still being written), room.go (each event once and in order), log.go and recover.go (replay for a client),
// receipt.go (delivery reports), floor.go and gap.go (replay for this gateway), drain.go, metrics.go.
//
// The engine (pkg/socketio) knows sockets and rooms, the bus knows streams; visitors and replies are known only here.
//
// Invariants (the reasons are in docs/decisions/0004-one-reader-redis-fan-out.md, and for several readers in 0014-partitions.md,
// 0027-positions.md and 0029-one-order-in-redis.md):
//
//   - The position of a partition passes a reply only after Redis has accepted it, and the next reply of the same room follows only then.
//   - A room delivers rising offsets only; an event that is not newer has been delivered, or was passed on before the room had a socket.
//   - A client that reconnects with pid and offset receives what follows them from the stream, and live only what follows that.
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

// Namespace is the one namespace that visitors connect to (spec, "Events").
const Namespace = "/message"

// headerOrigin is the one header of a connection that is kept: where the page is from.
const headerOrigin = "Origin"

// KeptHeaders are the headers of a connection that the Authenticator reads.
func KeptHeaders() []string { return []string{headerOrigin} }

// joinTimeout is how long a socket waits for Redis before it is refused with a request to retry.
const joinTimeout = 3 * time.Second

// Room returns the room that all sockets of a visitor join.
func Room(appID, chatUserID string) string { return appID + "-" + chatUserID }

// Tokens returns the visitor of a token. Its error is apperr.Unauthenticated for a token that is not valid, and
// apperr.Unavailable when that is not known.
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
	floors      *Floors
	metrics     *Metrics
	now         func() time.Time
	logger      *slog.Logger
	live        *Live
	presence    *Presence
}

// guard makes the namespace admit only sockets with a valid token. Of the clients' events, fresh tokens are handled here, typing and read
// cursors in live.go; visitors write over HTTP.
func (g *Authenticator) guard() {
	g.namespace.Use(g.admit)
	g.namespace.OnConnection(g.connected)
	g.namespace.On(EventToken, g.renew)
}

// session is the state of a socket of a visitor.
type session struct {
	room   string
	appLen int  // of the room's name, which begins with the id of the application
	unread bool // the client wants EventUnread
	lease  Lease
	until  time.Time // the first expiry
	// A socket that was connected before is held until it has got what it missed; it has had everything up to caughtUp.
	held     bool
	caughtUp uint64
	part     metadata.Part // the last part that it has had of a message that is being written
}

// handshake is the auth object of a CONNECT: a token, and, on a reconnect, the session and the last offset.
type handshake struct {
	Token  string `json:"token"`
	PID    string `json:"pid"`
	Offset string `json:"offset"`

	Unread flag `json:"unread"` // the client wants EventUnread
}

// flag is true where JSON says true; anything else is false, and no error.
type flag bool

func (f *flag) UnmarshalJSON(text []byte) error {
	*f = string(text) == "true"
	return nil
}

// appID is the application that the visitor belongs to.
func (s *session) appID() string { return s.room[:s.appLen] }

func (s *session) chatUserID() string { return s.room[s.appLen+1:] }

// admit verifies the token of the CONNECT packet and puts the socket into its visitor's room. The room's subscription is
// confirmed when the client gets its answer: events published from then on reach it.
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
		s.CloseConnection() // the official client reconnects after that, and not after a refusal
		g.metrics.connectError(apperr.ServiceUnavailable.Reason)
		return err
	}
	refused := g.refusal(ctx, err)
	g.metrics.connectError(refused.Reason)
	return &socketio.ConnectError{Message: refused.Message, Data: refusalData{refused.Reason}}
}

// enter returns the visitor of a token that is valid and allowed on pages of that origin.
func (g *Authenticator) enter(ctx context.Context, token, origin string) (credential.VisitorClaims, error) {
	claims, err := g.verify(ctx, token)
	if err != nil {
		return claims, err
	}
	return claims, g.origins.Check(ctx, claims.AppID, origin)
}

// join puts the socket into its room. The session begins at the position read before the join: a later event that does not reach the
// client live is replayed when the client reconnects.
func (g *Authenticator) join(ctx context.Context, s *socketio.Socket, claims credential.VisitorClaims, shown handshake) error {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	position, stream, err := g.floors.Position(ctx, subject.Reply(claims.AppID, claims.ChatUserID))
	if err != nil {
		return apperr.Unreachable("NATS", err)
	}
	known := &session{
		room: Room(claims.AppID, claims.ChatUserID), appLen: len(claims.AppID), until: claims.ExpiresAt, unread: bool(shown.Unread),
	}
	if g.rooms.Open(known.room, claims.CompanyID, position); shown.PID != "" {
		s.Hold()
		known.held = true
	}
	if err := s.JoinContext(ctx, known.room); err != nil {
		return apperr.Unreachable("redis", err)
	}
	if err := g.revocations.check(ctx, claims); err != nil { // while it was joining
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

// showUnfinished sends the text so far of the message that a bot is writing for the visitor, and holds back the parts that it contains.
// If it cannot be read, the socket is connected without it: the bot repeats the text.
func (g *Authenticator) showUnfinished(ctx context.Context, s *socketio.Socket, known *session, claims credential.VisitorClaims) {
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

// recover sends the events that the client has missed, after the answer to its CONNECT. An answer with the same pid tells the client that
// nothing is missing; a new pid, also the answer to a client that reconnects too often, tells it to load the history.
func (g *Authenticator) recover(ctx context.Context, s *socketio.Socket, known *session, claims credential.VisitorClaims, shown handshake, fresh string) (pid string, err error) {
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
			g.receipts.Note(claims.CompanyID, e.receipt)
		}
	}
	known.caughtUp = found.upTo
	g.rooms.Ahead(known.room, s.ID(), found.upTo)
	g.metrics.recovery(recoveryHit)
	g.metrics.replayed.Add(float64(len(found.events)))
	return shown.PID, nil
}

// connected is called after a socket has received its CONNECT answer; only then is OnDisconnect called for it.
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

// isNew reports whether an event that was held back is newer than the last one that the client has received.
func (s *session) isNew(b *socketio.Broadcast) bool {
	m := metadata.Of(b)
	if m.Part != (metadata.Part{}) {
		return !s.part.Covers(m.Part)
	}
	return m.Offset == 0 || m.Offset > s.caughtUp
}

// readHandshake reads the members that are there. A malformed handshake has no token, and a session that cannot be recovered.
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

// refusal returns the public error that a client receives for an error. Errors of the service are logged, wrong tokens are only
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
