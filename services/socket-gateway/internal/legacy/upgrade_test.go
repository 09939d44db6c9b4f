package legacy

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/parley-chat/parley/pkg/socketio"
)

// exchange is one request of a polling client that may join.
func exchange(t *testing.T, method, url, body string) (status int, answer string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "text/plain;charset=UTF-8")
	visitor{Room: "a-b", ExpiresAt: time.Now().Add(time.Hour)}.put(r.Header)
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	raw, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(raw)
}

// What a client posts after it has asked whether a websocket works, and before it has the answer, counts.
func TestClientWritesWhileItUpgrades(t *testing.T) {
	t.Parallel()
	a := &subscriptions{rooms: make(map[string]int)}
	setup := Setup{PingInterval: 25 * time.Second, PingTimeout: 20 * time.Second, SessionPrefix: "x."}
	s := newServer(setup, func(socketio.Local) socketio.Adapter { return a }, slog.New(slog.DiscardHandler))
	web := httptest.NewServer(s)
	t.Cleanup(func() { s.close(); s.running.Wait(); web.Close(); http.DefaultClient.CloseIdleConnections() })
	polling := web.URL + "/socket.io/?EIO=3&transport=polling&b64=1"
	_, opened := exchange(t, http.MethodGet, polling, "")
	_, sid, _ := strings.Cut(opened, `"sid":"`)
	sid, _, _ = strings.Cut(sid, `"`)
	polling += "&sid=" + sid
	exchange(t, http.MethodGet, polling, "") // the root's CONNECT

	ws, _, err := websocket.Dial(t.Context(), strings.Replace(web.URL, "http", "ws", 1)+"/socket.io/?EIO=3&transport=websocket&sid="+sid, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ws.CloseNow()
	say := func(packet string) {
		t.Helper()
		if err := ws.Write(t.Context(), websocket.MessageText, []byte(packet)); err != nil {
			t.Fatal(err)
		}
	}
	hear := func(want string) {
		t.Helper()
		if _, got, err := ws.Read(t.Context()); err != nil || string(got) != want {
			t.Fatalf("got %q and %v on the websocket, want %q", got, err, want)
		}
	}
	say("2probe")
	hear("3probe")
	if status, answer := exchange(t, http.MethodPost, polling, "11:40/message,"); status != http.StatusOK {
		t.Fatalf("got %d %s, want the packet to be taken", status, answer)
	}
	for answer := ""; !strings.Contains(answer, "40/message"); {
		if _, answer = exchange(t, http.MethodGet, polling, ""); !strings.Contains(answer, "40/message") && answer != "1:6" {
			t.Fatalf("got %q for a poll, want NOOP or the namespace's CONNECT", answer)
		}
	}
	if _, answer := exchange(t, http.MethodGet, polling, ""); answer != "1:6" {
		t.Errorf("got %q for the last poll, want NOOP", answer)
	}
	say("5")
	say("2")
	hear("3")
	s.hub.HandleBroadcast(broadcast(`["message",{}]`, "a-b"))
	hear(`42/message,["message",{}]`)
}
