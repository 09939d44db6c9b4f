package httpapi_test

import (
	"bufio"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
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

// bodyServer decodes bodies, small ones within a short time: at /body, then it answers when proceed is closed, unless
// the request is cancelled; at /late when proceed is closed.
func bodyServer(t *testing.T, smallBodyTime time.Duration, proceed <-chan struct{}) (address string) {
	t.Helper()
	e := httpapi.New(httpapi.Config{Logger: slog.New(slog.DiscardHandler), SmallBodyTime: smallBodyTime})
	e.POST("/body", func(c echo.Context) error {
		if err := httpapi.Decode(c, new(struct{})); err != nil {
			return err
		}
		select {
		case <-proceed:
			return c.NoContent(http.StatusNoContent)
		case <-c.Request().Context().Done():
			return c.Request().Context().Err()
		}
	})
	e.POST("/late", func(c echo.Context) error {
		<-proceed
		if err := httpapi.Decode(c, new(struct{})); err != nil {
			return err
		}
		return c.NoContent(http.StatusNoContent)
	})
	server := httptest.NewServer(e) // without a read timeout
	t.Cleanup(server.Close)
	return server.Listener.Addr().String()
}

// A client that does not finish a small body gets its answer soon, and loses its connection, whether a handler reads
// the body or not.
func TestAnUnfinishedSmallBodyEndsSoon(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		request string
		want    int
	}{
		"with a length":         {"POST /body HTTP/1.1\r\nContent-Length: 100\r\n", http.StatusBadRequest},
		"in chunks":             {"POST /body HTTP/1.1\r\nTransfer-Encoding: chunked\r\n", http.StatusBadRequest},
		"that no handler reads": {"POST /none HTTP/1.1\r\nContent-Length: 100\r\n", http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			connection, err := net.Dial("tcp", bodyServer(t, 50*time.Millisecond, nil))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { connection.Close() })
			_ = connection.SetDeadline(time.Now().Add(10 * time.Second)) // of the test
			request := test.request + "Host: a\r\nContent-Type: application/json\r\n\r\n2\r\n"
			if _, err := io.WriteString(connection, request); err != nil {
				t.Fatal(err)
			}
			from := bufio.NewReader(connection)
			answer, err := http.ReadResponse(from, nil)
			if err != nil {
				t.Fatalf("got %v, want an answer", err)
			}
			defer answer.Body.Close()
			if answer.StatusCode != test.want {
				t.Errorf("got %d, want %d", answer.StatusCode, test.want)
			}
			if rest, err := io.ReadAll(from); err != nil || !answer.Close {
				t.Errorf("got %d bytes more and %v, want the end of the connection", len(rest), err)
			}
		})
	}
}

// The deadline ends no other request: neither one whose body has arrived, nor one with a large body, nor one whose
// handler waits before it reads. The connection serves the next request.
func TestTheTimeOfASmallBodyEndsWithIt(t *testing.T) {
	t.Parallel()
	const smallBodyTime = 50 * time.Millisecond
	large := "{}" + strings.Repeat(" ", 8<<10)
	for name, test := range map[string]struct{ path, now, later string }{
		"a small body, then a slow handler": {"/body", "{}", ""},
		"a slow handler, then a small body": {"/late", "", "{}"},
		"a large body that takes longer":    {"/body", large[:len(large)-1], large[len(large)-1:]},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			proceed := make(chan struct{})
			connection, err := net.Dial("tcp", bodyServer(t, smallBodyTime, proceed))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { connection.Close() })
			_ = connection.SetDeadline(time.Now().Add(10 * time.Second)) // of the test
			from := bufio.NewReader(connection)
			head := fmt.Sprintf("POST %s HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\n"+
				"Content-Length: %d\r\n\r\n", test.path, len(test.now)+len(test.later))
			for n := range 2 {
				if _, err := io.WriteString(connection, head+test.now); err != nil {
					t.Fatal(err)
				}
				if n == 0 {
					time.Sleep(4 * smallBodyTime) // nothing tells that a deadline has no effect
				}
				if _, err := io.WriteString(connection, test.later); err != nil {
					t.Fatal(err)
				}
				if n == 0 {
					close(proceed)
				}
				answer, err := http.ReadResponse(from, nil)
				if err != nil {
					t.Fatalf("request %d: got %v, want an answer", n, err)
				}
				answer.Body.Close()
				if answer.StatusCode != http.StatusNoContent || answer.Close {
					t.Errorf("request %d: got %d, closed %v, want 204", n, answer.StatusCode, answer.Close)
				}
			}
		})
	}
}
