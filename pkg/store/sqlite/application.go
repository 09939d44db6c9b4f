package sqlite

import (
	"context"
	"encoding/json"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

const applicationColumns = `id, company_id, provider, bot_name, name, widget_configs, allowed_origins, file_retention, verification, identity_secrets, support`

const selectApplication = `SELECT ` + applicationColumns + ` FROM applications WHERE id = ?`

func readApplication(r *row) chat.Application {
	return chat.Application{
		ID: r.text(), CompanyID: r.text(), Provider: r.text(), BotName: r.text(), Name: r.text(),
		WidgetConfigs: json.RawMessage(r.bytes()), AllowedOrigins: list[string](r),
		FileRetention: r.seconds(),
		Identity: chat.IdentityVerification{
			Mode:    chat.Verification(r.text()),
			Secrets: secretsOf(list[identitySecret](r)),
		},
		Support: store.ParseSupport(r.text()),
	}
}

// identitySecret is a [chat.IdentitySecret] in the JSON of its column.
type identitySecret struct {
	Value     string    `json:"value"`
	CreatedAt time.Time `json:"createdAt"`
	ExpiresAt time.Time `json:"expiresAt"`
}

func secretsOf(records []identitySecret) (secrets []chat.IdentitySecret) {
	for _, r := range records {
		secrets = append(
			secrets,
			chat.IdentitySecret{Value: chat.Secret(r.Value), CreatedAt: r.CreatedAt, ExpiresAt: r.ExpiresAt},
		)
	}
	return secrets
}

func secretRecords(secrets []chat.IdentitySecret) (records []identitySecret) {
	for _, s := range secrets {
		records = append(records, identitySecret{
			Value: string(s.Value), CreatedAt: store.UTC(s.CreatedAt), ExpiresAt: store.UTC(s.ExpiresAt),
		})
	}
	return records
}

// Application implements [store.Applications].
func (s *Store) Application(ctx context.Context, id string) (chat.Application, error) {
	return one(ctx, s, "reading an application", selectApplication, readApplication, apperr.ApplicationNotFound, id)
}

// replaceApplication writes all columns, also those that [Store.PutApplication] keeps.
func replaceApplication(c *conn, a chat.Application) error {
	_, err := c.insert(
		orReplace, `applications`, applicationColumns,
		a.ID, a.CompanyID, a.Provider, a.BotName, a.Name, a.WidgetConfigs, listText(a.AllowedOrigins),
		int64(a.FileRetention/time.Second), string(a.Identity.Mode), listText(secretRecords(a.Identity.Secrets)),
		store.SupportText(a.Support),
	)
	return err
}

// PutApplication implements [store.Applications].
func (s *Store) PutApplication(ctx context.Context, a chat.Application) error {
	origins, err := store.CheckApplication(a)
	if err != nil {
		return err
	}
	return update(ctx, s, "writing an application", func(c *conn) error {
		_, err := c.exec(
			`
			INSERT INTO applications (id, company_id, provider, bot_name, name, widget_configs, allowed_origins, file_retention)
			VALUES (?, ?, ?, ?, ?, ?, ?, ?)
			ON CONFLICT (id) DO UPDATE SET
				company_id = excluded.company_id, provider = excluded.provider, bot_name = excluded.bot_name, name = excluded.name,
				widget_configs = excluded.widget_configs, allowed_origins = excluded.allowed_origins,
				file_retention = excluded.file_retention`,
			a.ID,
			a.CompanyID,
			a.Provider,
			a.BotName,
			a.Name,
			a.WidgetConfigs,
			listText(origins),
			int64(a.FileRetention/time.Second),
		)
		return err
	})
}

// Applications implements [store.Applications].
func (s *Store) Applications(ctx context.Context, companyID string, p store.Page) ([]chat.Application, error) {
	const from = `SELECT ` + applicationColumns + ` FROM applications WHERE id > ?`
	return listOfCompany(ctx, s, "listing applications", from, readApplication, companyID, p)
}

// listOfCompany reads a page of a company's rows, or of all if companyID is empty.
func listOfCompany[V any](
	ctx context.Context,
	s *Store,
	act, from string,
	decode func(*row) V,
	companyID string,
	p store.Page,
) ([]V, error) {
	if companyID == "" {
		return all(ctx, s, act, from+` ORDER BY id LIMIT ?`, decode, p.After, p.Size())
	}
	return all(ctx, s, act, from+` AND company_id = ? ORDER BY id LIMIT ?`, decode, p.After, companyID, p.Size())
}

// ChangeApplication implements [store.Applications]. There is one writer, so that nothing changes between the read and
// the write.
func (s *Store) ChangeApplication(ctx context.Context, id string, change store.ApplicationChange) error {
	return update(ctx, s, "changing an application", func(c *conn) error {
		var a chat.Application
		found, err := c.first(selectApplication, func(r *row) { a = readApplication(r) }, id)
		if err != nil || !found {
			return orElse(err, apperr.ApplicationNotFound.New())
		}
		if a, err = change.Apply(a); err != nil {
			return err
		}
		_, err = c.exec(
			`UPDATE applications SET verification = ?2, identity_secrets = ?3, support = ?4 WHERE id = ?1`,
			id, string(a.Identity.Mode), listText(secretRecords(a.Identity.Secrets)), store.SupportText(a.Support),
		)
		return err
	})
}
