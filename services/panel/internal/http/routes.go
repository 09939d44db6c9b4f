// Package http is the panel over HTTP: authenticate, check the permission, decode, one call, encode.
// routes.go lists all endpoints with their permissions.
package http

import (
	"context"
	"log/slog"
	"net/http"
	"net/netip"
	"time"

	"github.com/labstack/echo/v4"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/admin"
	"github.com/parley-chat/parley/pkg/attachment"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/file"
	"github.com/parley-chat/parley/pkg/httpapi"
	"github.com/parley-chat/parley/pkg/httpapi/form"
	"github.com/parley-chat/parley/pkg/presence"
	"github.com/parley-chat/parley/pkg/ratelimit"
	"github.com/parley-chat/parley/pkg/rpc"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/tracing"
	"github.com/parley-chat/parley/services/panel/internal/live"
	"github.com/parley-chat/parley/services/panel/internal/signin"
	"github.com/parley-chat/parley/services/panel/internal/web"
)

// Config holds the dependencies of the API.
type Config struct {
	SignIn        *signin.Service
	OIDC          *signin.OIDC // nil: not configured
	Admin         *admin.Service
	Store         store.Store
	Bus           live.Bus
	Calls         *rpc.Conn
	Streams       *bus.Bus
	Files         file.Store
	Attachments   *attachment.Service
	Forms         form.Limits
	Idempotent    httpapi.Idempotent
	Presence      presence.Store     // nil: presence is unknown
	Typing        *ratelimit.Limiter // per agent and chat
	Present       *ratelimit.Limiter // per agent and chat
	Limits        Limits
	Stopping      context.Context // done when event streams must end
	Heartbeat     time.Duration   // of event streams; zero: [heartbeat]
	PublicURL     string          // public address of the panel; empty: that of each request
	WidgetBaseURL string
	ClientBaseURL string
	Version       string
	OpenAPI       []byte
	Proxies       []netip.Prefix // see [httpapi.Config]
	Now           func() time.Time
	Logger        *slog.Logger
	Registerer    prometheus.Registerer
	Tracer        *tracing.Tracer // nil: no traces
}

type api struct {
	Config
	bounds
	hub *live.Hub
}

// Routes that the bounds of [api.admit] name.
const (
	eventsPath = "/api/events" // an event stream
	tailPath   = "/api/tail"   // an event stream
	exportPath = "/api/visitors/:id/export"
	uploadPath = "/api/chats/:id/files"

	applicationsPath = "/api/applications"
	botPath          = applicationsPath + "/:id/bot"
	documentsPath    = "/api/documents"
	documentPath     = documentsPath + "/:id"
	pdfPath          = documentsPath + "/pdf"
	rankingPath      = "/api/ranking"
)

// pageActions are the routes that act on a page of records.
var pageActions = []string{
	"/api/webhooks/:id/replay", "/api/dead-letters/redrive", "/api/dead-letters/drop",
}

// anyUser is the permission of routes that every user may call.
const anyUser account.Permission = ""

// New returns the panel.
func New(cfg Config) *echo.Echo {
	a := api{Config: cfg, bounds: newBounds(), hub: live.NewHub(cfg.Stopping, cfg.Bus, cfg.Calls)}
	e := httpapi.New(httpapi.Config{
		Service:    "panel",
		Logger:     cfg.Logger,
		Registerer: cfg.Registerer,
		Tracer:     cfg.Tracer,
		Proxies:    cfg.Proxies,
		Challenge:  "Cookie",
		Memory:     httpapi.NewMemory(bodyMemory, answerMemory).WaitingAtMost(waitingAtOnce, waitingOfCompany),
	})
	e.Use(a.protect)
	for _, r := range a.open() {
		e.Add(r.method, r.path, a.forAnyone(r.handle))
	}
	for _, r := range a.routes() {
		e.Add(r.method, r.path, a.as(r.permission, r.handle))
	}
	// without the page that shows it: no foreign script runs on the origin of the session cookie
	httpapi.Document(e, cfg.OpenAPI)
	web.New(web.Config{WidgetBaseURL: cfg.WidgetBaseURL}).Routes(e)
	return e
}

