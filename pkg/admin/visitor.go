package admin

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/slot"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/proto-events/subject"
)

// RevokeVisitor revokes all tokens and closes all sockets of a visitor.
func (s *Service) RevokeVisitor(ctx context.Context, by Actor, id string) (chat.Visitor, error) {
	v, err := s.store.Visitor(ctx, id)
	if err != nil {
		return v, err
	}
	if err := s.revokeVisitor(ctx, v); err != nil {
		return v, err
	}
	v, err = s.store.Visitor(ctx, id)
	if err != nil {
		return v, err
	}
	return v, s.audit(ctx, by, change{companyID: v.CompanyID, action: "visitor.revoke", target: "visitor", id: id})
}

func (s *Service) revokeVisitor(ctx context.Context, v chat.Visitor) error {
	validFrom := credential.RevocationTime(s.now())
	if err := s.store.RevokeVisitorTokens(ctx, v.ID, validFrom); err != nil {
		return err
	}
	if err := s.bus.RevokeVisitorTokens(ctx, v.CompanyID, v.ID, validFrom); err != nil {
		return err
	}
	return s.bus.RPC().Invalidate(ctx, store.CachedVisitor, v.ID)
}

// Purger removes events from streams.
type Purger interface {
	Purge(ctx context.Context, stream, filter string) (removed int, err error)
	PurgeWhere(ctx context.Context, about func(subj string, data []byte) bool) (removed int, err error)
}

// FileDeleter removes the bytes of files.
type FileDeleter interface {
	Delete(ctx context.Context, id string) error
}

// Receipt reports what an erasure removed. It identifies no one: the visitor's id no longer refers to anything.
type Receipt struct {
	ID         string    `json:"id"`
	VisitorID  string    `json:"visitorId"`
	At         time.Time `json:"at"`
	By         string    `json:"by"`
	Chats      int       `json:"chats"`
	Messages   int       `json:"messages"`
	Files      int       `json:"files"`
	Identities int       `json:"identities"`
	Statuses   int       `json:"statuses"`
	Events     int       `json:"events"` // in streams, including dead letters
}

func (r Receipt) fields() fields {
	return fields{
		"id": r.ID, "visitorId": r.VisitorID, "at": r.At, "by": r.By, "chats": r.Chats, "messages": r.Messages,
		"files": r.Files, "identities": r.Identities, "statuses": r.Statuses, "events": r.Events,
	}
}

const (
	// eraseWait is how long an erasure waits for another company's.
	eraseWait = 30 * time.Second
	// eraseRetryAfter is when one that was refused may be tried again.
	eraseRetryAfter = 5 * time.Second
)

// EraseVisitor removes all data of a visitor from the store and the streams, and writes the receipt to the audit log.
// It revokes the visitor's tokens first, so that no new data arrives. Repeating the call completes an interrupted
// erasure.
//
// An erasure reads whole streams, which all companies share, so a process runs one at a time. TooMany if the
// company has another one running, or if those of other companies take long.
func (s *Service) EraseVisitor(
	ctx context.Context,
	by Actor,
	v chat.Visitor,
	streams Purger,
	files FileDeleter,
) (Receipt, error) {
	r := Receipt{ID: chat.NewID(), VisitorID: v.ID, At: store.UTC(s.now()), By: by.Name}
	running, err := s.beginErasure(ctx, v.CompanyID)
	if err != nil {
		return r, err
	}
	defer running.Release()
	// A company that erases more visitors than it may revoke erases them all the same: the store refuses their tokens.
	if err := s.revokeVisitor(ctx, v); err != nil && !apperr.Is(err, apperr.TooMany) {
		return r, err
	}
	chats, err := s.chatIDs(ctx, v)
	if err != nil {
		return r, err
	}
	r.Files, err = s.deleteFiles(ctx, v, files)
	if err != nil {
		return r, err
	}
	r.Events, err = purge(ctx, streams, v, chats)
	if err != nil {
		return r, err
	}
	erased, err := s.store.EraseVisitor(ctx, v.ID)
	if err != nil {
		return r, err
	}
	r.Chats = erased.Chats
	r.Messages = erased.Messages
	r.Identities = erased.Identities
	r.Statuses = erased.Statuses
	more, err := purge(ctx, streams, v, chats) // events that arrived in the meantime
	r.Events += more
	failures := []error{err, s.bus.RPC().Invalidate(ctx, store.CachedVisitor, v.ID)}
	for _, id := range chats {
		failures = append(failures, s.bus.RPC().Invalidate(ctx, store.CachedChat, id))
	}
	failures = append(
		failures,
		s.audit(ctx, by, change{
			companyID: v.CompanyID,
			action:    "visitor.erase",
			target:    "visitor",
			id:        v.ID,
			after:     r.fields(),
		}),
	)
	return r, errors.Join(failures...)
}

