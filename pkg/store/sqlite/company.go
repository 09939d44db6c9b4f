package sqlite

import (
	"context"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

const companyColumns = `id, name, webhook_retention`

func readCompany(r *row) chat.Company {
	return chat.Company{ID: r.text(), Name: r.text(), WebhookRetention: r.seconds()}
}

func putCompany(c *conn, v chat.Company) error {
	_, err := c.insert(
		orReplace, `companies`, companyColumns,
		v.ID, v.Name, int64(v.WebhookRetention/time.Second),
	)
	return err
}

// Company implements [store.Companies].
func (s *Store) Company(ctx context.Context, id string) (chat.Company, error) {
	return one(
		ctx, s, "reading a company", `SELECT `+companyColumns+` FROM companies WHERE id = ?`, readCompany,
		apperr.CompanyNotFound, id,
	)
}

// PutCompany implements [store.Companies].
func (s *Store) PutCompany(ctx context.Context, company chat.Company) error {
	return update(
		ctx, s, "writing a company",
		func(c *conn) error { return putCompany(c, company) },
	)
}

// Companies implements [store.Companies].
func (s *Store) Companies(ctx context.Context, p store.Page) ([]chat.Company, error) {
	return all(
		ctx, s, "listing companies",
		`SELECT `+companyColumns+` FROM companies WHERE id > ? ORDER BY id LIMIT ?`, readCompany, p.After,
		p.Size(),
	)
}
