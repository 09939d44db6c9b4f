package realtime

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/credential"
)

// revocations is what the stream of revocations holds: from when on a visitor's tokens are valid. Until it has been read once,
// no socket is admitted (docs/decisions/0017-visitor-token-revocation.md).
type revocations struct {
	read     chan struct{} // closed when the stream has been read
	readOnce sync.Once

	mu        sync.RWMutex
	validFrom map[string]time.Time // by chatUserId
}

func newRevocations() *revocations {
	return &revocations{read: make(chan struct{}), validFrom: make(map[string]time.Time)}
}

func (r *revocations) caughtUp() { r.readOnce.Do(func() { close(r.read) }) }

func (r *revocations) isCaughtUp() bool {
	select {
	case <-r.read:
		return true
	default:
		return false
	}
}

// add reports whether the revocation is news.
func (r *revocations) add(chatUserID string, validFrom time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !validFrom.After(r.validFrom[chatUserID]) {
		return false
	}
	r.validFrom[chatUserID] = validFrom
	return true
}

// check refuses a token that was issued before its visitor's were revoked. It returns Unavailable while that cannot be told.
func (r *revocations) check(ctx context.Context, claims credential.VisitorClaims) error {
	ctx, cancel := context.WithTimeout(ctx, joinTimeout)
	defer cancel()
	select {
	case <-r.read:
	case <-ctx.Done():
		return apperr.Unreachable("NATS", errors.New("the revocations have not been read yet"))
	}
	r.mu.RLock()
	defer r.mu.RUnlock()
	if !claims.IssuedSince(r.validFrom[claims.ChatUserID]) {
		return apperr.Unauthorized.New()
	}
	return nil
}

// revoke ends the sockets of a visitor whose tokens are revoked, and refuses what was issued before validFrom. It reports whether
// that is news to sockets that may be there.
func (g *Authenticator) revoke(chatUserID string, validFrom time.Time) bool {
	if !g.revocations.add(chatUserID, validFrom) || !g.revocations.isCaughtUp() { // before looking for sockets: who joins later is refused
		return false
	}
	for _, room := range g.namespace.Rooms() {
		if strings.HasSuffix(room, "-"+chatUserID) {
			_ = g.namespace.To(room).Local().DisconnectSockets(context.Background(), true) // does not fail here
		}
	}
	return true
}

// followRevocations reads the stream until ctx is done.
func (g *Gateway) followRevocations(ctx context.Context) {
	g.cfg.Bus.FollowRevocations(ctx, func(chatUserID string, validFrom time.Time) {
		if g.authenticator.revoke(chatUserID, validFrom) && g.cfg.Revoked != nil {
			g.cfg.Revoked(ctx, chatUserID)
		}
	}, g.authenticator.revocations.caughtUp)
}
