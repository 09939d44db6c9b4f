package realtime

import (
	"context"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/socketio"
)

const (
	// EventToken is sent by a client with a new token of the same visitor; the acknowledgement has {"ok"}.
	EventToken = "token"

	renewTimeout = 5 * time.Second
)

// renewal is the acknowledgement of EventToken.
type renewal struct {
	OK      bool   `json:"ok"`
	Code    string `json:"code,omitempty"`
	Message string `json:"message,omitempty"`
}

// renew handles EventToken.
func (g *Authenticator) renew(s *socketio.Socket, args socketio.Args, ack socketio.Ack) {
	_ = ack(g.renewed(s, args.String(0))) // the client may have disconnected or not requested an acknowledgement
}

func (g *Authenticator) renewed(s *socketio.Socket, token string) renewal {
	ctx, cancel := context.WithTimeout(context.Background(), renewTimeout)
	defer cancel()
	known := s.Data().(*session)
	claims, err := g.verify(ctx, token)
	if err == nil && Room(claims.AppID, claims.ChatUserID) != known.room {
		err = apperr.Unauthorized.New() // of another visitor
	}
	if err == nil && !g.expiry.Renew(&known.lease, claims.ExpiresAt) {
		err = apperr.Unauthorized.New() // the socket's token has expired
	}
	if err != nil {
		refused := g.refusal(ctx, err)
		return renewal{Code: refused.Reason, Message: refused.Message}
	}
	return renewal{OK: true}
}

// verify returns the claims of a token that is valid and not revoked.
func (g *Authenticator) verify(ctx context.Context, token string) (credential.VisitorClaims, error) {
	claims, err := g.tokens.Verify(ctx, token)
	if err != nil {
		return claims, err
	}
	return claims, g.revocations.check(ctx, claims)
}
