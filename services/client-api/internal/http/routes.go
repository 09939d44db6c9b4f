// Package http is the Client API over HTTP: authenticate, decode, one call, encode. routes.go lists all endpoints.
package http

import (
	"log/slog"
	"net/netip"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-chat/parley/pkg/httpapi"
	"github.com/parley-chat/parley/pkg/httpapi/apidoc"
	"github.com/parley-chat/parley/pkg/tracing"
	"github.com/parley-chat/parley/services/client-api/internal/access"
	"github.com/parley-chat/parley/services/client-api/internal/lookup"
	"github.com/parley-chat/parley/services/client-api/internal/message"
	"github.com/parley-chat/parley/services/client-api/internal/push"
	"github.com/parley-chat/parley/services/client-api/internal/status"
)

// Config holds the dependencies of the API.
type Config struct {
	Authenticator *access.Authenticator
	Messages      *message.Sender
	Pushes        *push.Service
	Statuses      *status.Service
	Lookups       *lookup.Service
	Idempotent    httpapi.Idempotent
	Limits        Limits
	Proxies       []netip.Prefix // see [httpapi.Config]
	OpenAPI       []byte
	Logger        *slog.Logger
	Registerer    prometheus.Registerer
	Tracer        *tracing.Tracer // nil: no traces
}

type api struct{ Config }

const (
	// maxBody is the limit of a JSON body in bytes: data of a message has at most 64 KiB.
	maxBody = 128 << 10

	// The memory of bodies and answers in flight, which fits a process of 192 MiB beside the 63 MiB that it has
	// under load (docs/benchmarks.md): 48 bodies of maxBody at once, and 8 pages while they are read.
	bodyMemory   = 24 << 20
	answerMemory = 48 << 20
	// pageCost is the most that a page of messages or templates takes while it is read: its data, and the
	// copies of the store and its driver. A page of chats has only small records.
	pageCost      = 3 * lookup.MaxPageBytes
	chatsPageCost = 3 << 19
	// filteredPageCost is what a page of chats with a filter takes, which may examine many chats for a few: a company
	// reads 4 of them at once.
	filteredPageCost = answerMemory / 8
)

// New returns the API.
func New(cfg Config) *echo.Echo {
	a := api{cfg}
	e := httpapi.New(httpapi.Config{
		Service:    "client-api",
		MaxBody:    maxBody,
		Memory:     httpapi.NewMemory(bodyMemory, answerMemory),
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
