package tools

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/parley-chat/parley/services/processor/internal/guard"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}

// serve starts a server with an echo, and returns its address and the number of its requests.
func serve(t *testing.T, options *mcp.StreamableHTTPOptions) (url string, requests *atomic.Int64) {
	t.Helper()
	server := mcp.NewServer(&mcp.Implementation{Name: "shop", Version: "1"}, nil)
	type input struct {
		Text string `json:"text"`
	}
	mcp.AddTool(server, &mcp.Tool{Name: "echo", Description: "Says it again"},
		func(_ context.Context, r *mcp.CallToolRequest, in input) (*mcp.CallToolResult, any, error) {
			if in.Text == "fail" {
				return nil, nil, fmt.Errorf("no such text")
			}
			said := fmt.Sprint(in.Text, " ", r.Params.Meta["parley/visitor"], " ", r.Extra.Header.Get("Authorization"))
			return &mcp.CallToolResult{Content: []mcp.Content{
				&mcp.TextContent{Text: said}, &mcp.ImageContent{Data: []byte("x"), MIMEType: "image/png"},
			}}, nil, nil
		})
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return server }, options)
	requests = &atomic.Int64{}
	of := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests.Add(1)
		handler.ServeHTTP(w, r)
	}))
	t.Cleanup(of.Close)
	return of.URL, requests
}

func open(t *testing.T, s Server, allow []netip.Prefix) *Session {
	t.Helper()
	guarded := guard.NewClient(allow, 0)
	session := New(guarded, time.Now).Open(s)
	t.Cleanup(func() {
		session.Close()
		guarded.CloseIdleConnections()
	})
	return session
}

func TestToolsAreListedAndCalled(t *testing.T) {
	for name, options := range map[string]*mcp.StreamableHTTPOptions{
		"stateless": {Stateless: true, JSONResponse: true}, "with sessions": nil,
	} {
		t.Run(name, func(t *testing.T) {
			url, requests := serve(t, options)
			s := open(t, Server{URL: url, Key: "key"}, loopback)
			listed, err := s.List(t.Context())
			if err != nil || len(listed) != 1 || listed[0].Name != "echo" || !strings.Contains(string(listed[0].Schema), `"text"`) {
				t.Fatalf("got the tools %+v, %v", listed, err)
			}
			before := requests.Load()
			if _, err := s.List(t.Context()); err != nil || requests.Load() != before {
				t.Errorf("a second list made %d requests, %v", requests.Load()-before, err)
			}
			got, err := s.Call(t.Context(), "echo", `{"text":"Hi"}`, map[string]any{"parley/visitor": "ada"})
			want := Result{Text: "Hi ada Bearer key\n[content that is no text was left out]"}
			if err != nil || got != want {
				t.Errorf("got %+v, %v, want %+v", got, err, want)
			}
			got, err = s.Call(t.Context(), "echo", `{"text":"fail"}`, nil)
			if err != nil || !got.Failed || got.Text != "no such text" {
				t.Errorf("a failed tool: got %+v, %v", got, err)
			}
			if _, err := s.Call(t.Context(), "unknown", `{}`, nil); err == nil {
				t.Error("an unknown tool has no error")
			}
			long := strings.Repeat("é", maxResult)
			got, err = s.Call(t.Context(), "echo", `{"text":"`+long+`"}`, nil)
			if err != nil || !strings.HasSuffix(got.Text, "\n[shortened]") || len(got.Text) > maxResult+20 {
				t.Errorf("a long result has %d bytes, %v", len(got.Text), err)
			}
		})
	}
}

func TestServersThatFail(t *testing.T) {
	url, requests := serve(t, nil)
	huge := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		chunk := []byte(strings.Repeat(" ", 1<<16))
		for range maxBody>>16 + 1 {
			_, _ = w.Write(chunk)
		}
	}))
	defer huge.Close()
	silent := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // the server sees the end of a connection only then
		<-r.Context().Done()
	}))
	defer silent.Close()
	for name, c := range map[string]struct {
		url    string
		allow  []netip.Prefix
		reason string
	}{
		"a private address": {url, nil, "the address is not allowed"},
		"no server":         {"http://127.0.0.1:1", loopback, "connection refused"},
		"a huge answer":     {huge.URL, loopback, errTooLarge.Error()},
		"no answer":         {silent.URL, loopback, "no answer in time"},
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		s := open(t, Server{URL: c.url}, c.allow)
		if _, err := s.List(ctx); err == nil || !strings.Contains(Reason(err), c.reason) {
			t.Errorf("%s: got %v, want %s", name, err, c.reason)
		}
		cancel()
	}
	if n := requests.Load(); n != 0 {
		t.Errorf("the guarded server got %d requests", n)
	}
}
