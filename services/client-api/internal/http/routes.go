// Package http is the Client API over HTTP: authenticate, decode, one call, encode. routes.go lists all endpoints.
package http

import (
	"context"
	"log/slog"
	"net/netip"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/httpapi"
	"github.com/parley-chat/parley/pkg/httpapi/apidoc"
	"github.com/parley-chat/parley/pkg/idempotency"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/tracing"
	"github.com/parley-chat/parley/services/client-api/internal/message"
	"github.com/parley-chat/parley/services/client-api/internal/push"
)

// Authenticator maps an access token to its company.
type Authenticator interface {
	Company(ctx context.Context, secret string) (companyID string, err error)
}

// Messages sends messages into chats.
type Messages interface {
	Send(ctx context.Context, companyID string, d message.Draft, identity chat.MessageIdentity) (message.Sent, error)
	Check(ctx context.Context, companyID string, d message.Draft) (windowExpiresAt time.Time, err error)
}

// Pushes sends templates to phone numbers.
type Pushes interface {
	Push(ctx context.Context, companyID string, o push.Request, identity chat.MessageIdentity) (push.Accepted, error)
	Check(ctx context.Context, companyID string, o push.Request) error
}

// Statuses looks up the status of messages.
type Statuses interface {
	Status(ctx context.Context, companyID, messageID string) (id string, s chat.MessageStatus, err error)
}

// Lookups finds a company's chats, messages and templates.
type Lookups interface {
	Chats(ctx context.Context, companyID string, f store.InboxFilter, p store.InboxPage) (entries []store.InboxEntry, next *store.InboxCursor, err error)
	Chat(ctx context.Context, companyID, chatID string) (store.InboxEntry, error)
	Messages(ctx context.Context, companyID, chatID string, q store.HistoryQuery) (id string, messages []chat.Message, more bool, err error)
	Templates(ctx context.Context, companyID, status string, p store.Page) (found []chat.MessageTemplate, next string, err error)
	ChatStatus(c chat.Chat) chat.Status
}

// Idempotent answers a request with an Idempotency-Key and runs its action at most once.
type Idempotent interface {
	Answer(c echo.Context, scope, fingerprint string, act idempotency.Act) error
}

// Config holds the dependencies of the API.
type Config struct {
	Authenticator Authenticator
	Messages      Messages
	Pushes        Pushes
	Statuses      Statuses
	Lookups       Lookups
	Idempotent    Idempotent
	Limits        Limits
	Proxies       []netip.Prefix // see [httpapi.Config]
	OpenAPI       []byte
	Logger        *slog.Logger
	Registerer    prometheus.Registerer
	Tracer        *tracing.Tracer // nil: no traces
}

type api struct{ Config }

// New returns the API.
func New(cfg Config) *echo.Echo {
	a := api{cfg}
	e := httpapi.New(httpapi.Config{
		Service:    "client-api",
		Logger:     cfg.Logger,
		Registerer: cfg.Registerer,
		Proxies:    cfg.Proxies,
		Tracer:     cfg.Tracer,
		Challenge:  `AccessToken header="` + accessTokenHeader + `"`,
	})
	e.POST("/message/send", a.forCompany(a.sendMessage, "dryRun"))
	e.GET("/message/:id", exceptSend(a.forCompany(a.getMessage)))
	e.POST("/push-message", a.forCompany(a.pushMessage, "dryRun"))
	e.GET("/chats", a.forCompany(a.getChats, "appId", "userId", "email", "phone", "status", "limit", "after"))
	e.GET("/chats/:id", a.forCompany(a.getChat))
	e.GET("/chats/:id/messages", a.forCompany(a.getMessages, "limit", "before"))
	e.GET("/templates", a.forCompany(a.getTemplates, "status", "limit", "after"))
	apidoc.Serve(e, "Parley Client API", cfg.OpenAPI)
	return e
}
