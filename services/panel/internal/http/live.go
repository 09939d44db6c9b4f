package http

import (
	"context"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/presence"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/services/panel/internal/live"
)

type readRequest struct {
	UpTo time.Time `json:"upTo"`
}

// readChat moves the company's read cursor to the time of the newest message shown to the agent, or, without
// one, to now.
func (a api) readChat(c echo.Context, _ caller, found chat.Chat, r readRequest) (any, error) {
	latest := a.Now()
	if latest.Before(found.VisitorWroteAt) { // clocks differ
		latest = found.VisitorWroteAt
	}
	upTo := r.UpTo
	if upTo.IsZero() || upTo.After(latest) {
		upTo = latest
	}
	if _, err := a.Store.ChangeChat(ctxOf(c), found.ID, store.ChatChange{AgentsReadAt: upTo}); err != nil {
		return nil, err
	}
	if !upTo.After(found.AgentsReadAt) {
		return nil, nil // read already: each notice goes to all browsers of the company
	}
	if found.AppID != "" {
		_ = a.Calls.Signal(event.ReadCursorMoved{ // best effort: the store has it, and the history shows it
			CompanyID:  found.CompanyID,
			AppID:      found.AppID,
			ChatUserID: found.ChatUserID,
			ChatID:     found.ID,
			Side:       subject.SideSupport,
			UpTo:       upTo,
		})
	}
	return nil, a.Calls.Signal(live.Notice{CompanyID: found.CompanyID, Kind: live.Read, ChatID: found.ID})
}

// visitorPresence reports whether a visitor is connected, if known.
type visitorPresence struct {
	Online bool      `json:"online"`
	SeenAt chat.Time `json:"lastSeenAt,omitzero"`
}

// notePresence notifies the other agents that this one has the chat open, at most once in two seconds, and answers
// whether the visitor is online.
func (a api) notePresence(c echo.Context, who caller, found chat.Chat) (any, error) {
	if a.Present.Take(ctxOf(c), found.ID+"|"+who.User.ID).Allowed {
		err := a.Calls.Signal(live.Notice{
			CompanyID: found.CompanyID,
			Kind:      live.Presence,
			ChatID:    found.ID,
			UserID:    who.User.ID,
			Name:      who.User.DisplayName(),
			Expires:   int(live.PresenceTTL / time.Second),
			AppID:     applicationOf(found),
			VisitorID: found.ChatUserID,
		})
		if err != nil {
			return nil, err
		}
	}
	answer := map[string]any{}
	if a.Presence != nil && found.AppID != "" {
		if states, err := a.Presence.States(ctxOf(c), presence.Visitor(found.AppID, found.ChatUserID)); err == nil {
			answer["visitor"] = visitorPresence{Online: states[0].Online, SeenAt: chat.Time(states[0].SeenAt)}
		}
	}
	return answer, nil
}

// noteTyping signals to the visitor and to other agents with the chat open that the agent is typing, at most
// once in two seconds.
func (a api) noteTyping(c echo.Context, who caller, found chat.Chat) (any, error) {
	if !found.Open(a.Now()) || !a.Typing.Take(ctxOf(c), found.ID+"|"+who.User.ID).Allowed {
		return nil, nil
	}
	return nil, a.Calls.Signal(event.Typing{
		CompanyID:  found.CompanyID,
		AppID:      applicationOf(found),
		ChatUserID: found.ChatUserID,
		Side:       subject.SideSupport,
		Name:       who.User.DisplayName(),
		UserID:     who.User.ID,
		At:         a.Now(),
	})
}

// applicationOf returns the application in the subjects of a chat. A chat that a push opened has none; only
// agents see typing in it.
func applicationOf(c chat.Chat) string {
	if c.AppID == "" {
		return subject.NoApplication
	}
	return c.AppID
}

// setOnline records that a user has the panel of a company open, until the next heartbeat.
func (a api) setOnline(ctx context.Context, companyID, userID string) {
	if a.Presence == nil {
		return
	}
	// the next heartbeat repeats it
	_ = a.Presence.SetOnline(ctx, "panel", presence.Agent(companyID, userID), presence.Agents(companyID))
}

// addOnline adds which agents have the panel open, if known.
func (a api) addOnline(ctx context.Context, companyID string, agents []agentView) {
	if a.Presence == nil {
		return
	}
	keys := make([]string, len(agents))
	for i, agent := range agents {
		keys[i] = presence.Agent(companyID, agent.ID)
	}
	states, err := a.Presence.States(ctx, keys...)
	if err != nil {
		return
	}
	for i := range agents {
		agents[i].Online = &states[i].Online
	}
}
