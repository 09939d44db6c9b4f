// Package http is the Widget API over HTTP: authenticate, decode, one call, encode. routes.go lists all endpoints.
package http

import (
	"log/slog"
	"net/netip"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-chat/parley/pkg/attachment"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/httpapi"
	"github.com/parley-chat/parley/pkg/httpapi/apidoc"
	"github.com/parley-chat/parley/pkg/httpapi/form"
	"github.com/parley-chat/parley/pkg/tracing"
	"github.com/parley-chat/parley/services/widget-api/internal/application"
	"github.com/parley-chat/parley/services/widget-api/internal/conversation"
	"github.com/parley-chat/parley/services/widget-api/internal/registration"
	"github.com/parley-chat/parley/services/widget-api/internal/web"
)

// Config holds the dependencies of the API.
type Config struct {
	Applications  *application.Finder
	Registrations *registration.Service
	Conversations *conversation.Service
	Idempotent    httpapi.Idempotent
	Files         *attachment.Service
	Uploads       form.Limits
	PublicURL     string // public address of this API; empty: that of each request
	Now           func() time.Time
	Verifier      *credential.Verifier
	Keys          *credential.KeySet
	Limits        Limits
	Proxies       []netip.Prefix // see [httpapi.Config]
	OpenAPI       []byte
	Logger        *slog.Logger
	Registerer    prometheus.Registerer
	Tracer        *tracing.Tracer // nil: no traces
}

type api struct{ Config }

// maxBody is the limit of a JSON body in bytes, far above what a visitor's requests need: data of a message
// has at most 8 KiB. Anyone may post, and decoding costs processor time by the byte.
const maxBody = 128 << 10

// The memory of bodies and answers in flight, which fits a process of 384 MiB beside the histories (64 MiB),
// uploads and downloads (40 MiB) and caches. The answers are settings of up to 1 MiB; histories have a bound of
// their own.
const (
	bodyMemory   = 32 << 20
	answerMemory = 32 << 20
)

// New returns the API.
func New(cfg Config) *echo.Echo {
	a := api{Config: cfg}
	e := httpapi.New(httpapi.Config{
		Service:    "widget-api",
		MaxBody:    maxBody,
		Memory:     httpapi.NewMemory(bodyMemory, answerMemory),
		Logger:     cfg.Logger,
		Registerer: cfg.Registerer,
		Tracer:     cfg.Tracer,
		Proxies:    cfg.Proxies,
	})
	e.Use(httpapi.CORS(anySite), a.Limits.Address.ByAddress) // in this order, so that a page can read a 429
	e.GET("/settings/:id", a.getSettings)
	e.POST("/register", a.register, a.Limits.Register.ByAddress)
	e.GET("/message", a.forVisitor(a.getHistory, "limit", "before"))
	e.POST("/message", a.forVisitor(a.postMessage))
	e.POST("/message/:id/read", a.forVisitor(a.readMessage))
	e.POST("/message/:id/stop", a.forVisitor(a.stopMessage))
	e.GET("/chats", a.forVisitor(a.getChats, "limit", "after"))
	e.GET("/chats/:id/messages", a.forVisitor(a.getChatHistory, "limit", "before"))
	e.GET("/chat", a.forVisitor(a.getChat))
	e.POST("/chat/handover", a.forVisitor(a.handOver))
	e.POST("/chat/offline-message", a.forVisitor(a.leaveMessage))
	e.POST("/chat/:id/rating", a.forVisitor(a.rateChat))
	e.GET("/files/:id/:name", a.getFile)
	e.GET("/.well-known/jwks.json", a.getKeys)
	web.New(web.Config{MaxFileBytes: a.Uploads.MaxBytes}).Routes(e)
	apidoc.Serve(e, "Parley Widget API", cfg.OpenAPI)
	return e
}

// anySite allows preflights of any origin: a preflight does not name the application, so an origin is refused
// only by the response itself (application.CheckOrigin).
func anySite(string, echo.Context) bool { return true }
