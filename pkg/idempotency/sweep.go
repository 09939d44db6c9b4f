package idempotency

import (
	"context"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/store"
)

const (
	sweepEvery = time.Hour
	sweepRetry = 10 * time.Second // after an error, such as MongoDB's being away at the start
	sweepBatch = 1000
)

// Sweep has expired claims removed until ctx is done: by MongoDB where it can, else by itself, slowly. An expired claim that is
// still there is none, so it does not matter when.
func (d *Desk) Sweep(ctx context.Context) error {
	for wait := time.Duration(0); ; {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		able, err := d.claims.ExpireClaims(ctx)
		if err == nil && able {
			<-ctx.Done()
			return nil
		}
		if err == nil {
			err = d.sweep(ctx)
		}
		wait = sweepEvery
		if err != nil {
			wait = sweepRetry
		}
	}
}

// sweep removes what has expired. Each claim is leased first, like by anybody who would begin it anew.
func (d *Desk) sweep(ctx context.Context) error {
	for {
		expired, err := d.claims.ExpiredClaims(ctx, d.now(), sweepBatch)
		if err != nil {
			return err
		}
		left := 0
		for _, c := range expired {
			removed, err := d.remove(ctx, c)
			if err != nil {
				return err
			}
			if !removed {
				left++
			}
		}
		if len(expired) < sweepBatch || left > 0 { // what is left is in somebody's hands, and is looked at the next time
			return nil
		}
	}
}

func (d *Desk) remove(ctx context.Context, seen store.Claim) (removed bool, err error) {
	if d.now().Before(seen.LeasedUntil) {
		return false, nil
	}
	before, err := d.claims.LeaseClaim(ctx, seen.ID, d.now().Add(Lease))
	switch {
	case apperr.Is(err, apperr.NotFound):
		return true, nil
	case err != nil:
		return false, err
	case before.Leases != seen.Leases || !before.ExpiresAt.Equal(seen.ExpiresAt):
		return false, nil
	}
	return true, d.claims.DeleteClaim(ctx, seen.ID)
}
