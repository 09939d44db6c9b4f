package http

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/httpapi"
	"github.com/parley-chat/parley/pkg/store"
)

// Page sizes.
const (
	chatsPage, maxChats         = 50, 100
	messagesPage, maxMessages   = 100, 200
	templatesPage, maxTemplates = 50, 100
)

type chatView struct {
	ChatID          string       `json:"chatId"`
	AppID           string       `json:"appId,omitempty"`
	Channel         chat.Channel `json:"channel"`
	Status          chat.Status  `json:"status"`
	AnsweredBy      string       `json:"answeredBy"`
	CreatedAt       chat.Time    `json:"createdAt"`
	ActivityAt      chat.Time    `json:"activityAt"`
	VisitorWroteAt  chat.Time    `json:"visitorWroteAt,omitzero"`
	WindowExpiresAt chat.Time    `json:"windowExpiresAt"`
	ClosedAt        chat.Time    `json:"closedAt,omitzero"`
	Visitor         visitorView  `json:"visitor"`
}

type visitorView struct {
	ChatUserID string `json:"chatUserId"`
	FirstName  string `json:"firstName,omitempty"`
	LastName   string `json:"lastName,omitempty"`
	Email      string `json:"email,omitempty"`
	Phone      string `json:"phone,omitempty"`
	UserID     string `json:"userId,omitempty"`
	VerifiedBy string `json:"verifiedBy,omitempty"`
}

func (a api) viewOf(e store.InboxEntry) chatView {
	c, v := e.Chat, e.Visitor
	view := chatView{
		ChatID: c.ID, AppID: c.AppID, Channel: c.Channel, Status: a.Lookups.ChatStatus(c), AnsweredBy: store.ControlBot,
		CreatedAt:       chat.Time(c.CreatedAt),
		ActivityAt:      chat.Time(c.WindowStartedAt),
		VisitorWroteAt:  chat.Time(c.VisitorWroteAt),
		WindowExpiresAt: chat.Time(c.WindowExpiresAt()), ClosedAt: chat.Time(c.ClosedAt),
		Visitor: visitorView{
			ChatUserID: c.ChatUserID,
			FirstName:  v.FirstName,
			LastName:   v.LastName,
			Email:      v.Email,
			Phone:      v.Phone,
			UserID:     v.UserID,
			VerifiedBy: v.VerifiedBy,
		},
	}
	if c.Control.Agent {
		view.AnsweredBy = store.ControlAgent
	}
	if view.Status == chat.Closed && c.ClosedAt.IsZero() {
		view.ClosedAt = chat.Time(c.IdleClosesAt)
	}
	return view
}

func (a api) getChats(c echo.Context, companyID string) error {
	q := queryOf(c)
	filter := store.InboxFilter{
		AppID:   q.id("appId"),
		Status:  q.oneOf("status", store.StatusOpen, string(chat.Pending), string(chat.Active), string(chat.Closed)),
		Profile: store.Profile{UserID: q.text("userId"), Email: q.text("email"), Phone: q.phone("phone")},
	}
	page := store.InboxPage{Limit: q.limit(chatsPage, maxChats), After: q.cursor()}
	if err := q.wrong.Err(); err != nil {
		return err
	}
	cost := int64(chatsPageCost)
	if filter != (store.InboxFilter{}) {
		cost = filteredPageCost
	}
	held, err := httpapi.HoldAnswer(c, cost)
	if err != nil {
		return err
	}
	entries, next, err := a.Lookups.Chats(c.Request().Context(), companyID, filter, page)
	if err != nil {
		return err
	}
	held.Shrink(chatsPageCost) // the examination has ended
	if next != nil {
		q.setNext(c, "after", strconv.FormatInt(next.ActivityAt.UnixMilli(), 10)+"."+next.ChatID)
	}
	views := make([]chatView, len(entries))
	for i, e := range entries {
		views[i] = a.viewOf(e)
	}
	return answerUncached(c, views)
}

// cursor parses the cursor of a Link header.
func (q *query) cursor() *store.InboxCursor {
	text := q.text("after")
	if text == "" {
		return nil
	}
	at, id, _ := strings.Cut(text, ".")
	ms, err := strconv.ParseInt(at, 10, 64)
	if _, ok := chat.ParseID(id); !ok || err != nil {
		q.wrong.Add("after", "must be a cursor of a Link header")
		return nil
	}
	return &store.InboxCursor{ActivityAt: time.UnixMilli(ms).UTC(), ChatID: id}
}

func (a api) getChat(c echo.Context, companyID string) error {
	e, err := a.Lookups.Chat(c.Request().Context(), companyID, c.Param("id"))
	if err != nil {
		return err
	}
	return answerUncached(c, a.viewOf(e))
}

func (a api) getMessages(c echo.Context, companyID string) error {
	q := queryOf(c)
	history := store.HistoryQuery{Before: q.text("before"), Limit: q.limit(messagesPage, maxMessages)}
	if err := q.wrong.Err(); err != nil {
		return err
	}
	held, err := httpapi.HoldAnswer(c, pageCost)
	if err != nil {
		return err
	}
	id, messages, more, err := a.Lookups.Messages(c.Request().Context(), companyID, c.Param("id"), history)
	if err != nil {
		return err
	}
	if more {
		q.setNext(c, "before", messages[0].ID)
	}
	held.Shrink(sizeOf(messages))
	noStore(c)
	return httpapi.WriteArray(c, len(messages), func(to []byte, i int) []byte {
		return messages[i].AppendDelivery(to, id) // by hand: the data must pass byte for byte
	})
}

// sizeOf estimates the memory of the messages.
func sizeOf(messages []chat.Message) (bytes int64) {
	const record = 512 // without the data
	for _, m := range messages {
		bytes += int64(len(m.Data)) + record
	}
	return bytes
}

type templateView struct {
	TemplateID string          `json:"templateId"`
	Name       string          `json:"name"`
	Status     string          `json:"status"`
	Text       string          `json:"text"`
	Parameters []parameterView `json:"parameters"`
}

type parameterView struct {
	Name     string `json:"name"`
	Default  string `json:"default,omitempty"`
	Required bool   `json:"required"`
}

func (a api) getTemplates(c echo.Context, companyID string) error {
	q := queryOf(c)
	status := q.oneOf("status", chat.TemplateDraft, chat.TemplatePending, chat.TemplateApproved, chat.TemplateRejected)
	page := store.Page{After: q.id("after"), Limit: q.limit(templatesPage, maxTemplates)}
	if err := q.wrong.Err(); err != nil {
		return err
	}
	if _, err := httpapi.HoldAnswer(c, pageCost); err != nil {
		return err
	}
	found, next, err := a.Lookups.Templates(c.Request().Context(), companyID, status, page)
	if err != nil {
		return err
	}
	if next != "" {
		q.setNext(c, "after", next)
	}
	views := make([]templateView, len(found))
	for i, t := range found {
		views[i] = templateView{
			TemplateID: t.ID,
			Name:       t.Name,
			Status:     t.Status,
			Text:       t.Text,
			Parameters: make([]parameterView, len(t.Parameters)),
		}
		for n, p := range t.Parameters {
			views[i].Parameters[n] = parameterView{Name: p.Name, Default: p.Default, Required: p.Required()}
		}
	}
	return answerUncached(c, views)
}

// answerUncached answers with Cache-Control: no-store.
func answerUncached(c echo.Context, body any) error {
	noStore(c)
	return c.JSON(http.StatusOK, body)
}

func noStore(c echo.Context) { c.Response().Header().Set(echo.HeaderCacheControl, "no-store") }
