package notice_test

import (
	"context"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/notice"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// auditLog keeps one entry for each id, as the store does.
type auditLog struct {
	entries map[string]account.AuditEntry
	err     error
}

func (l *auditLog) AppendAuditEntry(_ context.Context, e account.AuditEntry) error {
	if l.err == nil {
		l.entries[e.ID] = e
	}
	return l.err
}

func TestTheCompanyIsToldOnceADay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		log := &auditLog{entries: map[string]account.AuditEntry{}, err: apperr.Unreachable("store", context.DeadlineExceeded)}
		replicas := []*notice.Board{
			notice.NewBoard(log, time.Now, slog.New(slog.DiscardHandler)), notice.NewBoard(log, time.Now, slog.New(slog.DiscardHandler)), nil,
		}
		tell := func() {
			for _, b := range replicas {
				b.Tell(t.Context(), notice.Notice{CompanyID: "c", AppID: "a", Action: "application.x"})
			}
		}
		tell()
		log.err = nil
		for range 3 {
			tell()
		}
		if len(log.entries) != 1 {
			t.Fatalf("got %d entries of two replicas, want one, also after a failed write", len(log.entries))
		}
		for _, e := range log.entries {
			if e.CompanyID != "c" || e.TargetID != "a" || e.Action != "application.x" {
				t.Errorf("got %+v, want the company's application", e)
			}
		}
		replicas[0].Tell(t.Context(), notice.Notice{CompanyID: "c", AppID: "a", Action: "application.y"})
		time.Sleep(24 * time.Hour)
		tell()
		if len(log.entries) != 3 {
			t.Errorf("got %d entries after another action and on the second day, want 3", len(log.entries))
		}
	})
}
