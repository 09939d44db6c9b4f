// Package notice tells companies in their audit logs that something of an application is refused, such as
// messages of its visitors: once a day, however often it happens.
package notice

import (
	"context"
	"log/slog"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/chat"
)

const (
	// remembered is the number of notices that a replica remembers.
	remembered  = 10_000
	tellTimeout = 2 * time.Second
)

// Notice is what a company should know.
type Notice struct {
	CompanyID string
	AppID     string
	Action    string // of the audit log's entry
	Text      string // for the operator's log
}

// AuditLog stores the company's audit log. A repeated entry changes nothing.
type AuditLog interface {
	AppendAuditEntry(ctx context.Context, e account.AuditEntry) error
}

// Board adds the notices. It is safe for concurrent use. A nil Board tells nobody.
type Board struct {
	entries AuditLog
	now     func() time.Time
	log     *slog.Logger
	told    *lru.Cache[string, time.Time] // by application and action: the day of the last entry
}

// NewBoard returns a board.
func NewBoard(entries AuditLog, now func() time.Time, log *slog.Logger) *Board {
	told, err := lru.New[string, time.Time](remembered)
	if err != nil {
		panic("notice: " + err.Error()) // only for a size that is not positive
	}
	return &Board{entries: entries, now: now, log: log, told: told}
}

// Tell adds an entry to the company's audit log: one a day for each action and application, however many
// replicas there are. If the write fails, the next call repeats it.
func (b *Board) Tell(ctx context.Context, n Notice) {
	if b == nil {
		return
	}
	today := b.now().UTC().Truncate(24 * time.Hour)
	key := n.Action + "|" + n.AppID
	if last, ok := b.told.Get(key); ok && last.Equal(today) {
		return
	}
	b.told.Add(key, today)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tellTimeout)
	defer cancel()
	err := b.entries.AppendAuditEntry(ctx, account.AuditEntry{
		ID:        chat.NoticeID(today, key),
		CompanyID: n.CompanyID,
		At:        b.now().UTC(),
		User:      "Parley",
		Action:    n.Action,
		Target:    "application",
		TargetID:  n.AppID,
	})
	if err != nil {
		b.told.Remove(key)
	}
	b.log.WarnContext(
		ctx, "an application has reached a bound", "bound", n.Text, "companyId", n.CompanyID, "appId",
		n.AppID, "error", err,
	)
}
