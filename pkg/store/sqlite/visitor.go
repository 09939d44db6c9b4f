package sqlite

import (
	"context"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

const visitorColumns = `id, company_id, app_id, first_name, last_name, email, phone, user_id, verified_by, chat_number, tokens_valid_from`

const selectVisitor = `SELECT ` + visitorColumns + ` FROM visitors WHERE id = ?`

func readVisitor(r *row) chat.Visitor {
	return chat.Visitor{
		ID:        r.text(),
		CompanyID: r.text(),
		AppID:     r.text(),
		FirstName: r.text(),
		LastName:  r.text(),
		Email:     r.text(),
		Phone:     r.text(),
		UserID:    r.text(), VerifiedBy: r.text(), ChatNumber: int(r.int()), TokensValidFrom: r.time(),
	}
}

// Visitor implements [store.Visitors].
func (s *Store) Visitor(ctx context.Context, chatUserID string) (chat.Visitor, error) {
	return one(ctx, s, "reading a visitor", selectVisitor, readVisitor, apperr.VisitorNotFound, chatUserID)
}

func saveVisitor(c *conn, v chat.Visitor) (saved chat.Visitor, err error) {
	_, err = c.exec(`
		INSERT INTO visitors (id, company_id, app_id, first_name, last_name, email, phone, user_id, verified_by)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
		ON CONFLICT (id) DO UPDATE SET
			first_name = iif(excluded.first_name = '', first_name, excluded.first_name),
			last_name  = iif(excluded.last_name = '', last_name, excluded.last_name),
			email      = iif(excluded.email = '', email, excluded.email),
			phone      = iif(excluded.phone = '', phone, excluded.phone),
			user_id    = iif(excluded.user_id = '', user_id, excluded.user_id)`,
		v.ID, v.CompanyID, v.AppID, v.FirstName, v.LastName, v.Email, v.Phone, v.UserID, v.VerifiedBy)
	if err == nil {
		_, err = c.first(selectVisitor, func(r *row) { saved = readVisitor(r) }, v.ID)
	}
	return saved, err
}

func writeVisitor(c *conn, verb string, v chat.Visitor) error {
	_, err := c.insert(
		verb, `visitors`, visitorColumns,
		v.ID, v.CompanyID, v.AppID, v.FirstName, v.LastName, v.Email, v.Phone, v.UserID, v.VerifiedBy,
		v.ChatNumber, v.TokensValidFrom,
	)
	return err
}

func replaceVisitor(c *conn, v chat.Visitor) error { return writeVisitor(c, orReplace, v) }

// Register implements [store.Visitors] with one commit.
func (s *Store) Register(ctx context.Context, r store.Registration) (store.Registered, error) {
	var sorted []store.Identity
	if r.Visitor.ID == "" {
		var err error
		if sorted, err = store.SortIdentities(r.Identities); err != nil {
			return store.Registered{}, err
		}
	}
	if r.Chat != nil {
		if err := checkGreetings(*r.Chat); err != nil {
			return store.Registered{}, err
		}
	}
	return write(
		ctx, s, "registering a visitor",
		func(c *conn) (store.Registered, error) { return s.register(c, r, sorted) },
	)
}

func (s *Store) register(c *conn, r store.Registration, sorted []store.Identity) (store.Registered, error) {
	v := r.Visitor
	if v.ID == "" {
		who, err := ownerOrNew(c, sorted, r.OnlyUnowned)
		if err != nil {
			return store.Registered{}, err
		}
		v.ID = who.chatUserID
		if who.created {
			return s.registerNew(c, v, r.Chat)
		}
	}
	v, err := saveVisitor(c, v)
	if err != nil || r.Chat == nil {
		return store.Registered{Visitor: v}, err
	}
	owner, err := uuid.Parse(v.ID)
	if err != nil {
		return store.Registered{}, invalidVisitorID(err)
	}
	o, err := s.open(c, owner, v, *r.Chat)
	return store.Registered{Visitor: v, Chat: o.chat, Opened: o.fresh}, err
}

// registerNew is register for an id without a row yet, so it needs no lookups.
func (s *Store) registerNew(c *conn, v chat.Visitor, n *store.NewChat) (store.Registered, error) {
	v.ChatNumber, v.TokensValidFrom = 0, time.Time{}
	if n != nil {
		v.ChatNumber = 1
	}
	if err := writeVisitor(c, orFail, v); err != nil {
		return store.Registered{}, err
	}
	if n == nil {
		return store.Registered{Visitor: v, Created: true}, nil
	}
	owner, err := uuid.Parse(v.ID)
	if err != nil {
		return store.Registered{}, invalidVisitorID(err)
	}
	created, err := s.create(c, store.ChatID(owner, v.ChatNumber), v, *n)
	return store.Registered{Visitor: v, Chat: created, Opened: true, Created: true}, err
}

// ownerOrNew returns the id of the visitor that owns the identities, or of a new one.
func ownerOrNew(c *conn, sorted []store.Identity, onlyUnowned bool) (resolved, error) {
	if onlyUnowned {
		owner, _, err := owners(c, sorted)
		if err != nil {
			return resolved{}, err
		}
		if owner != "" {
			return resolved{chatUserID: store.NewVisitorID(), created: true}, nil
		}
	}
	return resolve(c, sorted)
}

// resolved is the visitor that owns identities.
type resolved struct {
	chatUserID string
	created    bool
}

// resolve assigns the unowned identities to the visitor who owns the strongest, or to a new one.
func resolve(c *conn, sorted []store.Identity) (resolved, error) {
	owner, unowned, err := owners(c, sorted)
	if err != nil {
		return resolved{}, err
	}
	r := resolved{chatUserID: owner, created: owner == ""}
	if r.created {
		r.chatUserID = store.NewVisitorID()
	}
	for _, key := range unowned {
		if _, err := c.insert(orIgnore, `identities`, identityColumns, key, r.chatUserID); err != nil {
			return resolved{}, err
		}
	}
	return r, nil
}

// owners returns the owner of the strongest owned identity, and the keys of the unowned ones.
func owners(c *conn, sorted []store.Identity) (strongest string, unowned []string, err error) {
	for _, i := range sorted {
		owner, err := ownerOf(c, i)
		switch {
		case err != nil:
			return "", nil, err
		case owner == "":
			unowned = append(unowned, i.Key())
		case strongest == "":
			strongest = owner
		}
	}
	return strongest, unowned, nil
}

func ownerOf(c *conn, i store.Identity) (owner string, err error) {
	_, err = c.first(`SELECT chat_user_id FROM identities WHERE key = ?`, func(r *row) { owner = r.text() }, i.Key())
	return owner, err
}

// FindVisitor implements [store.Visitors].
func (s *Store) FindVisitor(ctx context.Context, i store.Identity) (string, error) {
	return read(ctx, s, "reading an identity", func(c *conn) (string, error) {
		owner, err := ownerOf(c, i)
		if err == nil && owner == "" {
			err = apperr.VisitorNotFound.New()
		}
		return owner, err
	})
}

// RevokeVisitorTokens implements [store.Visitors].
func (s *Store) RevokeVisitorTokens(ctx context.Context, chatUserID string, at time.Time) error {
	return update(ctx, s, "revoking a visitor's tokens", func(c *conn) error {
		changed, err := c.exec(
			`UPDATE visitors SET tokens_valid_from = max(ifnull(tokens_valid_from, ?2), ?2) WHERE id = ?1`,
			chatUserID,
			at,
		)
		if err == nil && changed == 0 {
			err = apperr.VisitorNotFound.New()
		}
		return err
	})
}
