package http

import (
	"net/http"
	"net/url"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/httpapi"
	"github.com/parley-chat/parley/services/widget-api/internal/conversation"
)

const defaultChats, maxChats = 20, 100

// earlierView is one of the visitor's chats in a list.
type earlierView struct {
	ChatID    string      `json:"chatId"`
	Status    chat.Status `json:"status"`
	CreatedAt string      `json:"createdAt"`
	ClosedAt  string      `json:"closedAt,omitempty"`
}

func (a api) getChats(c echo.Context, who credential.VisitorClaims) error {
	list, err := chatListOf(c.Request().URL.RawQuery)
	if err != nil {
		return err
	}
	chats, more, err := a.Conversations.ListChats(c.Request().Context(), who, list)
	if err != nil {
		return err
	}
	header := c.Response().Header()
	header.Set(echo.HeaderCacheControl, "no-store")
	if more {
		header.Set("Link", linkTo("after", chats[len(chats)-1].ID, list.Limit))
	}
	now := a.Now()
	views := make([]earlierView, len(chats))
	for i, c := range chats {
		views[i] = earlierView{
			ChatID:    c.ID,
			Status:    c.Status(now),
			CreatedAt: timeText(c.CreatedAt),
			ClosedAt:  timeText(c.EndedAt(now)),
		}
	}
	return c.JSON(http.StatusOK, views)
}

// chatListOf parses the query of a list of chats.
func chatListOf(query string) (conversation.ChatList, error) {
	var wrong apperr.Fields
	list := conversation.ChatList{Limit: defaultChats}
	values, err := url.ParseQuery(query)
	if err != nil {
		wrong.Add("query", "must be a valid query string")
		return list, wrong.Err()
	}
	if given, text := once(&wrong, values, "after"); given {
		list.After = text
		if text == "" {
			wrong.Add("after", "must be the id of a chat")
		}
	}
	if given, text := once(&wrong, values, "limit"); given {
		list.Limit = limitOf(&wrong, text, maxChats)
	}
	return list, wrong.Err()
}

func (a api) getChatHistory(c echo.Context, who credential.VisitorClaims) error {
	page, err := pageOf(c.Request().URL.RawQuery)
	if err != nil {
		return err
	}
	page.Address = httpapi.ClientAddress(c)
	return a.Conversations.ChatHistory(c.Request().Context(), who, c.Param("id"), page, answerHistory(c, page))
}
