package http

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/admin"
	"github.com/parley-chat/parley/pkg/admin/view"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/httpapi"
	"github.com/parley-chat/parley/pkg/idempotency"
	"github.com/parley-chat/parley/pkg/rpc"
	"github.com/parley-chat/parley/pkg/store"
)

type chatView struct {
	ID              string          `json:"id"`
	CompanyID       string          `json:"companyId"`
	AppID           string          `json:"appId,omitempty"`
	AppName         string          `json:"appName,omitempty"`
	Channel         chat.Channel    `json:"channel"`
	Status          chat.Status     `json:"status"`
	CreatedAt       chat.Time       `json:"createdAt"`
	ActivityAt      chat.Time       `json:"activityAt"`
	VisitorWroteAt  chat.Time       `json:"visitorWroteAt,omitzero"`
	WindowExpiresAt chat.Time       `json:"windowExpiresAt,omitzero"` // only where the window binds agents
	InWindow        bool            `json:"inWindow"`
	ClosedAt        chat.Time       `json:"closedAt,omitzero"`
	Unread          bool            `json:"unread"`
	UnreadCount     int             `json:"unreadCount"`
	Control         string          `json:"control"`
	ControlledSince chat.Time       `json:"controlledSince,omitzero"`
	Waiting         bool            `json:"waiting"`
	Handover        *handoverView   `json:"handover,omitempty"`
	Rating          *ratingView     `json:"rating,omitempty"`
	Assignee        *agentView      `json:"assignee"`
	Visitor         view.Visitor    `json:"visitor"`
	LastMessage     json.RawMessage `json:"lastMessage"` // not a notice
	Question        json.RawMessage `json:"question"`    // the visitor's last message
}

type agentView struct {
	ID     string `json:"id"`
	Name   string `json:"name"`
	Online *bool  `json:"online,omitempty"` // only in the list of agents, if known
}

const (
	// previews is the number of concurrent reads of last messages for a page.
	previews = 8
	// previewed is the number of messages of a chat among which its preview is found.
	previewed = 10
	// previewedBytes bounds their bytes: a message has up to 64 KiB.
	previewedBytes = 128 << 10
)

// viewsOfChats adds the names of applications and agents, and the last messages.
func (a api) viewsOfChats(ctx context.Context, entries []store.InboxEntry) ([]chatView, error) {
	views := make([]chatView, len(entries))
	names := lookup{apps: map[string]string{}, agents: map[string]string{}}
	for i, e := range entries {
		if err := names.add(ctx, a.Store, e.Chat); err != nil {
			return nil, err
		}
		views[i] = a.viewOfChat(e, names)
	}
	var group sync.WaitGroup
	failures := make([]error, len(entries))
	slots := make(chan struct{}, previews)
	for i, e := range entries {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			failures[i] = a.addLast(ctx, &views[i], e.Chat)
		})
	}
	group.Wait()
	for _, err := range failures {
		if err != nil && !apperr.Is(err, apperr.NotFound) { // erased in the meantime
			return nil, err
		}
	}
	return views, nil
}

// addLast adds the last messages of a chat, and how many of them no agent has read, to its view.
func (a api) addLast(ctx context.Context, v *chatView, c chat.Chat) error {
	end := store.HistoryQuery{Limit: previewed, MaxBytes: previewedBytes}
	last, _, err := a.Store.History(ctx, c.ID, end)
	wrote := v.preview(last)
	if wrote.After(c.VisitorWroteAt) { // stored after the chat was read
		c.VisitorWroteAt = wrote
		v.VisitorWroteAt = chat.Time(wrote)
		v.Unread = c.Unread()
	}
	if err != nil || !c.Unread() {
		return err
	}
	v.UnreadCount, err = a.Store.CountUnread(ctx, c.ID, false, c.AgentsRead(), rpc.MaxUnread)
	return err
}

// preview sets the messages that the list shows, and returns the time of the visitor's last one; zero if it
// is not among them.
func (v *chatView) preview(last []chat.Message) (wrote time.Time) {
	for _, m := range last {
		if !m.IsFromSupport {
			v.Question = m.AppendJSON(nil)
			wrote = m.CreatedAt
		}
		if !isNotice(m) {
			v.LastMessage = m.AppendJSON(nil)
		}
	}
	return wrote
}

// isNotice reports whether the platform wrote the message, such as "You are being connected to the team".
func isNotice(m chat.Message) bool {
	var data struct {
		Notice string `json:"notice"`
	}
	return m.IsFromSupport && json.Unmarshal(m.Data, &data) == nil && data.Notice != ""
}

// lookup caches names within one answer.
type lookup struct{ apps, agents map[string]string }

