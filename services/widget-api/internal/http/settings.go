package http

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/httpapi"
	"github.com/parley-chat/parley/services/widget-api/internal/application"
)

// settingsMaxAge is short so that changed settings take effect soon.
const settingsMaxAge = "public, max-age=10"

func (a api) getSettings(c echo.Context) error {
	app, err := a.Applications.Find(c.Request().Context(), c.Param("id"))
	if err != nil {
		return err
	}
	httpapi.HoldFor(c, httpapi.Owner{Application: app.ID})
	if err := application.CheckOrigin(app, c.Request().Header.Get(echo.HeaderOrigin)); err != nil {
		return err
	}
	head, tail := settingsAround(app)
	tag := entityTag(head, app.WidgetConfigs, tail)
	header := c.Response().Header()
	header.Set("ETag", tag)
	header.Set(echo.HeaderCacheControl, settingsMaxAge)
	if hasTag(c.Request().Header.Values("If-None-Match"), tag) {
		return c.NoContent(http.StatusNotModified)
	}
	return writeSettings(c, head, app.WidgetConfigs, tail)
}

// largeSettings is the size from which settings count as memory. All requests share the cached ones, but slow
// clients would keep those that have changed since.
const largeSettings = 16 << 10

// writeSettings answers with the parts as they are: widgetConfigs has up to 1 MiB, and a copy for each request
// would stay in memory for as long as its client reads.
func writeSettings(c echo.Context, parts ...[]byte) error {
	size := 0
	for _, part := range parts {
		size += len(part)
	}
	if size >= largeSettings {
		if _, err := httpapi.HoldAnswer(c, int64(size)); err != nil {
			return err
		}
	}
	response := c.Response()
	response.Header().Set(echo.HeaderContentType, echo.MIMEApplicationJSON)
	response.Header().Set(echo.HeaderContentLength, strconv.Itoa(size))
	response.WriteHeader(http.StatusOK)
	for _, part := range parts {
		if _, err := response.Write(part); err != nil {
			return fmt.Errorf("sending settings: %w", err)
		}
	}
	return nil
}

// settingsAround returns the settings before and after widgetConfigs, which is passed byte for byte.
func settingsAround(app chat.Application) (head, tail []byte) {
	head = chat.AppendString([]byte(`{"id":`), app.ID)
	head = chat.AppendString(append(head, `,"botName":`...), app.BotName)
	head = chat.AppendString(append(head, `,"name":`...), app.Name)
	head = append(head, `,"widgetConfigs":`...)
	if len(app.WidgetConfigs) == 0 {
		return head, []byte(`{}}`)
	}
	return head, []byte(`}`)
}

func entityTag(parts ...[]byte) string {
	hash := sha256.New()
	for _, part := range parts {
		hash.Write(part)
	}
	return `"` + hex.EncodeToString(hash.Sum(nil)[:12]) + `"`
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
