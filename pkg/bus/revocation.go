package bus

import (
	"context"
	"fmt"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/proto-events/subject"
)

// RevocationAge is the retention of revocations: the maximum lifetime of a visitor token.
const RevocationAge = subject.RevocationAge

const (
	revocationTimeout = 5 * time.Second
	// minRevocationPause and maxRevocationPause limit the retry delay of FollowRevocations.
	minRevocationPause = 50 * time.Millisecond
	maxRevocationPause = time.Second
)

// RevokeVisitorTokens makes all gateways reject the visitor's tokens issued before validFrom and close the visitor's sockets. It also
// applies to gateways that start later. It returns after the stream has stored the revocation. A later call for the same visitor replaces
// it.
func (b *Bus) RevokeVisitorTokens(ctx context.Context, chatUserID string, validFrom time.Time) error {
	if !subject.Valid(chatUserID) {
		return apperr.InvalidEvent.Wrap(fmt.Errorf("%q is not a visitor id", chatUserID))
	}
	ctx, cancel := context.WithTimeout(ctx, revocationTimeout)
	defer cancel()
	_, err := b.js.Publish(ctx, subject.Revocation(chatUserID), []byte(validFrom.UTC().Format(time.RFC3339Nano)))
	if err != nil {
		return apperr.Unreachable("NATS", fmt.Errorf("revoking the tokens of a visitor: %w", err))
	}
	return nil
}

// FollowRevocations calls revoked sequentially for every stored revocation and then for each new one, until ctx is done. It calls
// caughtUp after the stored ones. It waits for NATS and the stream, and restarts after an error, so revoked may be called repeatedly for
// a revocation.
func (b *Bus) FollowRevocations(ctx context.Context, revoked func(chatUserID string, validFrom time.Time), caughtUp func()) {
	for pause := minRevocationPause; ctx.Err() == nil; pause = min(2*pause, maxRevocationPause) {
		for r, err := range b.read(ctx, Span{Stream: subject.Revocations, Follow: true}) {
			if err != nil {
				b.log.DebugContext(ctx, "reading revocations failed, retrying", "error", err)
				break
			}
			pause = minRevocationPause
			if chatUserID, validFrom, ok := readRevocation(r.Delivery); ok {
				revoked(chatUserID, validFrom)
			}
			if r.pending == 0 {
				caughtUp()
			}
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

func readRevocation(d Delivery) (chatUserID string, validFrom time.Time, ok bool) {
	chatUserID, ok = subject.ParseRevocation(d.Subject)
	validFrom, err := time.Parse(time.RFC3339Nano, string(d.Data))
	return chatUserID, validFrom, ok && err == nil
}
