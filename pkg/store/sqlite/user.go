package sqlite

import (
	"context"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/store"
)

const userColumns = `id, email, name, role, company_id, created_at, password_hash, disabled, last_sign_in_at, totp_secret, totp_pending,
	totp_step, recovery_codes, issuer, subject, device_key, invitation_hash, invitation_expires_at, revision`

func readUser(r *row) account.User {
	return account.User{
		ID: r.text(), Email: r.text(), Name: r.text(), Role: account.Role(r.text()), CompanyID: r.text(), CreatedAt: r.time(),
		PasswordHash:  r.text(),
		Disabled:      r.bool(),
		LastSignInAt:  r.time(),
		TOTPSecret:    r.text(),
		TOTPPending:   r.text(),
		TOTPStep:      r.int(),
		RecoveryCodes: r.text(), Issuer: r.text(), Subject: r.text(), DeviceKey: r.text(),
		InvitationHash: r.text(), InvitationExpiresAt: r.time(), Revision: r.int(),
	}
}

func putUser(c *conn, u account.User) error {
	_, err := c.insert(
		orReplace, `users`, userColumns,
		u.ID, u.Email, u.Name, string(u.Role), u.CompanyID, u.CreatedAt, u.PasswordHash, u.Disabled,
		u.LastSignInAt, u.TOTPSecret, u.TOTPPending, u.TOTPStep, u.RecoveryCodes, u.Issuer, u.Subject,
		u.DeviceKey, u.InvitationHash, u.InvitationExpiresAt, u.Revision,
	)
	return err
}

// User implements [store.Users].
func (s *Store) User(ctx context.Context, id string) (account.User, error) {
	return one(
		ctx, s, "reading a user", `SELECT `+userColumns+` FROM users WHERE id = ?`, readUser,
		apperr.UserNotFound, id,
	)
}

// CreateUser implements [store.Users].
func (s *Store) CreateUser(ctx context.Context, u account.User) error {
	if err := u.Check(); err != nil {
		return err
	}
	return update(ctx, s, "creating a user", func(c *conn) error {
		taken, err := c.first(`SELECT 1 FROM users WHERE id = ?`, func(*row) {}, u.ID)
		if err != nil {
			return err
		}
		if taken {
			return apperr.EmailTaken.New()
		}
		return putUser(c, u)
	})
}

// UpdateUser implements [store.Users].
func (s *Store) UpdateUser(ctx context.Context, u account.User) error {
	return update(ctx, s, "changing a user", func(c *conn) error {
		if err := checkRevision(c, `users`, u.ID, u.Revision, apperr.UserNotFound); err != nil {
			return err
		}
		u.Revision++
		return putUser(c, u)
	})
}

// checkRevision returns missing without the row, and Conflict with the reason CHANGED_MEANWHILE if its revision is
// another one.
func checkRevision(c *conn, table, id string, revision int64, missing apperr.Definition) error {
	var stored int64
	found, err := c.first(`SELECT revision FROM `+table+` WHERE id = ?`, func(r *row) { stored = r.int() }, id)
	switch {
	case err != nil:
		return err
	case !found:
		return missing.New()
	case stored != revision:
		return apperr.ChangedMeanwhile.New()
	}
	return nil
}

// DeleteUser implements [store.Users].
func (s *Store) DeleteUser(ctx context.Context, id string) error {
	return update(ctx, s, "deleting a user", func(c *conn) error {
		if _, err := c.exec(`DELETE FROM sessions WHERE user_id = ?`, id); err != nil {
			return err
		}
		changed, err := c.exec(`DELETE FROM users WHERE id = ?`, id)
		if err == nil && changed == 0 {
			err = apperr.UserNotFound.New()
		}
		return err
	})
}

// Users implements [store.Users].
func (s *Store) Users(ctx context.Context, companyID string, p store.Page) ([]account.User, error) {
	const from = `SELECT ` + userColumns + ` FROM users WHERE id > ?`
	return listOfCompany(ctx, s, "listing users", from, readUser, companyID, p)
}

const sessionColumns = `id, user_id, created_at, last_seen_at, expires_at, address, user_agent`

func readSession(r *row) account.Session {
	return account.Session{
		ID:         r.text(),
		UserID:     r.text(),
		CreatedAt:  r.time(),
		LastSeenAt: r.time(),
		ExpiresAt:  r.time(),
		Address:    r.text(),
		UserAgent:  r.text(),
	}
}

// Session implements [store.Sessions].
func (s *Store) Session(ctx context.Context, id string) (account.Session, error) {
	return one(
		ctx, s, "reading a session", `SELECT `+sessionColumns+` FROM sessions WHERE id = ?`, readSession,
		apperr.SessionNotFound, id,
	)
}

// CreateSession implements [store.Sessions].
func (s *Store) CreateSession(ctx context.Context, d account.Session) error {
	return update(ctx, s, "creating a session", func(c *conn) error {
		_, err := c.insert(orReplace, `sessions`, sessionColumns,
			d.ID, d.UserID, d.CreatedAt, d.LastSeenAt, d.ExpiresAt, d.Address, d.UserAgent)
		return err
	})
}

// SessionUsed implements [store.Sessions].
func (s *Store) SessionUsed(ctx context.Context, id string, at, expiresAt time.Time) error {
	return update(ctx, s, "noting a session's use", func(c *conn) error {
		changed, err := c.exec(
			`UPDATE sessions SET last_seen_at = max(last_seen_at, ?2), expires_at = max(expires_at, ?3) WHERE id = ?1`,
			id, at, expiresAt,
		)
		if err == nil && changed == 0 {
			err = apperr.SessionNotFound.New()
		}
		return err
	})
}

// UserSessions implements [store.Sessions].
func (s *Store) UserSessions(ctx context.Context, userID string, p store.Page) ([]account.Session, error) {
	return listByCreation(ctx, s, "listing sessions", sessionsByCreation, readSession, userID, p)
}

var sessionsByCreation = byCreation{
	table: "sessions", columns: sessionColumns, owner: "user_id", id: "id", missing: apperr.SessionNotFound,
}

// DeleteSessions implements [store.Sessions].
func (s *Store) DeleteSessions(ctx context.Context, of store.SessionFilter) error {
	sql, value := `DELETE FROM sessions WHERE id = ?`, of.ID
	if of.UserID != "" {
		sql, value = `DELETE FROM sessions WHERE user_id = ?`, of.UserID
	}
	return update(ctx, s, "deleting sessions", func(c *conn) error {
		_, err := c.exec(sql, value)
		return err
	})
}
