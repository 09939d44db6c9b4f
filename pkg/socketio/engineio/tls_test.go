package engineio

import (
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/coder/websocket"
)

// TestWithoutPoller serves connections without non-blocking I/O, and connections with
// a reader goroutine each.
func TestWithoutPoller(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"tls", "goroutine"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHarness(t, Options{})
			var options *websocket.DialOptions
			if name == "tls" {
				hs := httptest.NewTLSServer(h.srv)
				t.Cleanup(hs.Close)
				options, h.url = &websocket.DialOptions{HTTPClient: hs.Client()}, hs.URL+"/?EIO=4"
			} else {
				h.srv.poller.stop()
				h.srv.poller = nil
			}
			conn, _, err := websocket.Dial(t.Context(), h.url+"&transport=websocket", options)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { conn.CloseNow() })
			conn.SetReadLimit(1 << 24)
			if got := h.read(conn); !strings.HasPrefix(got, "0{") {
				t.Fatalf("got %q", got)
			}
			s := <-h.opened
			for _, text := range []string{"4hello", "4" + strings.Repeat("x", 300_000)} {
				h.write(conn, text)
				if got := h.read(conn); got != text {
					t.Fatalf("got %d bytes, want %d", len(got), len(text))
				}
			}
			s.Close()
			if _, _, err := conn.Read(t.Context()); websocket.CloseStatus(err) != websocket.StatusNormalClosure {
				t.Errorf("got %v, want a normal closure", err)
			}
			h.wantClosed(ReasonForced)
		})
	}
}
