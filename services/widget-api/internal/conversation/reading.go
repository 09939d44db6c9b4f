package conversation

import (
	"context"
	"sync"
	"time"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/presence"
	"github.com/parley-chat/parley/pkg/rpc"
)

// Signals publishes live signals to connected browsers.
type Signals interface {
	Signal(a rpc.Announcement) error
}

// Unread counts messages after a cursor; see [store.Store].
type Unread interface {
	CountUnread(ctx context.Context, chatID string, fromSupport bool, after chat.ReadCursor, limit int) (int, error)
}

// Reading is how far a chat was read by either side, how many messages the visitor has not read, and whether an
// agent is online.
type Reading struct {
	rpc.Reading
	AgentsKnown  bool
	AgentsOnline bool
}

// SocketReading answers the question of a gateway, which has authenticated the visitor and has no store: the
// reading of the visitor's open chat. If messageID is not empty, it calls [Service.MarkRead] with it first.
func (s *Service) SocketReading(
	ctx context.Context,
	companyID, appID, chatUserID, messageID string,
) (rpc.Reading, error) {
	c, err := s.currentChat(
		ctx,
		credential.VisitorClaims{CompanyID: companyID, AppID: appID, ChatUserID: chatUserID, IssuedAt: s.cfg.Now()},
	)
	if err == nil && messageID != "" {
		err = s.markReadUpTo(ctx, c, messageID)
	}
	if err != nil {
		return rpc.Reading{}, err
	}
	receipts, err := s.cfg.Receipts.ChatReceipts(ctx, c.ID)
	if err != nil {
		return rpc.Reading{}, err
	}
	unread, err := s.cfg.Unread.CountUnread(ctx, c.ID, true, receipts.ReadUpTo, rpc.MaxUnread)
	return rpc.Reading{ReadUpTo: receipts.ReadUpTo.MessageID, SeenUpTo: c.AgentsReadAt, Unread: unread}, err
}

// readingOfPage returns the reading that GET /message answers with the last page of a history, in headers; nil if
// it is not available, in which case the messages are answered without.
func (s *Service) readingOfPage(ctx context.Context, c chat.Chat, cursor chat.ReadCursor, p page) *Reading {
	unread, err := s.countUnread(ctx, c, cursor, p)
	if err != nil {
		s.cfg.Logger.WarnContext(ctx, "counting unread messages failed", "chatId", c.ID, "error", err)
		return nil
	}
	online, known := s.cfg.Agents.Online(ctx, c.CompanyID)
	return &Reading{
		Reading:      rpc.Reading{ReadUpTo: cursor.MessageID, SeenUpTo: c.AgentsReadAt, Unread: unread},
		AgentsKnown:  known,
		AgentsOnline: online,
	}
}

// countUnread counts the messages after the cursor: in the last page if that reaches back to it, else in the store.
func (s *Service) countUnread(ctx context.Context, c chat.Chat, cursor chat.ReadCursor, last page) (int, error) {
	if last.more && !cursor.Covers(last.messages[0]) {
		return s.cfg.Unread.CountUnread(ctx, c.ID, true, cursor, rpc.MaxUnread)
	}
	unread := 0
	for _, m := range last.messages {
		if m.IsFromSupport && !cursor.Covers(m) {
			unread++
		}
	}
	return min(unread, rpc.MaxUnread), nil
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
