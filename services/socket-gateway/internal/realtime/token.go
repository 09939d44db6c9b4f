package realtime

// Tokens of sockets that are connected: clients renew them before they expire.

import (
	"context"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/socketio"
)

const (
	// eventToken is sent by a client with a new token of the same visitor; the acknowledgement has {"ok"}.
	eventToken = "token"

	renewTimeout = 5 * time.Second

	// maxEarlyRenewals is the number of consecutive renewals above renewRate after which the socket is disconnected.
	maxEarlyRenewals = 10
)

// renewRate limits the renewals of one socket, because each verifies a signature: three at once, then one
// every ten seconds. A client renews once in the lifetime of a token.
var renewRate = config.Rate{Count: 3, Per: 30 * time.Second}

// renew handles eventToken. It disconnects a socket that goes on with early renewals.
func (a *authenticator) renew(s *socketio.Socket, args socketio.Args, ack socketio.Ack) {
	known := s.Data().(*socketState)
	ctx, cancel := context.WithTimeout(context.Background(), renewTimeout)
	defer cancel()
	if a.renewals.Take(ctx, s.ID()).Allowed {
		known.earlyRenewals = 0
		result, answer := a.renewed(ctx, known, args.String(0))
		a.metrics.clientEvent(eventToken, result)
		_ = ack(answer) // the client may have disconnected or not requested an acknowledgement
		return
	}
	known.earlyRenewals++
	a.metrics.clientEvent(eventToken, resultLimited)
	_ = ack(tooMany)
	if known.earlyRenewals == maxEarlyRenewals {
		s.Disconnect(true)
	}
}

// renewed extends the lease of a socket if the token is valid and of the same visitor.
func (a *authenticator) renewed(
	ctx context.Context,
	known *socketState,
	token string,
) (result string, answer eventAnswer) {
	claims, err := a.verify(ctx, token)
	if err == nil && Room(claims.AppID, claims.ChatUserID) != known.room {
		err = apperr.Unauthorized.New() // of another visitor
	}
	if err == nil && !a.expiry.renew(&known.lease, claims.ExpiresAt) {
		err = apperr.Unauthorized.New() // the socket's token has expired
	}
	if err == nil {
		return resultAccepted, eventAnswer{OK: true}
	}
	refused := a.refusal(ctx, err)
	result = resultFailed
	if refused.Code == apperr.Unauthenticated {
		result = resultInvalid
	}
	return result, eventAnswer{Code: refused.Reason, Message: refused.Message}
}

// verify returns the claims of a token that is valid and not revoked.
func (a *authenticator) verify(ctx context.Context, token string) (credential.VisitorClaims, error) {
	claims, err := a.tokens.Verify(ctx, token)
	if err != nil {
		return claims, err
	}
	return claims, a.revocations.check(ctx, claims)
}
