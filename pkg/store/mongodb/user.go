package mongodb

import (
	"context"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/store"
)

type userDocument struct {
	ID                  string       `bson:"_id"`
	Email               string       `bson:"email"`
	Name                string       `bson:"name"`
	Role                account.Role `bson:"role"`
	CompanyID           string       `bson:"companyId"`
	CreatedAt           time.Time    `bson:"createdAt"`
	PasswordHash        string       `bson:"passwordHash"`
	Disabled            bool         `bson:"disabled"`
	LastSignInAt        time.Time    `bson:"lastSignInAt,omitempty"`
	TOTPSecret          string       `bson:"totpSecret,omitempty"`
	TOTPPending         string       `bson:"totpPending,omitempty"`
	TOTPStep            int64        `bson:"totpStep,omitempty"`
	RecoveryCodes       string       `bson:"recoveryCodes,omitempty"`
	Issuer              string       `bson:"issuer,omitempty"`
	Subject             string       `bson:"subject,omitempty"`
	DeviceKey           string       `bson:"deviceKey,omitempty"`
	InvitationHash      string       `bson:"invitationHash,omitempty"`
	InvitationExpiresAt time.Time    `bson:"invitationExpiresAt,omitempty"`
	Revision            int64        `bson:"revision"`
}

func (d userDocument) user() account.User {
	d.CreatedAt = store.UTC(d.CreatedAt)
	d.LastSignInAt = store.UTC(d.LastSignInAt)
	d.InvitationExpiresAt = store.UTC(d.InvitationExpiresAt)
	return account.User(d)
}

func userDocumentOf(u account.User) userDocument { return userDocument(userDocument(u).user()) }

// User implements [store.Users].
func (s *Store) User(ctx context.Context, id string) (account.User, error) {
	d, err := get[userDocument](ctx, s, users, id)
	return d.user(), err
}

// CreateUser implements [store.Users].
func (s *Store) CreateUser(ctx context.Context, u account.User) error {
	if err := u.Check(); err != nil {
		return err
	}
	inserted, err := s.insert(ctx, users, userDocumentOf(u))
	if err == nil && !inserted {
		return apperr.EmailTaken.New()
	}
	return err
}

// UpdateUser implements [store.Users].
func (s *Store) UpdateUser(ctx context.Context, u account.User) error {
	current := u.Revision
	u.Revision++
	return s.replaceRevision(ctx, users, u.ID, current, userDocumentOf(u))
}

// DeleteUser implements [store.Users]. It deletes the sessions first: a crash in between leaves a user without
// sessions.
func (s *Store) DeleteUser(ctx context.Context, id string) error {
	if err := s.DeleteSessions(ctx, store.SessionFilter{UserID: id}); err != nil {
		return err
	}
	n, err := s.deleteAll(ctx, users, byID(id))
	if err == nil && n == 0 {
		return apperr.UserNotFound.New()
	}
	return err
}

// deleteAll removes all documents that match the filter and returns their number.
func (s *Store) deleteAll(ctx context.Context, from collection, filter bson.D) (n int, err error) {
	err = s.do(ctx, "deleting from "+string(from), func(ctx context.Context) error {
		r, err := s.in(from).DeleteMany(ctx, filter)
		if err == nil {
			n = int(r.DeletedCount)
		}
		return err
	})
	return n, err
}

// Users implements [store.Users].
func (s *Store) Users(ctx context.Context, companyID string, p store.Page) ([]account.User, error) {
	return list(ctx, s, users, ofCompany(companyID, byIDs(p)),
		func(d userDocument) (account.User, bool) { return d.user(), true })
}

type sessionDocument struct {
	ID         string    `bson:"_id"`
	UserID     string    `bson:"userId"`
	CreatedAt  time.Time `bson:"createdAt"`
	LastSeenAt time.Time `bson:"lastSeenAt"`
	ExpiresAt  time.Time `bson:"expiresAt"`
	Address    string    `bson:"address"`
	UserAgent  string    `bson:"userAgent"`
}

func (d sessionDocument) session() account.Session {
	d.CreatedAt = store.UTC(d.CreatedAt)
	d.LastSeenAt = store.UTC(d.LastSeenAt)
	d.ExpiresAt = store.UTC(d.ExpiresAt)
	return account.Session(d)
}

