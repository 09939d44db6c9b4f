package mongodb

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

type visitorDocument struct {
	ID              string    `bson:"_id"`
	CompanyID       string    `bson:"companyId"`
	AppID           string    `bson:"appId"`
	FirstName       string    `bson:"firstName,omitempty"`
	LastName        string    `bson:"lastName,omitempty"`
	Email           string    `bson:"email,omitempty"`
	Phone           string    `bson:"phone,omitempty"`
	UserID          string    `bson:"userId,omitempty"`
	VerifiedBy      string    `bson:"verifiedBy,omitempty"`
	ChatNumber      int       `bson:"chatNumber,omitempty"`
	TokensValidFrom time.Time `bson:"tokensValidFrom,omitempty"`
}

func (d visitorDocument) visitor() chat.Visitor {
	d.TokensValidFrom = store.UTC(d.TokensValidFrom)
	return chat.Visitor(d)
}

func visitorDocumentOf(v chat.Visitor) visitorDocument { return visitorDocument(v) }

// Visitor implements [store.Visitors].
func (s *Store) Visitor(ctx context.Context, chatUserID string) (chat.Visitor, error) {
	d, err := get[visitorDocument](ctx, s, visitors, chatUserID)
	return d.visitor(), err
}

// saveVisitor creates the visitor or updates the profile, and returns the visitor as stored.
func (s *Store) saveVisitor(ctx context.Context, v chat.Visitor) (chat.Visitor, error) {
	v.ChatNumber, v.TokensValidFrom = 0, time.Time{}
	profile := bson.D{}
	for _, field := range []struct{ name, value string }{
		{"firstName", v.FirstName}, {"lastName", v.LastName}, {"email", v.Email}, {"phone", v.Phone}, {"userId", v.UserID},
	} {
		if field.value != "" {
			profile = append(profile, bson.E{Key: field.name, Value: field.value})
		}
	}
	if len(profile) == 0 { // some servers reject an empty $set
		return s.visitorOrInsert(ctx, v)
	}
	d, err := modifyOrInsert(ctx, s, visitors, v.ID, bson.D{{Key: "$set", Value: profile}}, visitorDocument(v))
	return d.visitor(), err
}

// visitorOrInsert returns the visitor, or inserts the given one.
func (s *Store) visitorOrInsert(ctx context.Context, v chat.Visitor) (chat.Visitor, error) {
	inserted, err := s.insert(ctx, visitors, visitorDocument(v))
	if err != nil || inserted {
		return v, err
	}
	return s.Visitor(ctx, v.ID)
}

// FindVisitor implements [store.Visitors].
func (s *Store) FindVisitor(ctx context.Context, i store.Identity) (chatUserID string, err error) {
	d, err := get[identityDocument](ctx, s, identities, i.Key())
	if err != nil {
		return "", err
	}
	resolved, err := s.resolve(ctx, []string{d.ChatUserID})
	if err != nil {
		return "", err
	}
	owner := resolved[d.ChatUserID]
	if owner.pending { // the id has not left this package yet
		return "", apperr.VisitorNotFound.New()
	}
	return owner.id, nil
}

// Register implements [store.Visitors]. Each of its steps is idempotent, so that it needs no transaction.
func (s *Store) Register(ctx context.Context, r store.Registration) (store.Registered, error) {
	v, created := r.Visitor, false
	if v.ID == "" {
		var err error
		if v.ID, created, err = s.ownerOrNew(ctx, r); err != nil {
			return store.Registered{}, err
		}
	}
	v, err := s.saveVisitor(ctx, v)
	if err != nil || r.Chat == nil {
		return store.Registered{Visitor: v, Created: created}, err
	}
	c, opened, err := s.OpenChat(ctx, v, *r.Chat)
	return store.Registered{Visitor: v, Chat: c, Opened: opened, Created: created}, err
}

// ownerOrNew returns the id of the visitor that owns the identities, or of a new one.
func (s *Store) ownerOrNew(ctx context.Context, r store.Registration) (chatUserID string, created bool, err error) {
	if !r.OnlyUnowned {
		return s.resolveVisitor(ctx, r.Identities)
	}
	for _, i := range r.Identities {
		_, err := s.FindVisitor(ctx, i)
		if err == nil {
			return store.NewVisitorID(), true, nil
		}
		if !apperr.Is(err, apperr.NotFound) {
			return "", false, err
		}
	}
	chatUserID, created, err = s.resolveVisitor(ctx, r.Identities)
	if err == nil && !created { // a concurrent registration took one of them
		return store.NewVisitorID(), true, nil
	}
	return chatUserID, created, err
}

// RevokeVisitorTokens implements [store.Visitors].
func (s *Store) RevokeVisitorTokens(ctx context.Context, chatUserID string, at time.Time) error {
	return s.change(ctx, visitors, chatUserID, movingTimes(movedTime{"$max", "tokensValidFrom", at}))
}

// countChats records the visitor's number of chats, unless the visitor's document had it when it was read.
func (s *Store) countChats(ctx context.Context, v chat.Visitor, number int) error {
	if number <= v.ChatNumber {
		return nil
	}
	_, err := s.update(ctx, visitors, v.ID, bson.D{{Key: "$max", Value: bson.D{{Key: "chatNumber", Value: number}}}})
	return err
}
