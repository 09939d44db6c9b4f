package http

import (
	"context"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/httpapi"
	"github.com/parley-chat/parley/pkg/presence"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/services/panel/internal/live"
)

type readRequest struct {
	unvalidated `json:"-"`
	UpTo        time.Time `json:"upTo"`
}

// readChat moves the company's read cursor to the time of the newest message shown to the agent, or, without
// one, to now.
func (a api) readChat(c echo.Context, who caller) error {
	found, err := a.chat(c, who)
	if err != nil {
		return err
	}
	var r readRequest
	if err := httpapi.Decode(c, &r); err != nil {
		return err
	}
	latest := a.Now()
	if latest.Before(found.VisitorWroteAt) { // clocks differ
		latest = found.VisitorWroteAt
	}
	upTo := r.UpTo
	if upTo.IsZero() || upTo.After(latest) {
		upTo = latest
	}
	if _, err := a.Store.ChangeChat(ctxOf(c), found.ID, store.ChatChange{AgentsReadAt: upTo}); err != nil {
		return err
	}
	if upTo.After(found.AgentsReadAt) && found.AppID != "" {
		_ = a.Bus.Signal(event.ReadCursorMoved{ // best effort: the store has it, and the history shows it
			CompanyID:  found.CompanyID,
			AppID:      found.AppID,
			ChatUserID: found.ChatUserID,
			ChatID:     found.ID,
			Side:       subject.SideSupport,
			UpTo:       upTo,
		})
	}
	if err := live.Notify(ctxOf(c), a.Bus, found.CompanyID, live.Notice{Kind: live.Read, ChatID: found.ID}); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// visitorPresence reports whether a visitor is connected, if known.
type visitorPresence struct {
	Online bool      `json:"online"`
	SeenAt chat.Time `json:"lastSeenAt,omitzero"`
}

// notePresence notifies the other agents that this one has the chat open, and answers whether the visitor is online.
func (a api) notePresence(c echo.Context, who caller) error {
	found, err := a.chat(c, who)
	if err != nil {
		return err
	}
	err = live.Notify(ctxOf(c), a.Bus, found.CompanyID, live.Notice{
		Kind: live.Presence, ChatID: found.ID, UserID: who.User.ID, Name: who.User.DisplayName(),
		Expires: int(live.PresenceTTL / time.Second), AppID: applicationOf(found), VisitorID: found.ChatUserID,
	})
	if err != nil {
		return err
	}
	answer := map[string]any{}
	if a.Presence != nil && found.AppID != "" {
		if states, err := a.Presence.States(ctxOf(c), presence.Visitor(found.AppID, found.ChatUserID)); err == nil {
			answer["visitor"] = visitorPresence{Online: states[0].Online, SeenAt: chat.Time(states[0].SeenAt)}
		}
	}
	return answerJSON(c, http.StatusOK, answer)
}

// noteTyping signals to the visitor and to other agents with the chat open that the agent is typing, at most
// once in two seconds.
func (a api) noteTyping(c echo.Context, who caller) error {
	found, err := a.chat(c, who)
	if err != nil {
		return err
	}
	if found.Open(a.Now()) && a.Typing.Take(ctxOf(c), found.ID+"|"+who.User.ID).Allowed {
		if err := a.Bus.Signal(event.Typing{
			CompanyID: found.CompanyID, AppID: applicationOf(found), ChatUserID: found.ChatUserID, Side: subject.SideSupport,
			Name: who.User.DisplayName(), UserID: who.User.ID, At: a.Now(),
		}); err != nil {
			return err
		}
	}
	return c.NoContent(http.StatusNoContent)
}

// applicationOf returns the application in the subjects of a chat. A chat that a push opened has none; only
// agents see typing in it.
func applicationOf(c chat.Chat) string {
	if c.AppID == "" {
		return subject.NoApplication
	}
	return c.AppID
}

// holdAgent records that a user has the panel of a company open.
func (a api) holdAgent(ctx context.Context, companyID, userID string) {
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
