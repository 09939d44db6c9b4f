package bus

// The stream REVOCATIONS: pkg/admin writes revocations of tokens, gateways follow them.

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/proto-events/subject"
)

const (
	revocationTimeout = 5 * time.Second
	// minRevocationPause and maxRevocationPause limit the retry delay of FollowRevocations.
	minRevocationPause = 50 * time.Millisecond
	maxRevocationPause = time.Second

	// A company's revocations take at most a tenth of the stream, so that no company uses it up: companyShare
	// messages of about revocationBytes.
	revocationBytes = 160
	companyShare    = 10
)

// RevokeVisitorTokens makes all gateways reject the visitor's tokens issued before validFrom and close the
// visitor's sockets. It also applies to gateways that start later. It returns after the stream has stored the
// revocation. A later call for the same visitor replaces it. It returns apperr.TooMany if the company has
// revoked the tokens of too many visitors.
func (b *Bus) RevokeVisitorTokens(ctx context.Context, companyID, chatUserID string, validFrom time.Time) error {
	if !subject.Valid(companyID) || !subject.Valid(chatUserID) {
		return apperr.InvalidEvent.Wrap(fmt.Errorf("%q of %q is not a visitor id", chatUserID, companyID))
	}
	ctx, cancel := context.WithTimeout(ctx, revocationTimeout)
	defer cancel()
	if err := b.admitRevocation(ctx, companyID, chatUserID); err != nil {
		return err
	}
	_, err := b.js.Publish(
		ctx,
		subject.Revocation(companyID, chatUserID),
		[]byte(validFrom.UTC().Format(time.RFC3339Nano)),
	)
	if err == nil {
		err = b.Sync(ctx, subject.Revocations)
	}
	if err != nil {
		return apperr.Unreachable("NATS", fmt.Errorf("revoking the tokens of a visitor: %w", err))
	}
	return nil
}

// admitRevocation returns apperr.TooMany if a new revocation would exceed the company's share of the stream.
// Concurrent calls may exceed it by their number.
func (b *Bus) admitRevocation(ctx context.Context, companyID, chatUserID string) error {
	stream, err := b.js.Stream(ctx, subject.Revocations)
	if err != nil {
		return readError(subject.Revocations, err)
	}
	stored, err := b.countRevocations(ctx, stream, companyID)
	if err != nil {
		return readError(subject.Revocations, err)
	}
	allowed := uint64(stream.CachedInfo().Config.MaxBytes / revocationBytes / companyShare)
	if stored < allowed {
		return nil
	}
	_, err = stream.GetLastMsgForSubject(ctx, subject.Revocation(companyID, chatUserID))
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return apperr.New(
			apperr.TooMany,
			"TOO_MANY_REVOCATIONS",
			fmt.Sprintf(
				"The company has revoked the tokens of %d visitors within their lifetime; more are not possible",
				stored,
			),
		)
	}
	if err != nil {
		return readError(subject.Revocations, err)
	}
	return nil // it replaces the visitor's earlier one
}

// countRevocations returns the number of visitors of a company with a stored revocation. The server counts
// them when it creates a consumer.
func (b *Bus) countRevocations(ctx context.Context, stream jetstream.Stream, companyID string) (uint64, error) {
	consumer, err := stream.CreateConsumer(ctx, jetstream.ConsumerConfig{
		FilterSubject:     subject.Revocation(companyID, "*"),
		AckPolicy:         jetstream.AckNonePolicy,
		MemoryStorage:     true,
		InactiveThreshold: readerTTL,
	})
	if err != nil {
		return 0, err
	}
	info := consumer.CachedInfo()
	return info.NumPending, stream.DeleteConsumer(ctx, info.Name)
}

// FollowRevocations calls revoked sequentially for every stored revocation and then for each new one, until
// ctx is done. It calls caughtUp after the stored ones, with the time for which the stream keeps revocations.
// It waits for NATS and the stream, and restarts after an error, so revoked may be called repeatedly for a
// revocation.
func (b *Bus) FollowRevocations(
	ctx context.Context, revoked func(chatUserID string, validFrom time.Time), caughtUp func(kept time.Duration),
) {
	for pause := minRevocationPause; ctx.Err() == nil; pause = min(2*pause, maxRevocationPause) {
		err := b.followRevocations(ctx, func(chatUserID string, validFrom time.Time) {
			pause = minRevocationPause
			revoked(chatUserID, validFrom)
		}, caughtUp)
		if err != nil {
			b.log.DebugContext(ctx, "reading revocations failed, retrying", "error", err)
		}
		_ = sleep(ctx, pause)
	}
}

// followRevocations is FollowRevocations until the first error.
func (b *Bus) followRevocations(
	ctx context.Context, revoked func(chatUserID string, validFrom time.Time), caughtUp func(kept time.Duration),
) error {
	stream, err := b.js.Stream(ctx, subject.Revocations)
	if err != nil {
		return err
	}
	kept := stream.CachedInfo().Config.MaxAge
	for r, err := range b.read(ctx, Range{Stream: subject.Revocations, Follow: true}) {
		if err != nil {
			return err
		}
		if chatUserID, validFrom, ok := readRevocation(r.Delivery); ok {
			revoked(chatUserID, validFrom)
		}
		if r.pending == 0 {
			caughtUp(kept)
		}
	}
	return nil
}

func readRevocation(d Delivery) (chatUserID string, validFrom time.Time, ok bool) {
	chatUserID, ok = subject.ParseRevocation(d.Subject)
	validFrom, err := time.Parse(time.RFC3339Nano, string(d.Data))
	return chatUserID, validFrom, ok && err == nil
}
