package e2e

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/testkit/httpapitest"
)

// redisForgets kills Redis, which keeps nothing on a disk, under load. A key still answers for its request, revoked
// tokens stay revoked, and nothing that was accepted is lost: see docs/consistency.md.
func (f *deployment) redisForgets(t *testing.T) {
	revoked, v := register(t, f.place, f.widgetAPI(t)), register(t, f.place, f.widgetAPI(t))
	chatUserID, _ := f.chatUser(t, revoked)
	f.operator(t).run("visitors", "revoke", chatUserID, "--yes")
	refused := func() error {
		got := revoked.api.call(t, http.MethodGet, "/message", nil, bearer(revoked.token))
		if got.Status != http.StatusUnauthorized {
			return fmt.Errorf("got %d, want 401", got.Status)
		}
		return nil
	}
	eventually(t, "the token is refused", refused)
	body := map[string]any{"type": "TEXT", "chatId": chatOf(t, f.place, v), "data": map[string]string{"text": "once"}}
	key := header{"Idempotency-Key", uuid.NewString()}
	company := f.clientAPI(t)
	send := func() httpapitest.Response {
		return company.call(t, http.MethodPost, "/message/send", body, accessToken(f.AccessToken), key)
	}
	first := want[sent](t, http.StatusOK, send())
	traffic := startTraffic(t, f.place)
	traffic.await(t, "traffic", &traffic.accepted, 30)

	check(t, f.run["redis"].kill())
	f.start(t, "redis")
	f.awaitReady(t, http.StatusOK, f.services...)
	traffic.await(t, "traffic after Redis has forgotten everything", &traffic.accepted, 30)
	again := send()
	id := want[sent](t, http.StatusOK, again).MessageID
	if id != first.MessageID || again.Header.Get("Idempotency-Replayed") != "true" {
		t.Errorf("got the message %s with %v, want the first answer, with %s", id, again.Header, first.MessageID)
	}
	check(t, refused())
	socket := openSocket(t, f.SocketURLs[0], revoked.token, "websocket")
	if e := socket.await(t, "connect", "connect_error"); e.Kind != "connect_error" {
		t.Errorf("got %s for a socket with a revoked token, want connect_error", e.Kind)
	}
	traffic.checkNothingLost(t, f.asOperator())
	times := 0
	for _, r := range v.history(t) {
		if r.ID == first.MessageID {
			times++
		}
	}
	if times != 1 {
		t.Errorf("got the message %d times in the history, want once", times)
	}
}
