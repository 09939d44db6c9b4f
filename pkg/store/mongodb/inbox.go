package mongodb

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

// Inbox implements [store.Chats]. It reads chats in index order, a batch at a time, then the batch's visitors, and
// applies the filter here.
func (s *Store) Inbox(
	ctx context.Context,
	f store.InboxFilter,
	p store.InboxPage,
) ([]store.InboxEntry, *store.InboxCursor, error) {
	entries, after, scanned := []store.InboxEntry{}, p.After, 0
	var of []string
	if f.Profile.Selects() {
		var err error
		if of, err = s.visitorsWith(ctx, f.CompanyID, f.Profile); err != nil || len(of) == 0 {
			return entries, nil, err
		}
	}
	for scanned < store.MaxExamined {
		batch, err := s.inboxBatch(ctx, f, of, after)
		if err != nil {
			return nil, nil, err
		}
		for _, e := range batch {
			if len(entries) == p.Size() {
				return entries, after, nil
			}
			after = f.CursorAt(e.Chat)
			if f.Wants(e.Chat, e.Visitor) {
				entries = append(entries, e)
			}
		}
		if len(batch) < inboxBatch {
			return entries, nil, nil
		}
		scanned += len(batch)
	}
	return entries, after, nil
}

// inboxBatch is the number of chats per batch.
const inboxBatch = 200

// visitorsWith lists the ids of visitors with a profile.
func (s *Store) visitorsWith(ctx context.Context, companyID string, p store.Profile) ([]string, error) {
	q := listQuery{filter: bson.D{{Key: "companyId", Value: companyID}}, limit: store.InboxProfiles}
	for _, i := range store.Identities("", p) { // the fields have the names of the kinds
		q.filter = append(q.filter, bson.E{Key: i.Kind, Value: bson.D{{Key: "$in", Value: i.Accepted()}}})
	}
	return list(ctx, s, visitors, q, func(d visitorDocument) (string, bool) { return d.ID, true })
}

// inboxBatch reads the next chats that may match the filter; only of these visitors, if there are any.
func (s *Store) inboxBatch(
	ctx context.Context,
	f store.InboxFilter,
	of []string,
	after *store.InboxCursor,
) ([]store.InboxEntry, error) {
	q := listQuery{sort: bson.D{desc("windowStartedAt"), asc("_id")}, limit: inboxBatch}
	if f.Waiting {
		q.sort = bson.D{asc("control.changedAt"), asc("_id")}
		q.filter = bson.D{
			{
				Key:   "control.agent",
				Value: true,
			}, {Key: "control.assignee", Value: nil}, {Key: "closedAt", Value: nil}, // null: not set
		}
	}
	if f.VisitorID != "" {
		q.filter = append(q.filter, bson.E{Key: "chatUserId", Value: f.VisitorID})
	}
	if len(of) > 0 {
		q.filter = append(q.filter, bson.E{Key: "chatUserId", Value: bson.D{{Key: "$in", Value: of}}})
	}
	if f.AppID != "" {
		q.filter = append(q.filter, bson.E{Key: "appId", Value: f.AppID})
	}
	q.filter = append(q.filter, bson.E{Key: "companyId", Value: f.CompanyID})
	if after != nil {
		q.filter = append(q.filter, following(q.sort[0], *after)...)
	}
	found, err := list(ctx, s, chats, q, func(d chatDocument) (chat.Chat, bool) { return s.chat(d), true })
	if err != nil {
		return nil, err
	}
	known, err := s.visitorsOf(ctx, found)
	if err != nil {
		return nil, err
	}
	entries := make([]store.InboxEntry, len(found))
	for i, c := range found {
		entries[i] = store.InboxEntry{Chat: c, Visitor: known[c.ChatUserID]}
	}
	return entries, nil
}

// following selects the chats after the cursor in the order of the time field, then of the id.
func following(order bson.E, after store.InboxCursor) bson.D {
	beyond := "$gt"
	if order.Value == desc("").Value {
		beyond = "$lt"
	}
	return bson.D{
		{Key: order.Key, Value: bson.D{{Key: beyond + "e", Value: after.ActivityAt}}},
		eitherAfter(order.Key, beyond, after.ActivityAt, after.ChatID),
	}
}

// eitherAfter selects the documents that are beyond a time, or have it and a greater id.
func eitherAfter(field, beyond string, at time.Time, id string) bson.E {
	return bson.E{Key: "$or", Value: bson.A{
		bson.D{{Key: field, Value: bson.D{{Key: beyond, Value: at}}}},
		bson.D{{Key: "_id", Value: bson.D{{Key: "$gt", Value: id}}}},
	}}
}

