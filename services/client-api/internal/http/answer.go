package http

import (
	"encoding/json"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/httpapi"
	"github.com/parley-chat/parley/pkg/idempotency"
)

// sendAnswer answers POST /message/send and POST /push-message, and their dry runs.
type sendAnswer struct {
	Message         string `json:"message"`
	MessageID       string `json:"messageId,omitempty"`
	DryRun          bool   `json:"dryRun,omitempty"`
	ChatID          string `json:"chatId,omitempty"`
	WindowExpiresAt string `json:"windowExpiresAt,omitempty"`
}

// accepted answers for an accepted message.
func accepted(messageID string) sendAnswer {
	return sendAnswer{Message: "Message sent successfully", MessageID: messageID}
}

// checked answers for a valid dry run.
func checked() sendAnswer { return sendAnswer{Message: "Message would be sent", DryRun: true} }

func timestamp(t time.Time) string { return string(chat.AppendTime(nil, t)) }

// onceAnswer is an answer that is stored for requests with the same idempotency key.
func onceAnswer(answer sendAnswer, err error) (idempotency.Answer, error) {
	if err != nil {
		return idempotency.Answer{}, err
	}
	body, err := json.Marshal(answer)
	return idempotency.Answer{Status: http.StatusOK, Body: body}, err
}

// ok answers with the JSON of v.
func ok(c echo.Context, v any) error {
	body, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return httpapi.JSON(c, http.StatusOK, body)
}
