package admin

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/credential"
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
	if v, err = s.store.Visitor(ctx, id); err != nil {
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
	return s.bus.Invalidate(ctx, store.CachedVisitor, v.ID)
}

// Export is all stored data of a visitor.
type Export struct {
	ExportedAt time.Time      `json:"exportedAt"`
	Visitor    ExportVisitor  `json:"visitor"`
	Chats      []ExportedChat `json:"chats"`
	Files      []string       `json:"fileIds"`
}

// ExportVisitor is a visitor's profile.
type ExportVisitor struct {
	ID         string `json:"id"`
	CompanyID  string `json:"companyId"`
	AppID      string `json:"appId,omitempty"`
	FirstName  string `json:"firstName,omitempty"`
	LastName   string `json:"lastName,omitempty"`
	Email      string `json:"email,omitempty"`
	Phone      string `json:"phone,omitempty"`
	UserID     string `json:"userId,omitempty"`
	VerifiedBy string `json:"verifiedBy,omitempty"`
}

// ExportedChat is a chat with its history.
type ExportedChat struct {
	ID        string         `json:"id"`
	Channel   chat.Channel   `json:"channel"`
	CreatedAt time.Time      `json:"createdAt"`
	ClosedAt  *time.Time     `json:"closedAt,omitempty"`
	Messages  []chat.Message `json:"messages"`
}

// ExportVisitor returns all stored data of a visitor.
func (s *Service) ExportVisitor(ctx context.Context, by Actor, v chat.Visitor) (Export, error) {
	e := Export{ExportedAt: store.UTC(s.now()), Chats: []ExportedChat{}, Visitor: ExportVisitor{
		ID: v.ID, CompanyID: v.CompanyID, AppID: v.AppID, FirstName: v.FirstName, LastName: v.LastName, Email: v.Email, Phone: v.Phone, UserID: v.UserID,
		VerifiedBy: v.VerifiedBy,
	}}
	chats, err := s.store.Chats(ctx, store.ChatFilter{ChatUserID: v.ID}, store.Page{})
	if err != nil {
		return e, err
	}
	for _, c := range chats {
		exported := ExportedChat{ID: c.ID, Channel: c.Channel, CreatedAt: c.CreatedAt}
		if !c.ClosedAt.IsZero() {
			exported.ClosedAt = &c.ClosedAt
		}
		if exported.Messages, _, err = s.store.History(ctx, c.ID, store.HistoryQuery{}); err != nil {
			return e, err
		}
		e.Chats = append(e.Chats, exported)
	}
	if e.Files, err = s.store.VisitorFileIDs(ctx, v.ID); err != nil {
		return e, err
	}
	return e, s.audit(ctx, by, change{companyID: v.CompanyID, action: "visitor.export", target: "visitor", id: v.ID})
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

// EraseVisitor removes all data of a visitor from the store and the streams, and writes the receipt to the audit log.
// It revokes the visitor's tokens first, so that no new data arrives. Repeating the call completes an interrupted
// erasure.
func (s *Service) EraseVisitor(ctx context.Context, by Actor, v chat.Visitor, streams Purger, files FileDeleter) (Receipt, error) {
	r := Receipt{ID: chat.NewID(), VisitorID: v.ID, At: store.UTC(s.now()), By: by.Name}
	// A company that erases more visitors than it may revoke erases them all the same: the store refuses their tokens.
	if err := s.revokeVisitor(ctx, v); err != nil && !apperr.Is(err, apperr.TooMany) {
		return r, err
	}
	chats, err := s.store.Chats(ctx, store.ChatFilter{ChatUserID: v.ID}, store.Page{})
	if err != nil {
		return r, err
	}
	fileIDs, err := s.store.VisitorFileIDs(ctx, v.ID)
	if err != nil {
		return r, err
	}
	for _, file := range fileIDs {
		if err := files.Delete(ctx, file); err != nil {
			return r, err
		}
	}
	if r.Events, err = purge(ctx, streams, v, chats); err != nil {
		return r, err
	}
	erased, err := s.store.EraseVisitor(ctx, v.ID)
	if err != nil {
		return r, err
	}
	r.Chats, r.Messages, r.Files, r.Identities, r.Statuses = erased.Chats, erased.Messages, len(fileIDs), erased.Identities, erased.Statuses
	more, err := purge(ctx, streams, v, chats) // events that arrived in the meantime
	r.Events += more
	failures := []error{err, s.bus.Invalidate(ctx, store.CachedVisitor, v.ID)}
	for _, c := range chats {
		failures = append(failures, s.bus.Invalidate(ctx, store.CachedChat, c.ID))
	}
	failures = append(failures, s.audit(ctx, by, change{companyID: v.CompanyID, action: "visitor.erase", target: "visitor", id: v.ID, after: r}))
	return r, errors.Join(failures...)
}

// purge removes the visitor's events from all streams.
func purge(ctx context.Context, streams Purger, v chat.Visitor, chats []chat.Chat) (removed int, err error) {
	type part struct{ stream, filter string }
	var parts []part
	if v.AppID != "" {
		parts = append(parts,
			part{subject.Inbound, subject.VisitorRegistered(v.AppID, v.ID)}, part{subject.Inbound, subject.VisitorMessage(v.AppID, v.ID)},
			part{subject.Inbound, subject.ChatRated(v.AppID, v.ID)}, part{subject.Replies, subject.Reply(v.AppID, v.ID)}, part{subject.Parts, subject.Part(v.AppID, v.ID)})
	}
	ids := map[string]bool{v.ID: true}
	for _, c := range chats {
		ids[c.ID] = true
		parts = append(parts, part{subject.Inbound, subject.ControlChanged(c.CompanyID, c.ID)}, part{subject.Sends, subject.CompanyMessage(c.CompanyID, c.ID)})
	}
	for _, p := range parts {
		n, err := streams.Purge(ctx, p.stream, p.filter)
		if err != nil && !apperr.Is(err, apperr.NotFound) {
			return removed, err
		}
		removed += n
	}
	n, err := streams.PurgeWhere(ctx, func(_ string, data []byte) bool { return mentions(data, ids) })
	return removed + n, err
}

// NoteLetters records in the audit log that dead letters were redriven or dropped.
func (s *Service) NoteLetters(ctx context.Context, by Actor, action string, count int, stream, consumer string) error {
	return s.audit(ctx, by, change{action: action, target: "dead-letters", after: fields{"count": count, "stream": stream, "consumer": consumer}})
}

// mentions reports whether an event belongs to one of these chats or visitors.
func mentions(data []byte, ids map[string]bool) bool {
	var e struct {
		ChatID     string `json:"chatId"`
		ChatUserID string `json:"chatUserId"`
	}
	return json.Unmarshal(data, &e) == nil && (ids[e.ChatID] || ids[e.ChatUserID])
}