func (s *Store) visitorsOf(ctx context.Context, found []chat.Chat) (map[string]chat.Visitor, error) {
	ids := make([]string, len(found))
	for i, c := range found {
		ids[i] = c.ChatUserID
	}
	slices.Sort(ids)
	known := map[string]chat.Visitor{}
	if len(ids) == 0 {
		return known, nil
	}
	in := bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: slices.Compact(ids)}}}}
	all, err := list(
		ctx, s, visitors, listQuery{filter: in},
		func(d visitorDocument) (chat.Visitor, bool) { return d.visitor(), true },
	)
	for _, v := range all {
		known[v.ID] = v
	}
	return known, err
}

// FindVisitors implements [store.Visitors].
func (s *Store) FindVisitors(
	ctx context.Context,
	companyID, text string,
	p store.Page,
) (found []chat.Visitor, next string, err error) {
	q := ofCompany(companyID, byIDs(p))
	page := store.Examination[chat.Visitor]{Limit: p.Size(), Found: []chat.Visitor{}}
	err = examine(ctx, s, visitors, q, &page, func(d visitorDocument) (string, chat.Visitor, bool, int64) {
		v := d.visitor()
		return v.ID, v, store.VisitorContains(v, text), 0
	})
	return page.Found, page.Next, err
}

// EraseVisitor implements [store.Visitors]. The visitor's own document is deleted last, so that a repeat after a crash
// finds the rest.
func (s *Store) EraseVisitor(ctx context.Context, chatUserID string) (e store.Erased, err error) {
	found, err := list(
		ctx, s, chats, listQuery{filter: bson.D{{Key: "chatUserId", Value: chatUserID}}},
		func(d chatDocument) (chatDocument, bool) { return d, true },
	)
	if err != nil {
		return e, err
	}
	for _, c := range found {
		if err := s.eraseChat(ctx, c, &e); err != nil {
			return e, err
		}
	}
	ofVisitor := bson.D{{Key: "chatUserId", Value: chatUserID}}
	if _, err := s.deleteAll(ctx, botUsage, ofVisitor); err != nil {
		return e, err
	}
	n, errFiles := s.deleteAll(ctx, files, ofVisitor)
	e.Files = n
	n, errIdentities := s.eraseIdentities(ctx, chatUserID)
	e.Identities = n
	if err := errors.Join(errFiles, errIdentities); err != nil {
		return e, err
	}
	e.Visitors, err = s.deleteAll(ctx, visitors, byID(chatUserID))
	return e, err
}

// eraseIdentities removes the identities of all ids that resolve to the visitor.
func (s *Store) eraseIdentities(ctx context.Context, chatUserID string) (int, error) {
	ids, err := list(
		ctx, s, owners, listQuery{filter: bson.D{{Key: "resolvesTo", Value: chatUserID}}},
		func(d ownerDocument) (string, bool) { return d.ID, true },
	)
	if err != nil {
		return 0, err
	}
	ids = append(ids, chatUserID)
	n, err := s.deleteAll(ctx, identities, bson.D{{Key: "chatUserId", Value: bson.D{{Key: "$in", Value: ids}}}})
	if err != nil {
		return n, err
	}
	_, err = s.deleteAll(ctx, owners, bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: ids}}}})
	return n, err
}

func (s *Store) eraseChat(ctx context.Context, c chatDocument, e *store.Erased) error {
	ofChat := bson.D{{Key: "chatId", Value: c.ID}}
	all, err := list(
		ctx, s, messages, listQuery{filter: ofChat},
		func(d messageDocument) (string, bool) { return c.CompanyID + "|" + d.ID, true },
	)
	if err != nil {
		return err
	}
	for keys := range slices.Chunk(all, maxBatch) {
		n, err := s.deleteAll(ctx, statuses, bson.D{{Key: "_id", Value: bson.D{{Key: "$in", Value: keys}}}})
		if err != nil {
			return err
		}
		e.Statuses += n
	}
	if _, err := s.deleteAll(ctx, webhookDeliveries, ofChat); err != nil {
		return err
	}
	if _, err := s.deleteAll(ctx, botCalls, ofChat); err != nil {
		return err
	}
	if _, err := s.deleteAll(ctx, botActions, ofChat); err != nil {
		return err
	}
	n, errMessages := s.deleteAll(ctx, messages, ofChat)
	e.Messages += n
	if err := errors.Join(errMessages, s.delete(ctx, receipts, c.ID)); err != nil {
		return err
	}
	n, err = s.deleteAll(ctx, chats, byID(c.ID))
	e.Chats += n
	return err
}
