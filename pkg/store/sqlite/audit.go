package sqlite

import (
	"context"
	"encoding/json"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/store"
)

const auditColumns = `id, company_id, at, user_id, user, action, target, target_id, before, after`

func readAuditEntry(r *row) account.AuditEntry {
	return account.AuditEntry{
		ID:        r.text(),
		CompanyID: r.text(),
		At:        r.time(),
		UserID:    r.text(),
		User:      r.text(),
		Action:    r.text(),
		Target:    r.text(),
		TargetID:  r.text(),
		Before:    jsonOrNil(r.text()),
		After:     jsonOrNil(r.text()),
	}
}

func jsonOrNil(text string) json.RawMessage {
	if text == "" {
		return nil
	}
	return json.RawMessage(text)
}

func writeAuditEntry(c *conn, verb string, e account.AuditEntry) error {
	_, err := c.insert(
		verb, `audit`, auditColumns,
		e.ID, e.CompanyID, e.At, e.UserID, e.User, e.Action, e.Target, e.TargetID, e.Before, e.After,
	)
	return err
}

func replaceAuditEntry(c *conn, e account.AuditEntry) error {
	return writeAuditEntry(c, orReplace, e)
}

// AppendAuditEntry implements [store.AuditLog].
func (s *Store) AppendAuditEntry(ctx context.Context, e account.AuditEntry) error {
	return update(ctx, s, "writing the audit log", func(c *conn) error {
		return writeAuditEntry(c, orIgnore, e)
	})
}

// AuditEntries implements [store.AuditLog].
func (s *Store) AuditEntries(ctx context.Context, f store.AuditFilter, p store.Page) ([]account.AuditEntry, error) {
	sql, args := auditList(f, p, account.OldestAuditID(s.now()))
	return all(ctx, s, "reading the audit log", sql, readAuditEntry, args...)
}

// auditList returns the query of a list; the target is the more selective condition.
func auditList(f store.AuditFilter, p store.Page, oldest string) (sql string, args []any) {
	sql, args = `SELECT `+auditColumns+` FROM audit WHERE id > ?`, []any{oldest}
	company := " AND company_id = ?"
	if f.TargetID != "" {
		sql, args = sql+" AND target_id = ?", append(args, f.TargetID)
		company = " AND +company_id = ?"
	}
	if f.CompanyID != "" {
		sql, args = sql+company, append(args, f.CompanyID)
	}
	if p.After != "" {
		sql, args = sql+" AND id < ?", append(args, p.After)
	}
	return sql + " ORDER BY id DESC LIMIT ?", append(args, p.Size())
}