// beginErasure takes the place of the erasure that may run, or returns TooMany.
func (s *Service) beginErasure(ctx context.Context, companyID string) (*slot.Slot, error) {
	company := slot.Share{Of: "company", Key: companyID, Most: 1}
	place, err := s.erasing.Acquire(ctx, 0, company)
	if full, ok := errors.AsType[*slot.FullError](err); ok && full.Share == "" {
		place, err = s.erasing.Acquire(ctx, eraseWait, company)
	}
	if _, ok := errors.AsType[*slot.FullError](err); ok {
		tooMany := apperr.TooManyRequests.WithMessage("Another visitor is being erased. Please try again.")
		tooMany.RetryAfter = eraseRetryAfter
		return nil, tooMany
	}
	return place, err
}

// chatIDs returns the ids of the visitor's chats.
func (s *Service) chatIDs(ctx context.Context, v chat.Visitor) (ids []string, err error) {
	for c, err := range s.chatsOf(ctx, v) {
		if err != nil {
			return nil, err
		}
		ids = append(ids, c.ID)
	}
	return ids, nil
}

// chatsOf yields the visitor's chats, newest first.
func (s *Service) chatsOf(ctx context.Context, v chat.Visitor) iter.Seq2[chat.Chat, error] {
	list := func(ctx context.Context, p store.Page) ([]chat.Chat, error) {
		return s.store.Chats(ctx, store.ChatFilter{ChatUserID: v.ID}, p)
	}
	return store.All(ctx, list, func(c chat.Chat) string { return c.ID })
}

// filesOf yields the ids of the visitor's files.
func (s *Service) filesOf(ctx context.Context, v chat.Visitor) iter.Seq2[string, error] {
	list := func(ctx context.Context, p store.Page) ([]string, error) {
		return s.store.IDs(ctx, store.IDFilter{FilesOf: v.ID}, p)
	}
	return store.All(ctx, list, func(id string) string { return id })
}

// deleteFiles removes the bytes of the visitor's files and returns their number; the store removes the records.
func (s *Service) deleteFiles(ctx context.Context, v chat.Visitor, files FileDeleter) (deleted int, err error) {
	for id, err := range s.filesOf(ctx, v) {
		if err != nil {
			return deleted, err
		}
		if err := files.Delete(ctx, id); err != nil {
			return deleted, err
		}
		deleted++
	}
	return deleted, nil
}

// purge removes the visitor's events from all streams.
func purge(ctx context.Context, streams Purger, v chat.Visitor, chats []string) (removed int, err error) {
	for _, subj := range subjectsOf(v, chats) {
		n, err := streams.Purge(ctx, subject.StreamOf(subj), subj)
		if err != nil && !apperr.Is(err, apperr.NotFound) {
			return removed, err
		}
		removed += n
	}
	ids := map[string]bool{v.ID: true}
	for _, id := range chats {
		ids[id] = true
	}
	n, err := streams.PurgeWhere(ctx, func(_ string, data []byte) bool { return mentions(data, ids) })
	return removed + n, err
}

// subjectsOf returns the subjects of all events of a visitor and of the visitor's chats.
func subjectsOf(v chat.Visitor, chats []string) (subjects []string) {
	for _, kind := range subject.Kinds() {
		if kind.OfVisitor != nil && v.AppID != "" {
			subjects = append(subjects, kind.OfVisitor(v.AppID, v.ID))
		}
		if kind.OfChat == nil {
			continue
		}
		for _, id := range chats {
			subjects = append(subjects, kind.OfChat(v.CompanyID, id))
		}
	}
	return subjects
}

// AuditDeadLetters records in the audit log that dead letters were redriven or dropped.
func (s *Service) AuditDeadLetters(
	ctx context.Context,
	by Actor,
	action string,
	count int,
	stream, consumer string,
) error {
	after := fields{"count": count, "stream": stream, "consumer": consumer}
	return s.audit(ctx, by, change{action: action, target: "dead-letters", after: after})
}

// mentions reports whether an event belongs to one of these chats or visitors.
func mentions(data []byte, ids map[string]bool) bool {
	var e struct {
		ChatID     string `json:"chatId"`
		ChatUserID string `json:"chatUserId"`
	}
	return json.Unmarshal(data, &e) == nil && (ids[e.ChatID] || ids[e.ChatUserID])
}
