package httpapi_test

import (
	"bufio"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/labstack/echo/v4"

	"github.com/parley-chat/parley/pkg/httpapi"
)

// A client that announces a body to a GET and sends none gets its answer, and holds nothing until the read timeout.
func TestAnUnsentBodyOfAGetHoldsNoAnswer(t *testing.T) {
	t.Parallel()
	e := httpapi.New(httpapi.Config{Logger: slog.New(slog.DiscardHandler)})
	e.GET("/", func(c echo.Context) error { return c.String(http.StatusOK, "the answer") })
	server := httptest.NewServer(e)
	t.Cleanup(server.Close)
	connection, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connection.Close() })
	if _, err := io.WriteString(connection, "GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	_ = connection.SetReadDeadline(time.Now().Add(10 * time.Second)) // of the test; the answer comes at once
	answer, err := http.ReadResponse(bufio.NewReader(connection), nil)
	if err != nil {
		t.Fatalf("without the body: got %v, want the answer", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK || !answer.Close {
		t.Errorf("got %d, closed %v, want 200 and the end of the connection", answer.StatusCode, answer.Close)
	}
}
