package http

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/services/widget-api/internal/application"
)

// settingsMaxAge is short so that changed settings take effect soon.
const settingsMaxAge = "public, max-age=10"

func (a api) getSettings(c echo.Context) error {
	app, err := a.Applications.Find(c.Request().Context(), c.Param("id"))
	if err != nil {
		return err
	}
	if err := application.CheckOrigin(app, c.Request().Header.Get(echo.HeaderOrigin)); err != nil {
		return err
	}
	body := settingsOf(app)
	tag := entityTag(body)
	header := c.Response().Header()
	header.Set("ETag", tag)
	header.Set(echo.HeaderCacheControl, settingsMaxAge)
	if hasTag(c.Request().Header.Values("If-None-Match"), tag) {
		return c.NoContent(http.StatusNotModified)
	}
	return c.JSONBlob(http.StatusOK, body)
}

// settingsOf returns the settings; widgetConfigs is passed byte for byte.
func settingsOf(app chat.Application) []byte {
	body := chat.AppendString([]byte(`{"id":`), app.ID)
	body = chat.AppendString(append(body, `,"botName":`...), app.BotName)
	body = chat.AppendString(append(body, `,"name":`...), app.Name)
	body = append(body, `,"widgetConfigs":`...)
	if len(app.WidgetConfigs) == 0 {
		return append(body, `{}}`...)
	}
	return append(append(body, app.WidgetConfigs...), '}')
}

func entityTag(body []byte) string {
	sum := sha256.Sum256(body)
	return `"` + hex.EncodeToString(sum[:12]) + `"`
}

// hasTag reports whether the values of If-None-Match name tag (RFC 9110, 13.1.2: weak comparison).
func hasTag(values []string, tag string) bool {
	for _, value := range values {
		for candidate := range strings.SplitSeq(value, ",") {
			candidate = strings.TrimSpace(candidate)
			if candidate == "*" || strings.TrimPrefix(candidate, "W/") == tag {
				return true
			}
		}
	}
	return false
}
