package http

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"html"
	"strings"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/admin/view"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/httpapi"
)

// applicationView is an application with what the panel needs to change and to embed it.
type applicationView struct {
	view.Application
	Version string    `json:"version"`
	Embed   embedView `json:"embed"`
}

type embedView struct {
	Snippet string `json:"snippet"`
	CSP     string `json:"csp"`
}

func (a api) viewOfApplication(app chat.Application) applicationView {
	return applicationView{Application: view.ApplicationOf(app), Version: versionOf(app), Embed: a.embed(app)}
}

// versionOf hashes the fields that an update may write. It makes no copy of the settings of up to 1 MiB.
func versionOf(app chat.Application) string {
	sum := sha256.New()
	_, _ = fmt.Fprintf(sum, "%q %q %q %d ", app.Name, app.BotName, app.AllowedOrigins, app.FileRetention)
	sum.Write(app.WidgetConfigs)
	return hex.EncodeToString(sum.Sum(nil)[:12])
}

// embed returns the snippet for a site's page (docs/widget.md).
func (a api) embed(app chat.Application) embedView {
	base := strings.TrimSuffix(a.WidgetBaseURL, "/")
	socket := strings.Replace(base, "http", "ws", 1)
	return embedView{
		Snippet: `<script async src="` + html.EscapeString(base) + `/widget.js" data-app-id="` + app.ID + `"></script>`,
		CSP: "script-src " + base + "; connect-src " + base + " " + socket +
			"; img-src " + base + "; media-src " + base,
	}
}

func (a api) getApplications(c echo.Context, _ caller, company string) error {
	id := func(app chat.Application) string { return app.ID }
	return answerRows(c, "applications", recordsOf(a.Store.Applications, company), id, a.viewOfApplication)
}

func answerJSON(c echo.Context, status int, v any) error {
	text, err := encodeJSON(v)
	if err != nil {
		return err
	}
	return httpapi.JSON(c, status, text)
}

// encodeJSON encodes without escaping embedded JSON, which Echo's encoder would do.
func encodeJSON(v any) ([]byte, error) {
	var b bytes.Buffer
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return nil, fmt.Errorf("encoding an answer: %w", err)
	}
	return b.Bytes(), nil
}

// application finds the application of a route.
func (a api) application(c echo.Context, who caller) (chat.Application, error) {
	return recordOf(
		c, who, a.Store.Application, func(app chat.Application) string { return app.CompanyID },
		apperr.ApplicationNotFound,
	)
}

func (a api) getApplication(_ echo.Context, _ caller, app chat.Application) (any, error) {
	return a.viewOfApplication(app), nil
}

type applicationRequest struct {
	Name           string         `json:"name"`
	BotName        string         `json:"botName"`
	WidgetConfigs  httpapi.Object `json:"widgetConfigs"`
	AllowedOrigins []string       `json:"allowedOrigins"`
	FileRetention  int64          `json:"fileRetentionSeconds"`
}

func (r applicationRequest) apply(app chat.Application) (chat.Application, error) {
	const century = 100 * 366 * 24 * 3600
	if r.FileRetention < 0 || r.FileRetention > century {
		return app, apperr.Fields{{Name: "fileRetentionSeconds", Message: "must be 0 to 3162240000"}}.Err()
	}
	app.Name = r.Name
	app.BotName = r.BotName
	app.AllowedOrigins = r.AllowedOrigins
	app.FileRetention = time.Duration(r.FileRetention) * time.Second
	app.WidgetConfigs = json.RawMessage(r.WidgetConfigs)
	return app, nil
}

func (a api) createApplication(c echo.Context, who caller, company string, r applicationRequest) (any, error) {
	app, err := r.apply(chat.Application{CompanyID: company, Provider: chat.ProviderWidget})
	if err != nil {
		return nil, err
	}
	app, err = a.Admin.CreateApplication(ctxOf(c), who.actor(), app)
	return created(a.viewOfApplication(app)), err
}

func (a api) updateApplication(
	c echo.Context, who caller, app chat.Application, r applicationRequest,
) (any, error) {
	if wanted := strings.Trim(c.Request().Header.Get("If-Match"), `"`); wanted != "" && wanted != versionOf(app) {
		return nil, apperr.PreconditionFailed.WithMessage("Somebody else has changed the application meanwhile")
	}
	app, err := r.apply(app)
	if err != nil {
		return nil, err
	}
	app, err = a.Admin.UpdateApplication(ctxOf(c), who.actor(), app)
	return a.viewOfApplication(app), err
}

type verificationRequest struct {
	Verification chat.Verification `json:"verification"`
}

func (a api) setVerification(
	c echo.Context, who caller, app chat.Application, r verificationRequest,
) (any, error) {
	app, err := a.Admin.SetVerification(ctxOf(c), who.actor(), app.ID, r.Verification)
	return a.viewOfApplication(app), err
}

func (a api) rotateSecret(c echo.Context, who caller, app chat.Application, r overlapRequest) (any, error) {
	secret, app, err := a.Admin.RotateIdentitySecret(ctxOf(c), who.actor(), app.ID, r.overlap())
	return created(map[string]any{"application": a.viewOfApplication(app), "secret": string(secret)}), err
}
