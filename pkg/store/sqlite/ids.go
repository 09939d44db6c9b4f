package sqlite

import (
	"context"

	"github.com/parley-chat/parley/pkg/store"
)

// The statements of [Store.IDs] read an index and no rows.
const (
	applicationsOfCompany = `SELECT id FROM applications WHERE company_id = ? AND id > ? ORDER BY id LIMIT ?`
	templatesOfCompany    = `SELECT id FROM templates WHERE company_id = ? AND id > ? ORDER BY id LIMIT ?`
	filesOfVisitor        = `SELECT id FROM files WHERE chat_user_id = ? AND id > ? ORDER BY id LIMIT ?`
)

// IDs implements [store.Store].
func (s *Store) IDs(ctx context.Context, of store.IDFilter, p store.Page) ([]string, error) {
	sql, owner := filesOfVisitor, of.FilesOf
	switch {
	case of.ApplicationsOf != "":
		sql, owner = applicationsOfCompany, of.ApplicationsOf
	case of.TemplatesOf != "":
		sql, owner = templatesOfCompany, of.TemplatesOf
	}
	text := func(r *row) string { return r.text() }
	return all(ctx, s, "listing ids", sql, text, owner, p.After, p.Size())
}