func (l lookup) add(ctx context.Context, s store.Store, c chat.Chat) error {
	if _, known := l.apps[c.AppID]; !known && c.AppID != "" {
		app, err := s.Application(ctx, c.AppID)
		if err != nil && !apperr.Is(err, apperr.NotFound) {
			return err
		}
		l.apps[c.AppID] = app.Name
	}
	if id := c.Control.Assignee; id != "" {
		if _, known := l.agents[id]; !known {
			u, err := s.User(ctx, id)
			if err != nil && !apperr.Is(err, apperr.NotFound) {
				return err
			}
			l.agents[id] = u.DisplayName()
		}
	}
	return nil
}

func (a api) viewOfChat(e store.InboxEntry, names lookup) chatView {
	c, now := e.Chat, a.Now()
	v := chatView{
		ID:             c.ID,
		CompanyID:      c.CompanyID,
		AppID:          c.AppID,
		AppName:        names.apps[c.AppID],
		Channel:        c.Channel,
		Status:         c.Status(now),
		CreatedAt:      chat.Time(c.CreatedAt),
		ActivityAt:     chat.Time(c.WindowStartedAt),
		VisitorWroteAt: chat.Time(c.VisitorWroteAt),
		InWindow:       c.Open(now), ClosedAt: chat.Time(c.ClosedAt), Unread: c.Unread(),
		Waiting: c.Waiting(now), Handover: viewOfHandover(c.Control.Handover), Rating: viewOfRating(c.Rating),
		Control: store.ControlBot, Visitor: view.VisitorOf(e.Visitor), LastMessage: json.RawMessage("null"),
		Question: json.RawMessage("null"),
	}
	if c.Windowed() {
		v.WindowExpiresAt, v.InWindow = chat.Time(c.WindowExpiresAt()), c.InWindow(now)
	}
	v.Visitor.ID = c.ChatUserID
	if c.Idle(now) && c.ClosedAt.IsZero() {
		v.ClosedAt = chat.Time(c.IdleClosesAt)
	}
	if c.Control.Agent {
		v.Control, v.ControlledSince = store.ControlAgent, chat.Time(c.Control.ChangedAt)
	}
	if c.Control.Assignee != "" {
		v.Assignee = &agentView{ID: c.Control.Assignee, Name: names.agents[c.Control.Assignee]}
	}
	return v
}

func (a api) getChats(c echo.Context, who caller, company string) error {
	asked, err := pageOf(c)
	if err != nil {
		return err
	}
	filter, err := a.inboxFilter(c, who, company)
	if err != nil {
		return err
	}
	page := store.InboxPage{Limit: asked.Limit}
	if asked.After != "" {
		page.After, err = parseCursor(asked.After)
		if err != nil {
			return err
		}
	}
	entries, next, err := a.Store.Inbox(ctxOf(c), filter, page)
	if err != nil {
		return err
	}
	rows, err := a.rowsOfChats(ctxOf(c), entries)
	if err != nil {
		return err
	}
	if len(rows) < len(entries) {
		next = filter.CursorAt(entries[len(rows)-1].Chat)
	}
	return answerPage(c, cursorOf(next), map[string]any{"chats": rows})
}

// rowsOfChats encodes a page of chats, at most [pageBytes] and one part more: their messages may have 64 KiB
// each.
func (a api) rowsOfChats(ctx context.Context, entries []store.InboxEntry) ([]json.RawMessage, error) {
	rows, size := []json.RawMessage{}, 0
	for part := range slices.Chunk(entries, previews) {
		if size >= pageBytes {
			break
		}
		views, err := a.viewsOfChats(ctx, part)
		if err != nil {
			return nil, err
		}
		for _, v := range views {
			row, err := encodeJSON(v)
			if err != nil {
				return nil, err
			}
			rows, size = append(rows, row), size+len(row)
		}
	}
	return rows, nil
}

// cursorOf returns the text of a cursor of the inbox; "" for nil.
func cursorOf(at *store.InboxCursor) string {
	if at == nil {
		return ""
	}
	return strconv.FormatInt(at.ActivityAt.UnixMilli(), 10) + "." + at.ChatID
}

// parseCursor is the inverse of cursorOf.
func parseCursor(text string) (*store.InboxCursor, error) {
	at, id, _ := strings.Cut(text, ".")
	ms, err := strconv.ParseInt(at, 10, 64)
	if _, ok := chat.ParseID(id); !ok || err != nil {
		return nil, errCursor()
	}
	return &store.InboxCursor{ActivityAt: time.UnixMilli(ms).UTC(), ChatID: id}, nil
}