// Session implements [store.Sessions].
func (s *Store) Session(ctx context.Context, id string) (account.Session, error) {
	d, err := get[sessionDocument](ctx, s, sessions, id)
	return d.session(), err
}

// CreateSession implements [store.Sessions].
func (s *Store) CreateSession(ctx context.Context, d account.Session) error {
	return s.put(ctx, sessions, d.ID, sessionDocument(sessionDocument(d).session()))
}

// SessionUsed implements [store.Sessions].
func (s *Store) SessionUsed(ctx context.Context, id string, at, expiresAt time.Time) error {
	latest := bson.D{{Key: "lastSeenAt", Value: store.UTC(at)}, {Key: "expiresAt", Value: store.UTC(expiresAt)}}
	found, err := s.update(ctx, sessions, id, bson.D{{Key: "$max", Value: latest}})
	if err == nil && !found {
		return apperr.SessionNotFound.New()
	}
	return err
}

// UserSessions implements [store.Sessions].
func (s *Store) UserSessions(ctx context.Context, userID string, p store.Page) ([]account.Session, error) {
	q, err := s.byCreation(ctx, sessions, bson.E{Key: "userId", Value: userID}, p)
	if err != nil {
		return nil, err
	}
	return list(ctx, s, sessions, q, func(d sessionDocument) (account.Session, bool) { return d.session(), true })
}

// DeleteSessions implements [store.Sessions].
func (s *Store) DeleteSessions(ctx context.Context, of store.SessionFilter) error {
	filter := byID(of.ID)
	if of.UserID != "" {
		filter = bson.D{{Key: "userId", Value: of.UserID}}
	}
	_, err := s.deleteAll(ctx, sessions, filter)
	return err
}

// auditDocument is an [account.AuditEntry]; JSON is kept as text.
type auditDocument struct {
	ID        string    `bson:"_id"`
	CompanyID string    `bson:"companyId"`
	At        time.Time `bson:"at"`
	UserID    string    `bson:"userId,omitempty"`
	User      string    `bson:"user"`
	Action    string    `bson:"action"`
	Target    string    `bson:"target"`
	TargetID  string    `bson:"targetId"`
	Before    string    `bson:"before,omitempty"`
	After     string    `bson:"after,omitempty"`
}

func (d auditDocument) entry() account.AuditEntry {
	e := account.AuditEntry{
		ID:        d.ID,
		CompanyID: d.CompanyID,
		At:        store.UTC(d.At),
		UserID:    d.UserID,
		User:      d.User,
		Action:    d.Action,
		Target:    d.Target,
		TargetID:  d.TargetID,
	}
	if d.Before != "" {
		e.Before = []byte(d.Before)
	}
	if d.After != "" {
		e.After = []byte(d.After)
	}
	return e
}

func auditDocumentOf(e account.AuditEntry) auditDocument {
	return auditDocument{
		ID:        e.ID,
		CompanyID: e.CompanyID,
		At:        store.UTC(e.At),
		UserID:    e.UserID,
		User:      e.User,
		Action:    e.Action,
		Target:    e.Target,
		TargetID:  e.TargetID,
		Before:    string(e.Before),
		After:     string(e.After),
	}
}

// AppendAuditEntry implements [store.AuditLog].
func (s *Store) AppendAuditEntry(ctx context.Context, e account.AuditEntry) error {
	_, err := s.insert(ctx, audit, auditDocumentOf(e))
	return err
}

// AuditEntries implements [store.AuditLog].
func (s *Store) AuditEntries(ctx context.Context, f store.AuditFilter, p store.Page) ([]account.AuditEntry, error) {
	q := listQuery{filter: bson.D{}, sort: bson.D{desc("_id")}, limit: p.Size()}
	for _, condition := range []bson.E{{Key: "targetId", Value: f.TargetID}, {Key: "companyId", Value: f.CompanyID}} {
		if condition.Value != "" {
			q.filter = append(q.filter, condition)
		}
	}
	ids := bson.D{{Key: "$gt", Value: account.OldestAuditID(time.Now())}}
	if p.After != "" {
		ids = append(ids, bson.E{Key: "$lt", Value: p.After})
	}
	q.filter = append(q.filter, bson.E{Key: "_id", Value: ids})
	return list(ctx, s, audit, q, func(d auditDocument) (account.AuditEntry, bool) { return d.entry(), true })
}
