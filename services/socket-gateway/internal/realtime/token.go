package realtime

import (
	"context"
	"strings"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/socketio"
)

const (
	// EventToken is the one event of clients that is heard: a fresh token of the same visitor, acknowledged with {"ok"}.
	EventToken = "token"
	// KindVisitorTokens is the kind of invalidation that revokes a visitor's tokens; its key is the visitor's chatUserId.
	KindVisitorTokens = "visitor_tokens"

	renewTimeout    = 5 * time.Second
	keptRevocations = 64 << 10
)

// renewal is the acknowledgement of EventToken.
type renewal struct {
	OK      bool   `json:"ok"`
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

// renew takes a fresh token for a socket that is connected.
func (g *Gate) renew(s *socketio.Socket, args socketio.Args, ack socketio.Ack) {
	_ = ack(g.renewed(s, args.String(0))) // the client may have left, or not ask
}

func (g *Gate) renewed(s *socketio.Socket, token string) renewal {
	ctx, cancel := context.WithTimeout(context.Background(), renewTimeout)
	defer cancel()
	known := s.Data().(*session)
	claims, err := g.verify(ctx, token)
	if err == nil && Room(claims.AppID, claims.ChatUserID) != known.room {
		err = apperr.New(apperr.Unauthenticated, codeUnauthorized, "Unauthorized") // somebody else's
	}
	if err == nil && !g.expiry.Renew(&known.lease, claims.ExpiresAt) {
		err = apperr.New(apperr.Unauthenticated, codeUnauthorized, "Unauthorized") // too late
	}
	if err != nil {
		message, code := g.refusal(ctx, err)
		return renewal{Code: code, Message: message}
	}
	return renewal{OK: true}
}

// verify says for whom a token speaks that holds and was not revoked.
func (g *Gate) verify(ctx context.Context, token string) (credential.VisitorClaims, error) {
	claims, err := g.tokens.Verify(ctx, token)
	if err != nil {
		return claims, err
	}
	return claims, g.revocations.check(claims)
}

// revocations remembers whose tokens were revoked while this gateway ran. Who issues and registers tokens keeps the whole
// truth; this is what makes it work at once.
type revocations struct {
	times *lru.Cache[string, time.Time]
}

func newRevocations() *revocations {
	times, err := lru.New[string, time.Time](keptRevocations)
	if err != nil {
		panic("realtime: " + err.Error()) // only for a size that is not positive
	}
	return &revocations{times}
}

// check refuses a token that was issued before its visitor's were revoked.
func (r *revocations) check(claims credential.VisitorClaims) error {
	at, ok := r.times.Get(claims.ChatUserID)
	if ok && !claims.IssuedAt.After(at) {
		return apperr.New(apperr.Unauthenticated, codeUnauthorized, "Unauthorized")
	}
	return nil
}

// Revoke is called with every invalidation. It ends the sockets of a visitor whose tokens are revoked, and refuses what was
// issued until now.
func (g *Gate) Revoke(kind, key string) {
	if kind != KindVisitorTokens {
		return
	}
	g.revocations.times.Add(key, g.now()) // before looking for sockets: who joins later is refused
	for _, room := range g.namespace.Rooms() {
		if strings.HasSuffix(room, "-"+key) {
			_ = g.namespace.To(room).Local().DisconnectSockets(context.Background(), true) // does not fail here
		}
	}
}