func (a api) inboxFilter(c echo.Context, who caller, company string) (store.InboxFilter, error) {
	var f apperr.Fields
	const maxText = 200
	filter := store.InboxFilter{
		CompanyID: company,
		AppID:     c.QueryParam("appId"),
		Status:    c.QueryParam("status"),
		Text:      strings.TrimSpace(c.QueryParam("q")),
		Unread:    c.QueryParam("unread") == "true",
		Assignee:  c.QueryParam("assignee"),
		Control:   c.QueryParam("control"),
		VisitorID: c.QueryParam("visitorId"), Waiting: c.QueryParam("waiting") == "true", Now: a.Now(),
	}
	if filter.Assignee == "me" {
		filter.Assignee = who.User.ID
	}
	switch filter.Status {
	case "", store.StatusOpen, string(chat.Pending), string(chat.Active), string(chat.Closed):
	default:
		f.Add("status", "must be open, pending, active or closed")
	}
	switch filter.Control {
	case "", store.ControlAgent, store.ControlBot:
	default:
		f.Add("control", "must be agent or bot")
	}
	if len(filter.Text) > maxText {
		f.Add("q", "must have at most 200 bytes")
	}
	return filter, f.Err()
}

const (
	// countedChats bounds each count of chats.
	countedChats = 100
	// countedPages bounds the pages that a count reads: among many chats that the bot answers, those with agents are
	// few, and one page examines [store.MaxExamined].
	countedPages = 10
)

// firstChats returns the first chats of the inbox, at most countedChats.
func (a api) firstChats(ctx context.Context, f store.InboxFilter) (found []store.InboxEntry, err error) {
	page := store.InboxPage{}
	for range countedPages {
		page.Limit = countedChats - len(found)
		entries, next, err := a.Store.Inbox(ctx, f, page)
		if err != nil {
			return nil, err
		}
		found = append(found, entries...)
		if next == nil || len(found) == countedChats {
			break
		}
		page.After = next
	}
	return found, nil
}

// counts are the numbers of open chats that wait for people. Chats that the bot answers are not among them.
type counts struct {
	Waiting   int `json:"waiting"`
	Unread    int `json:"unread"` // with agents, and something in them is unread
	Mine      int `json:"mine"`   // of these, assigned to the caller
	Attention int `json:"attention"`
}

func (a api) countChats(c echo.Context, who caller, company string) (any, error) {
	open := store.InboxFilter{CompanyID: company, Status: store.StatusOpen, Control: store.ControlAgent, Now: a.Now()}
	waitingOnly, unreadOnly := open, open
	waitingOnly.Waiting, unreadOnly.Unread = true, true
	waiting, err := a.firstChats(ctxOf(c), waitingOnly)
	if err != nil {
		return nil, err
	}
	unread, err := a.firstChats(ctxOf(c), unreadOnly)
	if err != nil {
		return nil, err
	}
	n := counts{Waiting: len(waiting), Unread: len(unread), Attention: len(waiting)}
	for _, e := range unread {
		if e.Chat.Control.Assignee == who.User.ID {
			n.Mine++
		}
		if !e.Chat.Waiting(open.Now) {
			n.Attention++
		}
	}
	return n, nil
}

// chat finds the chat of a route.
func (a api) chat(c echo.Context, who caller) (chat.Chat, error) {
	return recordOf(c, who, a.Store.Chat, func(found chat.Chat) string { return found.CompanyID }, apperr.ChatNotFound)
}

// getChat also answers the changes of a chat.
func (a api) getChat(c echo.Context, _ caller, found chat.Chat) (any, error) {
	v, err := a.Store.Visitor(ctxOf(c), found.ChatUserID)
	if err != nil && !apperr.Is(err, apperr.NotFound) {
		return nil, err
	}
	views, err := a.viewsOfChats(ctxOf(c), []store.InboxEntry{{Chat: found, Visitor: v}})
	if err != nil {
		return nil, err
	}
	return views[0], nil
}

// getMessages answers a page of the history, with the status of agents' and companies' messages.
func (a api) getMessages(c echo.Context, _ caller, found chat.Chat) error {
	page, err := pageOf(c)
	if err != nil {
		return err
	}
	messages, more, err := a.Store.History(
		ctxOf(c),
		found.ID,
		store.HistoryQuery{Before: page.After, Limit: page.Limit, MaxBytes: pageBytes},
	)
	if page.After != "" && apperr.Is(err, apperr.Invalid) {
		return errCursor()
	}
	if err != nil {
		return err
	}
	rows := make([]json.RawMessage, len(messages))
	for i, m := range messages {
		row := m.AppendJSON(nil)
		if m.IsFromSupport {
			status, err := a.Store.MessageStatus(ctxOf(c), found.CompanyID, m.ID)
			if err != nil && !apperr.Is(err, apperr.NotFound) {
				return err
			}
			if err == nil {
				row = append(row[:len(row)-1], `,"status":"`+status.Status()+`"}`...)
			}
		}
		rows[i] = row
	}
	answer, next := map[string]any{"messages": rows}, ""
	if more {
		next = messages[0].ID
	}
	if page.After == "" {
		receipts, err := a.Store.ChatReceipts(ctxOf(c), found.ID)
		if err != nil {
			return err
		}
		if !receipts.ReadUpTo.At.IsZero() {
			answer["seenUpTo"] = chat.Time(receipts.ReadUpTo.At)
		}
	}
	return answerPage(c, next, answer)
}