// openRoute needs no session.
type openRoute struct {
	method, path string
	handle       echo.HandlerFunc
}

// route needs a session of a user with the permission.
type route struct {
	method, path string
	permission   account.Permission
	handle       handler
}

// open lists the routes without a session.
func (a api) open() []openRoute {
	return []openRoute{
		{http.MethodGet, "/api/meta", a.getMeta},
		{http.MethodPost, "/api/session", a.signIn},
		{http.MethodGet, oidcPath + "/start", a.startOIDC},
		{http.MethodPost, oidcPath + "/start", a.acceptWithOIDC},
		{http.MethodGet, oidcPath + "/callback", a.finishOIDC},
		{http.MethodPost, "/api/invitation/check", a.checkInvitation},
		{http.MethodPost, "/api/invitation", a.acceptInvitation},
	}
}

// routes lists the routes with a session.
func (a api) routes() []route {
	return []route{
		{http.MethodGet, "/api/session", anyUser, a.getSession},
		{http.MethodDelete, "/api/session", anyUser, a.signOut},
		{http.MethodGet, "/api/sessions", anyUser, a.getSessions},
		{http.MethodDelete, "/api/sessions", anyUser, a.signOutEverywhere},
		{http.MethodDelete, "/api/sessions/:id", anyUser, a.endSession},
		{http.MethodPut, "/api/password", anyUser, a.changePassword},
		{http.MethodPost, "/api/totp", anyUser, take(a.offerTOTP)},
		{http.MethodPost, "/api/totp/confirm", anyUser, take(a.confirmTOTP)},
		{http.MethodPost, "/api/totp/recovery-codes", anyUser, take(a.renewRecoveryCodes)},
		{http.MethodDelete, "/api/totp", anyUser, take(a.removeTOTP)},

		{http.MethodGet, "/api/companies", anyUser, a.getCompanies},
		{http.MethodPost, "/api/companies", account.Companies, take(a.createCompany)},
		{http.MethodPatch, "/api/companies/:id", account.People, change(a.company, a.renameCompany)},

		{http.MethodGet, "/api/tokens", account.Tokens, list(a.companyOf, a.getTokens)},
		{http.MethodPost, "/api/tokens", account.Tokens, change(a.companyOf, a.createToken)},
		{http.MethodPost, "/api/tokens/:id/rotate", account.Tokens, change(a.token, a.rotateToken)},
		{http.MethodPost, "/api/tokens/:id/revoke", account.Tokens, on(a.token, a.revokeToken)},

		{http.MethodGet, applicationsPath, account.ReadApplications, list(a.companyOf, a.getApplications)},
		{http.MethodPost, applicationsPath, account.WriteApplications, change(a.companyOf, a.createApplication)},
		{http.MethodGet, applicationsPath + "/:id", account.ReadApplications, on(a.application, a.getApplication)},
		{
			http.MethodPut, applicationsPath + "/:id", account.WriteApplications,
			change(a.application, a.updateApplication),
		},
		{
			http.MethodPut, applicationsPath + "/:id/verification", account.WriteApplications,
			change(a.application, a.setVerification),
		},
		{
			http.MethodPut, applicationsPath + "/:id/support", account.WriteApplications,
			change(a.application, a.setSupport),
		},
		{
			http.MethodPost, applicationsPath + "/:id/secrets", account.WriteApplications,
			change(a.application, a.rotateSecret),
		},
		{http.MethodGet, botPath, account.WriteApplications, on(a.application, a.getBot)},
		{http.MethodPut, botPath, account.WriteApplications, change(a.application, a.setBotDraft)},
		{
			http.MethodPost, botPath + "/publish", account.WriteApplications,
			change(a.application, a.publishBot),
		},
		{
			http.MethodPost, botPath + "/secrets", account.WriteApplications,
			change(a.application, a.rotateBotSecret),
		},
		{http.MethodGet, botPath + "/usage", account.WriteApplications, on(a.application, a.getBotUsage)},
		{http.MethodGet, botPath + "/calls", account.WriteApplications, list(a.application, a.getBotCalls)},
		{http.MethodPost, botPath + "/test", account.WriteApplications, change(a.application, a.testBot)},

		{http.MethodGet, "/api/connections", account.WriteApplications, list(a.companyOf, a.getConnections)},
		{http.MethodPost, "/api/connections", account.WriteApplications, change(a.companyOf, a.createConnection)},
		{http.MethodGet, "/api/connections/:id/tools", account.WriteApplications, on(a.connection, a.getTools)},
		{http.MethodPatch, "/api/connections/:id", account.WriteApplications, change(a.connection, a.updateConnection)},
		{http.MethodDelete, "/api/connections/:id", account.WriteApplications, on(a.connection, a.deleteConnection)},

		{http.MethodGet, documentsPath, account.WriteApplications, list(a.companyOf, a.getDocuments)},
		{http.MethodPost, documentsPath, account.WriteApplications, change(a.companyOf, a.createDocument)},
		{http.MethodPost, documentsPath + "/search", account.WriteApplications, change(a.companyOf, a.searchDocuments)},
		{http.MethodPost, pdfPath, account.WriteApplications, a.readPDF},
		{http.MethodGet, documentPath, account.WriteApplications, on(a.document, a.getDocument)},
		{http.MethodPut, documentPath, account.WriteApplications, change(a.document, a.updateDocument)},
		{http.MethodPost, documentPath + "/fetch", account.WriteApplications, on(a.document, a.fetchDocument)},
		{http.MethodDelete, documentPath, account.WriteApplications, on(a.document, a.deleteDocument)},

		{http.MethodGet, rankingPath, account.WriteApplications, on(a.companyOf, a.getRanking)},
		{http.MethodPut, rankingPath, account.WriteApplications, change(a.companyOf, a.setRanking)},

		{http.MethodGet, "/api/ratings", account.ReadApplications, list(a.companyOf, a.getRatings)},

		{http.MethodGet, "/api/templates", account.ReadTemplates, list(a.companyOf, a.getTemplates)},
		{http.MethodPost, "/api/templates", account.WriteTemplates, change(a.companyOf, a.createTemplate)},
		{http.MethodPost, "/api/templates/preview", account.ReadTemplates, take(a.previewTemplate)},
		{http.MethodGet, "/api/templates/:id", account.ReadTemplates, on(a.template, a.getTemplate)},
		{http.MethodPut, "/api/templates/:id", account.WriteTemplates, change(a.template, a.updateTemplate)},
		{http.MethodPost, "/api/templates/:id/submit", account.WriteTemplates, on(a.template, a.submitTemplate)},
		{http.MethodPost, "/api/templates/:id/approve", account.ApproveTemplates, on(a.template, a.approveTemplate)},
		{http.MethodPost, "/api/templates/:id/reject", account.ApproveTemplates, change(a.template, a.rejectTemplate)},
		{http.MethodGet, "/api/templates/:id/history", account.ReadTemplates, list(a.template, a.getTemplateHistory)},
		{http.MethodPost, "/api/templates/:id/test", account.WriteTemplates, change(a.template, a.testTemplate)},

		{http.MethodGet, "/api/webhooks", account.Webhooks, list(a.companyOf, a.getWebhooks)},
		{http.MethodPost, "/api/webhooks", account.Webhooks, change(a.companyOf, a.createWebhook)},
		{http.MethodPut, "/api/webhooks/retention", account.Webhooks, change(a.companyOf, a.setWebhookRetention)},
		{http.MethodPatch, "/api/webhooks/:id", account.Webhooks, change(a.endpoint, a.updateWebhook)},
		{http.MethodDelete, "/api/webhooks/:id", account.Webhooks, on(a.endpoint, a.deleteWebhook)},
		{http.MethodPost, "/api/webhooks/:id/rotate", account.Webhooks, change(a.endpoint, a.rotateWebhook)},
		{http.MethodPost, "/api/webhooks/:id/enable", account.Webhooks, on(a.endpoint, a.enableWebhook)},
		{http.MethodPost, "/api/webhooks/:id/disable", account.Webhooks, on(a.endpoint, a.disableWebhook)},
		{http.MethodPost, "/api/webhooks/:id/test", account.Webhooks, on(a.endpoint, a.testWebhook)},
		{http.MethodGet, "/api/webhooks/:id/deliveries", account.Webhooks, list(a.endpoint, a.getDeliveries)},
		{http.MethodPost, "/api/webhooks/:id/replay", account.Webhooks, a.replayDeliveries},

		{http.MethodGet, "/api/chats", account.Inbox, list(a.companyOf, a.getChats)},
		{http.MethodGet, "/api/chats/counts", account.Inbox, on(a.companyOf, a.countChats)},
		{http.MethodGet, "/api/chats/:id", account.Inbox, on(a.chat, a.getChat)},
		{http.MethodGet, "/api/chats/:id/messages", account.Inbox, list(a.chat, a.getMessages)},
		{http.MethodPost, "/api/chats/:id/messages", account.Inbox, a.reply},
		{http.MethodPost, uploadPath, account.Inbox, a.replyFile},
		{http.MethodPut, "/api/chats/:id/control", account.Inbox, change(a.chat, a.setControl)},
		{http.MethodPut, "/api/chats/:id/assignee", account.Inbox, change(a.chat, a.setAssignee)},
		{http.MethodPost, "/api/chats/:id/close", account.Inbox, on(a.chat, a.closeChat)},
		{http.MethodPost, "/api/chats/:id/read", account.Inbox, change(a.chat, a.readChat)},
		{http.MethodPost, "/api/chats/:id/presence", account.Inbox, on(a.chat, a.notePresence)},
		{http.MethodPost, "/api/chats/:id/typing", account.Inbox, on(a.chat, a.noteTyping)},
		{http.MethodGet, "/api/agents", account.Inbox, list(a.companyOf, a.getAgents)},
		{http.MethodGet, eventsPath, account.Inbox, a.getEvents},

		{http.MethodGet, "/api/streams", account.Streams, a.getStreams},
		{http.MethodGet, "/api/dead-letters", account.Streams, a.getDeadLetters},
		{http.MethodGet, "/api/dead-letters/:sequence", account.Streams, a.getDeadLetter},
		{http.MethodPost, "/api/dead-letters/redrive", account.Streams, a.redriveDeadLetters},
		{http.MethodPost, "/api/dead-letters/drop", account.Streams, a.dropDeadLetters},
		{http.MethodGet, "/api/trace/:id", account.Streams, a.getTrace},
		{http.MethodGet, tailPath, account.Streams, a.getTail},

		{http.MethodGet, "/api/visitors", account.Visitors, list(a.companyOf, a.getVisitors)},
		{http.MethodGet, exportPath, account.Visitors, a.exportVisitor},
		{http.MethodPost, "/api/visitors/:id/erase", account.Visitors, change(a.visitor, a.eraseVisitor)},

		{http.MethodGet, "/api/users", account.People, list(a.companyOrAll, a.getUsers)},
		{http.MethodPost, "/api/users", account.People, take(a.inviteUser)},
		{http.MethodPost, "/api/users/:id/invitation", account.People, on(a.user, a.renewInvitation)},
		{http.MethodPatch, "/api/users/:id", account.People, change(a.user, a.editUser)},
		{http.MethodDelete, "/api/users/:id", account.People, on(a.user, a.deleteUser)},
		{http.MethodGet, "/api/users/:id/sessions", account.People, list(a.user, a.getUserSessions)},
		{http.MethodDelete, "/api/users/:id/sessions", account.People, on(a.user, a.endUserSessions)},
		{http.MethodGet, "/api/audit", account.Audit, list(a.companyOrAll, a.getAudit)},
	}
}

// ctxOf returns the request's context.
func ctxOf(c echo.Context) context.Context { return c.Request().Context() }

// OpenRoutes lists the routes that need no session, as "METHOD /path".
func OpenRoutes() (all []string) {
	for _, r := range (api{}).open() {
		all = append(all, r.method+" "+r.path)
	}
	return all
}

// Routes returns the permissions of the routes that need a session, by "METHOD /path"; empty: any session.
func Routes() map[string]account.Permission {
	all := map[string]account.Permission{}
	for _, r := range (api{}).routes() {
		all[r.method+" "+r.path] = r.permission
	}
	return all
}
