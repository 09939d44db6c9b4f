package store

import (
	"context"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo/options"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
)

// The lists of this file are for operators: each reads its whole collection.

// scanTimeout bounds a list. It is longer than that of a look-up, because a list may have to read everything.
const scanTimeout = time.Minute

// Page is a part of a list.
type Page struct {
	After string // the id of the last one that was seen; empty: from the beginning
	Limit int    // at most so many; 0: all
}

// Companies lists companies in the order of their ids.
func (s *Store) Companies(ctx context.Context, p Page) ([]chat.Company, error) {
	return scan(ctx, s, companies, bson.D{}, byIDs(p), p.Limit, func(d companyDocument) (chat.Company, bool) { return chat.Company(d), true })
}

// Applications lists the applications of a company, or of all where companyID is empty, in the order of their ids.
func (s *Store) Applications(ctx context.Context, companyID string, p Page) ([]chat.Application, error) {
	return scan(ctx, s, applications, ofCompany(companyID), byIDs(p), p.Limit,
		func(d applicationDocument) (chat.Application, bool) { return d.application(), true })
}

// Templates lists the templates of a company, or of all where companyID is empty, in the order of their ids.
func (s *Store) Templates(ctx context.Context, companyID string, p Page) ([]chat.MessageTemplate, error) {
	return scan(ctx, s, templates, ofCompany(companyID), byIDs(p), p.Limit,
		func(d templateDocument) (chat.MessageTemplate, bool) { return d.template(), true })
}

// ChatFilter chooses chats; an empty field chooses all.
type ChatFilter struct {
	CompanyID  string
	AppID      string
	ChatUserID string
	Status     chat.Status
	Now        time.Time // at which the status is meant
}

// Chats lists chats, the newest first. NotFound when the chat that the page follows is not there.
func (s *Store) Chats(ctx context.Context, f ChatFilter, p Page) ([]chat.Chat, error) {
	page := paging{sort: bson.D{{Key: "createdAt", Value: -1}, {Key: "_id", Value: 1}}}
	if p.After != "" {
		last, err := get[chatDocument](ctx, s, chats, p.After)
		if err != nil {
			return nil, err
		}
		page.follow = bson.E{Key: "$or", Value: bson.A{
			bson.D{{Key: "createdAt", Value: bson.D{{Key: "$lt", Value: last.CreatedAt}}}},
			bson.D{{Key: "createdAt", Value: last.CreatedAt}, {Key: "_id", Value: bson.D{{Key: "$gt", Value: last.ID}}}},
		}}
	}
	var filter bson.D
	for _, member := range []bson.E{{Key: "companyId", Value: f.CompanyID}, {Key: "appId", Value: f.AppID}, {Key: "chatUserId", Value: f.ChatUserID}} {
		if member.Value != "" {
			filter = append(filter, member)
		}
	}
	return scan(ctx, s, chats, filter, page, p.Limit, func(d chatDocument) (chat.Chat, bool) {
		c := s.chat(d)
		return c, f.Status == "" || c.Status(f.Now) == f.Status
	})
}

// FindVisitor returns the chatUserId of the person who has an identity, or NotFound.
func (s *Store) FindVisitor(ctx context.Context, i Identity) (chatUserID string, err error) {
	d, err := get[identityDocument](ctx, s, identities, i.id())
	if apperr.Is(err, apperr.NotFound) {
		return "", notFound(visitors)
	}
	if err != nil {
		return "", err
	}
	chatUserID, _, err = s.person(ctx, d.ChatUserID)
	return chatUserID, err
}

func ofCompany(id string) bson.D {
	if id == "" {
		return bson.D{}
	}
	return bson.D{{Key: "companyId", Value: id}}
}

// paging is the order of a list, and the condition by which it goes on where the last page ended.
type paging struct {
	sort   bson.D
	follow bson.E
}

func byIDs(p Page) paging {
	page := paging{sort: bson.D{{Key: "_id", Value: 1}}}
	if p.After != "" {
		page.follow = bson.E{Key: "_id", Value: bson.D{{Key: "$gt", Value: p.After}}}
	}
	return page
}

// scan reads documents in order until it has as many as are wanted.
func scan[D, V any](
	ctx context.Context, s *Store, from collection, filter bson.D, page paging, limit int, read func(D) (v V, wanted bool),
) ([]V, error) {
	if page.follow.Key != "" {
		filter = append(filter, page.follow)
	}
	if filter == nil {
		filter = bson.D{}
	}
	if err := s.link.check(); err != nil {
		return nil, translate(ctx, "listing "+string(from), err)
	}
	bounded, cancel := context.WithTimeout(ctx, scanTimeout)
	defer cancel()
	found, err := collect(bounded, s, from, filter, page.sort, limit, read)
	return found, translate(ctx, "listing "+string(from), err)
}

func collect[D, V any](
	ctx context.Context, s *Store, from collection, filter, sort bson.D, limit int, read func(D) (v V, wanted bool),
) ([]V, error) {
	cursor, err := s.in(from).Find(ctx, filter, options.Find().SetSort(sort))
	if err != nil {
		return nil, err
	}
	defer func() {
		closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), operationTimeout)
		defer cancel()
		_ = cursor.Close(closing) // where that fails the server forgets it by itself
	}()
	found := []V{}
	for (limit == 0 || len(found) < limit) && cursor.Next(ctx) {
		var d D
		if err := cursor.Decode(&d); err != nil {
			return nil, err
		}
		if v, wanted := read(d); wanted {
			found = append(found, v)
		}
	}
	return found, cursor.Err()
}
