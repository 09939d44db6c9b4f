package http

import (
	"context"
	"net/http"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/httpapi"
	"github.com/parley-chat/parley/pkg/idempotency"
	"github.com/parley-chat/parley/services/widget-api/internal/conversation"
)

type chatView struct {
	ChatID          string      `json:"chatId"`
	Status          chat.Status `json:"status"`
	Control         string      `json:"control"`
	Waiting         bool        `json:"waiting"`
	HandoverBy      string      `json:"handoverBy,omitempty"`
	HandoverOffered bool        `json:"handoverOffered"`
	ClosedAt        string      `json:"closedAt,omitempty"`
	RateableUntil   string      `json:"rateableUntil,omitempty"`
	Rating          *ratingView `json:"rating,omitempty"`
	Agents          agentsView  `json:"agents"`
}

type ratingView struct {
	Score   int    `json:"score"`
	Comment string `json:"comment,omitempty"`
	RatedAt string `json:"ratedAt"`
}

type agentsView struct {
	Available bool   `json:"available"`
	Online    *bool  `json:"online,omitempty"` // nil: unknown
	OpensAt   string `json:"opensAt,omitempty"`
}

func timeText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(chat.TimeFormat)
}

func viewOfState(s conversation.State, now time.Time) chatView {
	c := s.Chat
	open := c.Open(now)
	v := chatView{
		ChatID:          c.ID,
		Status:          c.Status(now),
		Control:         "bot",
		Waiting:         open && c.Control.Waiting(),
		HandoverBy:      c.Control.Handover.By,
		HandoverOffered: open && !c.Control.Agent && s.Support.HandoverButton,
		Agents:          agentsView{Available: s.Support.Open(now)},
	}
	if c.Control.Agent {
		v.Control = "agent"
	}
	v.ClosedAt = timeText(c.EndedAt(now))
	if s.AgentsKnown {
		v.Agents.Online = &s.AgentsOnline
	}
	if s.Support.Rating && c.Rateable(now) {
		v.RateableUntil = timeText(c.RateableUntil())
	}
	if c.Rating.Score != 0 {
		v.Rating = &ratingView{Score: c.Rating.Score, Comment: c.Rating.Comment, RatedAt: timeText(c.Rating.At)}
	}
	if !v.Agents.Available {
		v.Agents.OpensAt = timeText(s.Support.OpensAt(now))
	}
	return v
}

// answerState answers with the state of the visitor's chat.
func (a api) answerState(c echo.Context, s conversation.State, err error) error {
	if err != nil {
		return err
	}
	c.Response().Header().Set(echo.HeaderCacheControl, "no-store")
	return c.JSON(http.StatusOK, viewOfState(s, a.Now()))
}

func (a api) getChat(c echo.Context, who credential.VisitorClaims) error {
	s, err := a.Conversations.State(c.Request().Context(), who)
	return a.answerState(c, s, err)
}

// handOver hands the visitor's chat to the agents. It ignores the body.
func (a api) handOver(c echo.Context, who credential.VisitorClaims) error {
	s, err := a.Conversations.HandOver(c.Request().Context(), who, payerOf(c, who))
	return a.answerState(c, s, err)
}

type offlineRequest struct {
	Message string `json:"message"`
	Email   string `json:"email"`
}

func (r *offlineRequest) message() conversation.OfflineMessage {
	return conversation.OfflineMessage{Text: r.Message, Email: r.Email}
}

// Validate implements [httpapi.Validator].
func (r *offlineRequest) Validate() apperr.Fields { return r.message().Validate() }

func (a api) leaveMessage(c echo.Context, who credential.VisitorClaims) error {
	var r offlineRequest
	if err := httpapi.Decode(c, &r); err != nil {
		return err
	}
	if !idempotency.HasKey(c.Request().Header) {
		m, err := a.Conversations.LeaveMessage(
			c.Request().Context(), who, payerOf(c, who), r.message(), chat.MessageIdentity{},
		)
		if err != nil {
			return err
		}
		return c.JSONBlob(http.StatusCreated, m.AppendJSON(nil))
	}
	return a.Idempotent.Answer(
		c,
		idempotency.Request{
			Scope:       "POST /chat/offline-message|" + who.ChatUserID,
			Fingerprint: idempotency.Fingerprint(r.Message, r.Email),
			Permit:      a.Limits.key(c, who),
		},
		func(ctx context.Context, identity chat.MessageIdentity) (idempotency.Answer, error) {
			m, err := a.Conversations.LeaveMessage(ctx, who, payerOf(c, who), r.message(), identity)
			return idempotency.Answer{Status: http.StatusCreated, Body: m.AppendJSON(nil)}, err
		},
	)
}

type ratingRequest struct {
	Score   int    `json:"score"`
	Comment string `json:"comment"`
}

func (r *ratingRequest) rating() chat.Rating { return chat.Rating{Score: r.Score, Comment: r.Comment} }

// Validate implements [httpapi.Validator].
func (r *ratingRequest) Validate() (f apperr.Fields) {
	for _, fault := range r.rating().Check() {
		f.Add(fault.Field, fault.Message)
	}
	return f
}

func (a api) rateChat(c echo.Context, who credential.VisitorClaims) error {
	var r ratingRequest
	if err := httpapi.Decode(c, &r); err != nil {
		return err
	}
	s, err := a.Conversations.Rate(c.Request().Context(), who, payerOf(c, who), c.Param("id"), r.rating())
	return a.answerState(c, s, err)
}
