package realtime

import (
	"context"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/socketio"
)

const (
	// EventToken brings a fresh token of the same visitor, acknowledged with {"ok"}.
	EventToken = "token"

	renewTimeout = 5 * time.Second
)

// renewal is the acknowledgement of EventToken.
type renewal struct {
	OK      bool   `json:"ok"`
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

// renew takes a fresh token for a socket that is connected.
func (g *Authenticator) renew(s *socketio.Socket, args socketio.Args, ack socketio.Ack) {
	_ = ack(g.renewed(s, args.String(0))) // the client may have left, or not ask
}

func (g *Authenticator) renewed(s *socketio.Socket, token string) renewal {
	ctx, cancel := context.WithTimeout(context.Background(), renewTimeout)
	defer cancel()
	known := s.Data().(*session)
	claims, err := g.verify(ctx, token)
	if err == nil && Room(claims.AppID, claims.ChatUserID) != known.room {
		err = apperr.Unauthorized.New() // somebody else's
	}
	if err == nil && !g.expiry.Renew(&known.lease, claims.ExpiresAt) {
		err = apperr.Unauthorized.New() // too late
	}
	if err != nil {
		refused := g.refusal(ctx, err)
		return renewal{Code: refused.Reason, Message: refused.Message}
	}
	return renewal{OK: true}
}

// verify returns the visitor of a token that is valid and not revoked.
func (g *Authenticator) verify(ctx context.Context, token string) (credential.VisitorClaims, error) {
	claims, err := g.tokens.Verify(ctx, token)
	if err != nil {
		return claims, err
	}
	return claims, g.revocations.check(ctx, claims)
}