type replyRequest struct {
	Type       string            `json:"type"`
	Data       httpapi.Object    `json:"data"`
	TemplateID string            `json:"templateId"`
	Values     map[string]string `json:"values"`
}

var errKeyRequired = apperr.IdempotencyKeyRequired.New()

// reply sends a message once for each Idempotency-Key, also after a crash.
func (a api) reply(c echo.Context, who caller) error {
	found, err := a.chat(c, who)
	if err != nil {
		return err
	}
	r, err := decoded[replyRequest](c)
	if err != nil {
		return err
	}
	draft := admin.Draft{
		Type:       chat.MessageType(r.Type),
		Data:       json.RawMessage(r.Data),
		TemplateID: r.TemplateID,
		Values:     r.Values,
	}
	if err := draft.Check(); err != nil {
		return err
	}
	values, err := json.Marshal(r.Values)
	if err != nil {
		return err
	}
	canonical := ""
	if len(r.Data) > 0 {
		canonical = idempotency.Canonical(r.Data)
	}
	return a.replyOnce(c, who, found, draft, idempotency.Fingerprint(r.Type, canonical, r.TemplateID, string(values)))
}

func (a api) replyOnce(c echo.Context, who caller, found chat.Chat, draft admin.Draft, fingerprint string) error {
	if !idempotency.HasKey(c.Request().Header) {
		return errKeyRequired
	}
	request := idempotency.Request{
		Scope:       "POST /api/chats/messages|" + who.User.ID + "|" + found.ID,
		Fingerprint: fingerprint,
		Permit:      a.Limits.key(c, who.User.ID, found.CompanyID),
	}
	return a.Idempotent.Answer(c, request,
		func(ctx context.Context, identity chat.MessageIdentity) (idempotency.Answer, error) {
			m, err := a.Admin.Reply(ctx, who.User, found.ID, draft, identity)
			return idempotency.Answer{Status: http.StatusCreated, Body: m.AppendJSON(nil)}, err
		})
}

type controlRequest struct {
	Control string `json:"control"`
}

func (a api) setControl(c echo.Context, who caller, found chat.Chat, r controlRequest) (any, error) {
	var err error
	switch r.Control {
	case store.ControlAgent:
		found, err = a.Admin.TakeOver(ctxOf(c), who.User, found)
	case store.ControlBot:
		found, err = a.Admin.HandBack(ctxOf(c), who.actor(), found)
	default:
		err = apperr.Fields{{Name: "control", Message: "must be agent or bot"}}.Err()
	}
	if err != nil {
		return nil, err
	}
	return a.getChat(c, who, found)
}

type assigneeRequest struct {
	UserID *string `json:"userId"`
}

func (a api) setAssignee(c echo.Context, who caller, found chat.Chat, r assigneeRequest) (any, error) {
	userID := ""
	if r.UserID != nil {
		userID = *r.UserID
	}
	if userID == "me" {
		userID = who.User.ID
	}
	found, err := a.Admin.Assign(ctxOf(c), who.actor(), found, userID)
	if err != nil {
		return nil, err
	}
	return a.getChat(c, who, found)
}

func (a api) closeChat(c echo.Context, who caller, found chat.Chat) (any, error) {
	found, err := a.Admin.CloseChat(ctxOf(c), who.actor(), found)
	if err != nil {
		return nil, err
	}
	return a.getChat(c, who, found)
}

// getAgents lists the users who can be assigned.
func (a api) getAgents(c echo.Context, who caller, company string) error {
	found, next, err := a.readUsers(c, company)
	if err != nil {
		return err
	}
	rows := []agentView{}
	for _, u := range found {
		if u.Role.May(account.Inbox) && u.Status() == account.StatusActive {
			rows = append(rows, agentView{ID: u.ID, Name: u.DisplayName()})
		}
	}
	if who.User.Role == account.Operator && next == "" {
		rows = append(rows, agentView{ID: who.User.ID, Name: who.User.DisplayName()})
	}
	a.addOnline(ctxOf(c), company, rows)
	return answerPage(c, next, map[string]any{"agents": rows})
}
