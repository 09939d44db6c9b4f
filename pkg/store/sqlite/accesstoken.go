package sqlite

import (
	"context"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

const tokenColumns = `hash, company_id, name, prefix, created_at, last_used_at, expires_at, revoked_at, created_by`

func readToken(r *row) chat.AccessToken {
	return chat.AccessToken{
		Hash: r.text(), CompanyID: r.text(), Name: r.text(), Prefix: r.text(),
		CreatedAt: r.time(), LastUsedAt: r.time(), ExpiresAt: r.time(), RevokedAt: r.time(), CreatedBy: r.text(),
	}
}

// AccessToken implements [store.AccessTokens].
func (s *Store) AccessToken(ctx context.Context, hash string) (chat.AccessToken, error) {
	return one(ctx, s, "reading an access token", `SELECT `+tokenColumns+` FROM access_tokens WHERE hash = ?`,
		readToken, apperr.AccessTokenNotFound, hash)
}

// CreateAccessToken implements [store.AccessTokens].
func (s *Store) CreateAccessToken(ctx context.Context, t chat.AccessToken) error {
	if err := store.CheckAccessToken(t); err != nil {
		return err
	}
	return update(ctx, s, "creating an access token", func(c *conn) error {
		found, err := c.first(`SELECT 1 FROM companies WHERE id = ?`, func(*row) {}, t.CompanyID)
		if err != nil {
			return err
		}
		if !found {
			return apperr.CompanyNotFound.New()
		}
		taken, err := c.first(`SELECT 1 FROM access_tokens WHERE hash = ?`, func(*row) {}, t.Hash)
		if err != nil {
			return err
		}
		if taken {
			return apperr.AccessTokenExists.New()
		}
		return putToken(c, t)
	})
}

func putToken(c *conn, t chat.AccessToken) error {
	_, err := c.insert(orReplace, `access_tokens`, tokenColumns,
		t.Hash, t.CompanyID, t.Name, t.Prefix, t.CreatedAt, t.LastUsedAt, t.ExpiresAt, t.RevokedAt, t.CreatedBy)
	return err
}

// AccessTokens implements [store.AccessTokens].
func (s *Store) AccessTokens(ctx context.Context, companyID string, p store.Page) ([]chat.AccessToken, error) {
	return listByCreation(ctx, s, "listing access tokens", tokensByCreation, readToken, companyID, p)
}

var tokensByCreation = byCreation{
	table: "access_tokens", columns: tokenColumns, owner: "company_id", id: "hash", missing: apperr.AccessTokenNotFound,
}

// byCreation is a list of an owner's rows in the order of their creation.
type byCreation struct {
	table, columns, owner, id string
	missing                   apperr.Definition // the cursor's row
}

func (l byCreation) first() string {
	return `SELECT ` + l.columns + ` FROM ` + l.table + ` WHERE ` + l.owner + ` = ?1 ORDER BY created_at, ` + l.id + ` LIMIT ?2`
}

func (l byCreation) next() string {
	return `SELECT ` + l.columns + ` FROM ` + l.table + ` WHERE ` + l.owner + ` = ?1 AND (created_at, ` + l.id + `) > (?3, ?4)
		ORDER BY created_at, ` + l.id + ` LIMIT ?2`
}

// cursor finds the row of a page's cursor among the owner's.
func (l byCreation) cursor() string {
	return `SELECT created_at FROM ` + l.table + ` WHERE ` + l.id + ` = ? AND ` + l.owner + ` = ?`
}

func listByCreation[V any](
	ctx context.Context,
	s *Store,
	act string,
	l byCreation,
	decode func(*row) V,
	owner string,
	p store.Page,
) ([]V, error) {
	return scan(ctx, s, act, func(c *conn) ([]V, error) {
		sql, args := l.first(), []any{owner, p.Size()}
		if p.After != "" {
			var at time.Time
			found, err := c.first(l.cursor(), func(r *row) { at = r.time() }, p.After, owner)
			if err != nil || !found {
				return nil, orElse(err, l.missing.New())
			}
			sql, args = l.next(), append(args, at, p.After)
		}
		found := []V{}
		err := c.query(sql, func(r *row) bool {
			found = append(found, decode(r))
			return true
		}, args...)
		return found, err
	})
}

// changeToken keeps a time where its parameter is NULL: min and max of NULL are NULL.
const changeToken = `UPDATE access_tokens SET
	revoked_at   = ifnull(min(ifnull(revoked_at, ?2), ?2), revoked_at),
	expires_at   = ifnull(min(ifnull(expires_at, ?3), ?3), expires_at),
	last_used_at = ifnull(max(ifnull(last_used_at, ?4), ?4), last_used_at)
	WHERE hash = ?1`

// ChangeAccessToken implements [store.AccessTokens].
func (s *Store) ChangeAccessToken(ctx context.Context, hash string, change store.TokenChange) error {
	return update(ctx, s, "changing an access token", func(c *conn) error {
		changed, err := c.exec(changeToken, hash, change.RevokedAt, change.ExpiresAt, change.UsedAt)
		if err == nil && changed == 0 {
			err = apperr.AccessTokenNotFound.New()
		}
		return err
	})
}

// DeleteAccessToken implements [store.AccessTokens].
func (s *Store) DeleteAccessToken(ctx context.Context, hash string) error {
	return update(ctx, s, "deleting an access token", func(c *conn) error {
		changed, err := c.exec(`DELETE FROM access_tokens WHERE hash = ?`, hash)
		if err == nil && changed == 0 {
			err = apperr.AccessTokenNotFound.New()
		}
		return err
	})
}
