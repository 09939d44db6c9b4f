// Package admin implements the operations of parleyctl and the panel on companies, tokens, applications, templates,
// chats, visitors and users. Each operation validates, writes to the store, invalidates the services' caches, and
// writes the audit log.
//
// Callers check permissions.
package admin

import (
	"context"
	"time"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/control"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/rpc"
	"github.com/parley-chat/parley/pkg/slot"
	"github.com/parley-chat/parley/pkg/store"
)

// Bus notifies the services of changes.
type Bus interface {
	control.Stream
	// StoredAt returns when its stream stored the last event on its subject; the zero time if that is another event.
	StoredAt(ctx context.Context, e event.Event) (time.Time, error)
	RPC() *rpc.Conn
	RevokeVisitorTokens(ctx context.Context, companyID, chatUserID string, validFrom time.Time) error
}

// Actor is the author of a change in the audit log.
type Actor struct {
	UserID string // empty: not a user of the panel
	Name   string // e-mail address, or the name of a tool
}

// ActorOf returns the actor for a user.
func ActorOf(u account.User) Actor { return Actor{UserID: u.ID, Name: u.Email} }

// createdBy returns the user's name for CreatedBy fields; empty for a tool.
func (a Actor) createdBy() string {
	if a.UserID == "" {
		return ""
	}
	return a.Name
}

// Service implements the operations. It is safe for concurrent use.
type Service struct {
	store   store.Store
	bus     Bus
	control *control.Service
	now     func() time.Time
	erasing *slot.Pool // one erasure at a time, see [Service.EraseVisitor]
}

// New returns a service. Without a bus it supports only operations on data that is not cached: creating companies,
// tokens, applications, templates and users, and changing users.
func New(s store.Store, b Bus, now func() time.Time) *Service {
	return &Service{store: s, bus: b, control: control.New(s, b, now), now: now, erasing: slot.NewPool(1, 1)}
}

// change is an audit log entry without its id and time.
type change struct {
	companyID, action, target, id string
	before, after                 fields // without secrets; nil: nothing
	// hidden: something has changed that before and after do not show, such as a password
	hidden bool
}

// audit writes the audit log entry of a completed change, of at most 8 KiB. A change that has changed nothing
// has none.
func (s *Service) audit(ctx context.Context, by Actor, c change) error {
	before, err := sideOf(c.before)
	if err != nil {
		return err
	}
	after, err := sideOf(c.after)
	if err != nil {
		return err
	}
	if before.same(after) && !c.hidden {
		return nil
	}
	e := account.AuditEntry{
		ID:        chat.NewID(),
		CompanyID: c.companyID,
		At:        s.now(),
		UserID:    by.UserID,
		User:      by.Name,
		Action:    c.action,
		Target:    c.target,
		TargetID:  c.id,
	}
	if e.Before, err = before.bounded(c.before); err != nil {
		return err
	}
	if e.After, err = after.bounded(c.after); err != nil {
		return err
	}
	return s.store.AppendAuditEntry(ctx, e)
}

// fields are the members of a value in the audit log.
type fields map[string]any
