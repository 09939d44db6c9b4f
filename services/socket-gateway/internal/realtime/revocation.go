package realtime

// Revoked tokens: each gateway reads the whole stream of revocations once, and refuses tokens until it has.

import (
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/credential"
)

// revocations mirrors the stream of revocations: the earliest valid issue time of each visitor's tokens.
// Until the stream has been read once, no socket is admitted
// (docs/decisions/0005-visitors-identity.md).
type revocations struct {
	read     chan struct{} // closed when the stream has been read to its end once
	readOnce sync.Once

	now func() time.Time

	mu        sync.RWMutex
	kept      time.Duration        // how long the stream keeps a revocation; 0: for ever
	validFrom map[string]time.Time // by chatUserId
}

// newRevocations returns revocations that are not read yet.
func newRevocations(now func() time.Time) *revocations {
	return &revocations{read: make(chan struct{}), now: now, validFrom: make(map[string]time.Time)}
}

// caughtUp is called when the stream has been read to its end, and again after each error.
func (r *revocations) caughtUp(kept time.Duration) {
	r.mu.Lock()
	r.kept = kept
	r.mu.Unlock()
	r.readOnce.Do(func() { close(r.read) })
}

// isCaughtUp reports whether the stream has been read once.
func (r *revocations) isCaughtUp() bool {
	select {
	case <-r.read:
		return true
	default:
		return false
	}
}

// add stores a revocation. It returns false if the visitor has the same or a later one.
func (r *revocations) add(chatUserID string, validFrom time.Time) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !validFrom.After(r.validFrom[chatUserID]) {
		return false
	}
	r.validFrom[chatUserID] = validFrom
	return true
}

// check returns apperr.Unauthorized for a token issued before the visitor's revocation, or so long ago that
// its revocation could have expired, and apperr.Unavailable if the stream is not read within joinTimeout.
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
	outlived := r.kept > 0 && r.now().Sub(claims.IssuedAt) >= r.kept
	if outlived || !claims.IssuedSince(r.validFrom[claims.ChatUserID]) {
		return apperr.Unauthorized.New()
	}
	return nil
}

// revoke refuses a visitor's tokens issued before validFrom from now on and disconnects the visitor's
// sockets. It returns false for a known revocation, and while the stream is read for the first time, since no
// socket is admitted before.
func (a *authenticator) revoke(chatUserID string, validFrom time.Time) bool {
	// add before searching sockets: later joins are refused
	if !a.revocations.add(chatUserID, validFrom) || !a.revocations.isCaughtUp() {
		return false
	}
	for _, room := range a.namespace.Rooms() {
		if strings.HasSuffix(room, "-"+chatUserID) {
			_ = a.namespace.To(room).Local().DisconnectSockets(context.Background(), true) // local: cannot fail
		}
	}
	return true
}

// followRevocations applies the revocations of the stream until ctx is done.
func (g *Gateway) followRevocations(ctx context.Context) {
	g.cfg.Bus.FollowRevocations(ctx, func(chatUserID string, validFrom time.Time) {
		if g.authenticator.revoke(chatUserID, validFrom) && g.cfg.Revoked != nil {
			g.cfg.Revoked(ctx, chatUserID)
		}
	}, g.authenticator.revocations.caughtUp)
}
