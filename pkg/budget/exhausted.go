package budget

import (
	"context"
	"log/slog"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
)

// ActionExhausted is the action of the audit log's entry.
const ActionExhausted = "application.budget-exhausted"

const (
	// toldApplications is the number of applications whose last entry a replica remembers.
	toldApplications = 10_000
	tellTimeout      = 2 * time.Second
)

// Exhausted is called when the visitors of an application have used up its budget or the company's.
type Exhausted func(ctx context.Context, a event.Account)

func (e Exhausted) report(ctx context.Context, a event.Account) {
	if e != nil {
		e(ctx, a)
	}
}

// AuditLog stores the company's audit log. A repeated entry changes nothing.
type AuditLog interface {
	AppendAuditEntry(ctx context.Context, e account.AuditEntry) error
}

// Tell returns an Exhausted that adds one entry a day for each application to the company's audit log, however many replicas there are.
// If the write fails, the next refused event repeats it.
func Tell(entries AuditLog, now func() time.Time, log *slog.Logger) Exhausted {
	told, _ := lru.New[string, time.Time](toldApplications) // fails only for a size of zero
	return func(ctx context.Context, a event.Account) {
		today := now().UTC().Truncate(24 * time.Hour)
		if last, ok := told.Get(a.AppID); ok && last.Equal(today) {
			return
		}
		told.Add(a.AppID, today)
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), tellTimeout)
		defer cancel()
		err := entries.AppendAuditEntry(ctx, account.AuditEntry{
			ID: chat.NoticeID(today, ActionExhausted+"|"+a.AppID), CompanyID: a.CompanyID, At: now().UTC(), User: "Parley",
			Action: ActionExhausted, Target: "application", TargetID: a.AppID,
		})
		if err != nil {
			told.Remove(a.AppID)
		}
		log.WarnContext(ctx, "the visitors of an application have used up its byte budget",
			"companyId", a.CompanyID, "appId", a.AppID, "error", err)
	}
}
