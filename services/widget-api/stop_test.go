package widgetapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/testkit/bustest"
)

// stopped stops a message that a bot is streaming to the visitor.
func (w *world) stopped(token string) {
	w.t.Helper()
	bot := bustest.Open(w.t, w.engines.NATSURL)
	release, err := bot.RPC().HandleStops(func(string, string, string) bool { return true })
	w.must(err)
	defer release()
	w.must(bot.Ready(w.t.Context()))
	if got := w.post("/message/"+uuid.NewString()+"/stop", token, ""); got.Status != http.StatusNoContent {
		w.t.Errorf("got %d %s, want 204", got.Status, got.Body)
	}
}

// A visitor stops only messages that a bot is streaming to them.
func TestStop(t *testing.T) {
	t.Parallel()
	w := start(t)
	token, other := w.register(appID, `"email":"a@example.com"`), w.register(appID, `"email":"b@example.com"`)
	id := uuid.Must(uuid.NewV7()).String()
	bot := bustest.Open(t, w.engines.NATSURL)
	asked := make(chan string, 10)
	stop, err := bot.RPC().HandleStops(func(appID, chatUserID, messageID string) bool {
		asked <- chatUserID
		return chatUserID == w.claims(token).ChatUserID && messageID == id
	})
	w.must(err)
	defer stop()
	w.must(bot.Ready(w.t.Context()))

	if got := w.post("/message/"+strings.ToUpper(id)+"/stop", token, ""); got.Status != http.StatusNoContent || got.Body != "" {
		t.Errorf("got %d %s, want 204", got.Status, got.Body)
	}
	if got := w.post("/message/"+id+"/stop", other, ""); got.Status != http.StatusNotFound || got.Problem(t).Code != "MESSAGE_NOT_FOUND" {
		t.Errorf("another visitor: got %d %s, want 404 MESSAGE_NOT_FOUND", got.Status, got.Body)
	}
	if first, second := <-asked, <-asked; first != w.claims(token).ChatUserID || second != w.claims(other).ChatUserID {
		t.Errorf("got requests of %s and %s, want each of the token's visitor", first, second)
	}
	_, m := w.fromCompany(token, 0)
	if got := w.post("/message/"+m.ID+"/stop", token, ""); got.Status != http.StatusConflict || got.Problem(t).Code != "MESSAGE_COMPLETE" {
		t.Errorf("of a complete message: got %d %s, want 409 MESSAGE_COMPLETE", got.Status, got.Body)
	}
	if got := w.post("/message/x.*/stop", token, ""); got.Status != http.StatusNotFound {
		t.Errorf("of no id: got %d %s, want 404", got.Status, got.Body)
	}
	w.closeChat(token)
	if got := w.post("/message/"+id+"/stop", token, ""); got.Status != http.StatusNotFound || got.Problem(t).Code != "CHAT_NOT_FOUND" {
		t.Errorf("without a chat: got %d %s, want 404 CHAT_NOT_FOUND", got.Status, got.Body)
	}
}
