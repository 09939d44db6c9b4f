package sqlite

import (
	"context"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

func readCompany(r *row) chat.Company { return chat.Company{ID: r.text(), Name: r.text()} }

// Company implements [store.Companies].
func (s *Store) Company(ctx context.Context, id string) (chat.Company, error) {
	return one(ctx, s, "reading a company", `SELECT id, name FROM companies WHERE id = ?`, readCompany, store.CompanyNotFound, id)
}

// PutCompany implements [store.Companies].
func (s *Store) PutCompany(ctx context.Context, company chat.Company) error {
	return update(ctx, s, "writing a company", func(c *conn) error {
		_, err := c.exec(`INSERT OR REPLACE INTO companies (id, name) VALUES (?, ?)`, company.ID, company.Name)
		return err
	})
}

// Companies implements [store.Companies].
func (s *Store) Companies(ctx context.Context, p store.Page) ([]chat.Company, error) {
	return all(ctx, s, "listing companies", `SELECT id, name FROM companies WHERE id > ? ORDER BY id LIMIT ?`, readCompany, p.After, limit(p.Limit))
}

// limit is a limit of which 0 means none.
func limit(n int) int {
	if n <= 0 {
		return -1
	}
	return n
}
