package httpapi_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/httpapi"
)

// deadlines counts the deadlines that a handler sets for the rest of a body.
type deadlines struct {
	*httptest.ResponseRecorder
	set int
}

func (d *deadlines) SetReadDeadline(time.Time) error { d.set++; return nil }

// A body that is in memory is decoded as usual. No deadline is set when it is complete: it would end the request.
func TestReadBody(t *testing.T) {
	t.Parallel()
	e := httpapi.New(httpapi.Config{
		Service: "test", Logger: slog.New(slog.DiscardHandler), Memory: httpapi.NewMemory(1<<20, 1<<20),
	})
	answer := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	want, read := strings.Repeat("x", 20<<10), 0
	e.POST("/x", func(c echo.Context) error {
		if err := httpapi.ReadBody(c); err != nil {
			return err
		}
		read = answer.set
		var got struct {
			Text string `json:"text"`
		}
		if err := httpapi.Decode(c, &got); err != nil {
			return err
		}
		if got.Text != want {
			t.Errorf("got %d characters, want %d", len(got.Text), len(want))
		}
		return c.NoContent(http.StatusNoContent)
	})
	r := httptest.NewRequest(http.MethodPost, "/x", strings.NewReader(`{"text":"`+want+`"}`))
	r.Header.Set("Content-Type", "application/json")
	e.ServeHTTP(answer, r)
	if answer.Code != http.StatusNoContent {
		t.Errorf("got %d %s, want 204", answer.Code, answer.Body)
	}
	if read == 0 || answer.set != read {
		t.Errorf("got %d deadlines before the body was read and %d in all, want some, and no more", read, answer.set)
	}
}

// The memory of a body is free while the client reads the answer.
func TestAnswersHoldNoBody(t *testing.T) {
	t.Parallel()
	e := httpapi.New(httpapi.Config{
		Service: "test", Logger: slog.New(slog.DiscardHandler), Memory: httpapi.NewMemory(64<<10, 64<<10),
	})
	body := strings.Repeat("x", 20<<10) // more than half of what its address may hold
	send := func(path string) int {
		answer := httptest.NewRecorder()
		e.ServeHTTP(answer, httptest.NewRequest(http.MethodPost, path, strings.NewReader(body)))
		return answer.Code
	}
	second := 0
	e.POST("/second", func(c echo.Context) error { return httpapi.ReadBody(c) })
	e.POST("/first", func(c echo.Context) error {
		if err := httpapi.ReadBody(c); err != nil {
			return err
		}
		if _, err := httpapi.HoldAnswer(c, 1); err != nil {
			return err
		}
		if err := c.String(http.StatusOK, "the answer"); err != nil {
			return err
		}
		second = send("/second")
		return nil
	})
	if first := send("/first"); first != http.StatusOK || second != http.StatusOK {
		t.Errorf("got %d, and %d for the second, want 200 for both", first, second)
	}
}
