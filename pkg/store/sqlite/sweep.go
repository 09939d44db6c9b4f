package sqlite

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/store"
)

const (
	sweepInterval = time.Minute
	sweepBatch    = 500 // rows per transaction; other writes wait for it
)

// sweeper removes expired rows in batches until stopped.
type sweeper struct {
	cancel context.CancelFunc
	ended  sync.WaitGroup
}

func startSweeper(s *Store) *sweeper {
	ctx, cancel := context.WithCancel(context.Background())
	w := &sweeper{cancel: cancel}
	w.ended.Go(func() {
		tick := time.NewTicker(sweepInterval)
		defer tick.Stop()
		for {
			if err := s.sweep(ctx); err != nil && ctx.Err() == nil {
				s.log.LogAttrs(ctx, slog.LevelWarn, "sweeping expired rows failed", slog.String("error", apperr.LogText(err)))
			}
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
	})
	return w
}

func (w *sweeper) stop() {
	w.cancel()
	w.ended.Wait()
}

const (
	expiredRecords = `DELETE FROM idempotency_records WHERE id IN (
		SELECT id FROM idempotency_records WHERE expires_at <= ?1 AND ifnull(leased_until <= ?1, TRUE) LIMIT ?2)`
	expiredFiles      = `DELETE FROM files WHERE id IN (SELECT id FROM files WHERE expires_at <= ?1 LIMIT ?2)`
	expiredDeliveries = `DELETE FROM webhook_deliveries WHERE id IN (SELECT id FROM webhook_deliveries WHERE expires_at <= ?1 LIMIT ?2)`
	expiredSessions   = `DELETE FROM sessions WHERE id IN (SELECT id FROM sessions WHERE expires_at <= ?1 LIMIT ?2)`
	expiredUsage      = `DELETE FROM bot_usage WHERE (app_id, chat_user_id, day) IN (
		SELECT app_id, chat_user_id, day FROM bot_usage WHERE expires_at <= ?1 LIMIT ?2)`
	expiredCalls   = `DELETE FROM bot_calls WHERE id IN (SELECT id FROM bot_calls WHERE expires_at <= ?1 LIMIT ?2)`
	expiredActions = `DELETE FROM bot_actions WHERE id IN (SELECT id FROM bot_actions WHERE expires_at <= ?1 LIMIT ?2)`
	expiredEntries = `DELETE FROM audit WHERE id IN (SELECT id FROM audit WHERE id <= ?1 LIMIT ?2)` // their ids sort by time
)

// sweep removes all expired idempotency records, files, sessions, webhook deliveries, usage, calls and actions of bots, and
// entries of the audit log. Records with a valid lease are kept: they are in use.
func (s *Store) sweep(ctx context.Context) error {
	now := store.UTC(s.now())
	for _, expired := range []struct {
		sql   string
		until any
	}{
		{expiredRecords, now}, {expiredFiles, now}, {expiredSessions, now}, {expiredDeliveries, now},
		{expiredUsage, now}, {expiredCalls, now}, {expiredActions, now},
		{expiredEntries, account.OldestAuditID(now)},
	} {
		for removed := sweepBatch; removed == sweepBatch; {
			var err error
			removed, err = write(ctx, s, "removing expired rows", func(c *conn) (int, error) {
				return c.exec(expired.sql, expired.until, sweepBatch)
			})
			if err != nil {
				return err
			}
		}
	}
	return nil
}
