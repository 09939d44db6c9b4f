package sqlite

import (
	"context"
	"encoding/json"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/store"
)

const auditColumns = `id, company_id, at, user_id, user, action, target, target_id, before, after`

func readAuditRecord(r *row) store.AuditRecord {
	return store.AuditRecord{
		ID:        r.text(),
		CompanyID: r.text(),
		At:        r.time(),
		UserID:    r.text(),
		User:      r.text(),
		Action:    r.text(),
		Target:    r.text(),
		TargetID:  r.text(),
		Before:    r.text(), After: r.text(),
	}
}

func readAuditEntry(r *row) account.AuditEntry {
	d := readAuditRecord(r)
	return account.AuditEntry{
		ID:        d.ID,
		CompanyID: d.CompanyID,
		At:        d.At,
		UserID:    d.UserID,
		User:      d.User,
		Action:    d.Action,
		Target:    d.Target,
		TargetID:  d.TargetID,
		Before:    jsonOrNil(d.Before), After: jsonOrNil(d.After),
	}
}

func jsonOrNil(text string) json.RawMessage {
	if text == "" {
		return nil
	}
	return json.RawMessage(text)
}

func writeAuditRecord(c *conn, insert string, d store.AuditRecord) error {
	_, err := c.exec(insert+` INTO audit (`+auditColumns+`) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		d.ID, d.CompanyID, d.At, d.UserID, d.User, d.Action, d.Target, d.TargetID, d.Before, d.After)
	return err
}

// AppendAuditEntry implements [store.AuditLog].
func (s *Store) AppendAuditEntry(ctx context.Context, e account.AuditEntry) error {
	return update(ctx, s, "writing the audit log", func(c *conn) error {
		return writeAuditRecord(c, `INSERT OR IGNORE`, store.AuditRecord{
			ID:        e.ID,
			CompanyID: e.CompanyID,
			At:        e.At,
			UserID:    e.UserID,
			User:      e.User,
			Action:    e.Action,
			Target:    e.Target,
			TargetID:  e.TargetID,
			Before:    string(e.Before), After: string(e.After),
		})
	})
}

// AuditEntries implements [store.AuditLog].
func (s *Store) AuditEntries(ctx context.Context, f store.AuditFilter, p store.Page) ([]account.AuditEntry, error) {
	sql, args := auditList(f, p)
	return all(ctx, s, "reading the audit log", sql, readAuditEntry, args...)
}

// auditList returns the query of a list; the target is the more selective condition.
func auditList(f store.AuditFilter, p store.Page) (sql string, args []any) {
	sql = `SELECT ` + auditColumns + ` FROM audit WHERE TRUE`
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
