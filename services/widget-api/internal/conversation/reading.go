package conversation

import (
	"context"
	"sync"
	"time"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/presence"
	"github.com/parley-chat/parley/pkg/rpc"
	"github.com/parley-chat/parley/pkg/store"
)

// Signals publishes live signals to connected browsers.
type Signals interface {
	Signal(a rpc.Announcement) error
}

// Unread counts messages after a cursor; see [store.Store].
type Unread interface {
	CountUnread(ctx context.Context, chatID string, fromSupport bool, after chat.ReadCursor, limit int) (int, error)
}

// Reading is how far a chat was read, and whether an agent is online.
type Reading struct {
	rpc.Reading
	AgentsKnown  bool
	AgentsOnline bool
}

// ReadThrough is [Service.Read] for a visitor that a gateway has authenticated, and returns the resulting
// read cursor. An empty messageID moves nothing.
func (d *Service) ReadThrough(
	ctx context.Context,
	companyID, appID, chatUserID, messageID string,
) (rpc.Reading, error) {
	c, err := d.current(
		ctx,
		credential.VisitorClaims{CompanyID: companyID, AppID: appID, ChatUserID: chatUserID, IssuedAt: d.cfg.Now()},
	)
	if err == nil && messageID != "" {
		err = d.readUpTo(ctx, c, messageID)
	}
	if err != nil {
		return rpc.Reading{}, err
	}
	receipts, err := d.cfg.Receipts.ChatReceipts(ctx, c.ID)
	if err != nil {
		return rpc.Reading{}, err
	}
	return d.reading(ctx, c, receipts.ReadUpTo, page{more: true})
}

// reading counts unread messages: in the page if that reaches back to the cursor, else in the store.
func (d *Service) reading(ctx context.Context, c chat.Chat, cursor chat.ReadCursor, p page) (r rpc.Reading, err error) {
	r = rpc.Reading{ReadUpTo: cursor.MessageID, SeenUpTo: c.AgentsReadAt}
	if p.more && (len(p.messages) == 0 || !cursor.Covers(p.messages[0])) {
		r.Unread, err = d.cfg.Unread.CountUnread(ctx, c.ID, true, cursor, rpc.MaxUnread)
		return r, err
	}
	for _, m := range p.messages {
		if m.IsFromSupport && !cursor.Covers(m) {
			r.Unread++
		}
	}
	r.Unread = min(r.Unread, rpc.MaxUnread)
	return r, nil
}

// readingOf returns the reading headers of GET /message; nil if they are not available, in which case the
// messages are answered without.
func (d *Service) readingOf(ctx context.Context, c chat.Chat, receipts store.ChatReceipts, p page) *Reading {
	found, err := d.reading(ctx, c, receipts.ReadUpTo, p)
	if err != nil {
		d.cfg.Logger.WarnContext(ctx, "counting unread messages failed", "chatId", c.ID, "error", err)
		return nil
	}
	r := &Reading{Reading: found}
	r.AgentsOnline, r.AgentsKnown = d.cfg.Agents.Online(ctx, c.CompanyID)
	return r
}

// agentsTTL is how long presence is cached.
const agentsTTL = 5 * time.Second

// Agents reports whether a company has agents online. It reads the store once in five seconds per company. A
// nil *Agents knows nothing.
type Agents struct {
	store presence.Store
	now   func() time.Time

	mu    sync.Mutex
	known map[string]agentsState
}

type agentsState struct {
	online, known bool
	until         time.Time
}

// NewAgents returns nil without a store. now is the clock.
func NewAgents(s presence.Store, now func() time.Time) *Agents {
	if s == nil {
		return nil
	}
	return &Agents{store: s, now: now, known: make(map[string]agentsState)}
}

// Online reports whether an agent of the company has the panel open; known is false if presence is not available.
func (a *Agents) Online(ctx context.Context, companyID string) (online, known bool) {
	if a == nil {
		return false, false
	}
	now := a.now()
	a.mu.Lock()
	state := a.known[companyID]
	a.mu.Unlock()
	if now.Before(state.until) {
		return state.online, state.known
	}
	found, err := a.store.States(ctx, presence.Agents(companyID))
	state = agentsState{known: err == nil, until: now.Add(agentsTTL)}
	state.online = state.known && found[0].Online
	a.mu.Lock()
	defer a.mu.Unlock()
	a.known[companyID] = state
	return state.online, state.known
}
