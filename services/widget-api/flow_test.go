package widgetapi_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
	widgetapi "github.com/parley-chat/parley/services/widget-api"
	"github.com/parley-chat/parley/testkit/bustest"
)

func TestSettings(t *testing.T) {
	t.Parallel()
	w := start(t)
	got := w.get("/settings/"+strings.ToUpper(appID), "")
	want := `{"id":"` + appID + `","botName":"Bo","name":"Shop \"Blue\"","widgetConfigs":` + configs + `}`
	if got.Status != 200 || got.Body != want {
		t.Errorf("got %d %s, want 200 %s", got.Status, got.Body, want)
	}
	if bare := w.get("/settings/"+bareApp, ""); !strings.HasSuffix(bare.Body, `"widgetConfigs":{}}`) {
		t.Errorf("without widgetConfigs: got %s, want an empty object", bare.Body)
	}

	tag := got.Header.Get("ETag")
	for _, sent := range []string{tag, "W/" + tag, `"other", ` + tag, "*"} {
		again, err := w.do(http.MethodGet, "/settings/"+appID, "", headers{"If-None-Match": sent})
		w.must(err)
		if again.Status != http.StatusNotModified || again.Body != "" || again.Header.Get("ETag") != tag {
			t.Errorf("If-None-Match %s: got %d %q, want 304", sent, again.Status, again.Body)
		}
	}
	other, err := w.do(http.MethodGet, "/settings/"+appID, "", headers{"If-None-Match": `"other"`})
	w.must(err)
	if other.Status != 200 {
		t.Errorf("another ETag: got %d, want 200", other.Status)
	}
}

func TestRegisterOpensAChatWithGreetings(t *testing.T) {
	t.Parallel()
	w := start(t)
	published := bustest.Collect(t, w.engines.NATSURL, "chat.in.>")
	token := w.register(appID, `"firstName":"Sara","email":"Sara@Example.com"`)
	claims := w.claims(token)
	if claims.AppID != appID || claims.CompanyID != companyID || claims.TokenID == "" || claims.ExpiresAt.Sub(claims.IssuedAt) != 720*time.Hour {
		t.Errorf("got the claims %+v", claims)
	}

	m := published.Next()
	if want := "chat.in.visitor.registered." + appID + "." + claims.ChatUserID; m.Subject != want {
		t.Errorf("got the subject %s, want %s", m.Subject, want)
	}
	for _, part := range []string{`"chatOpened":true`, `"firstName":"Sara"`, `"companyId":"` + companyID + `"`} {
		if !strings.Contains(string(m.Data), part) {
			t.Errorf("got the event %s, want it to hold %s", m.Data, part)
		}
	}

	history := w.history(token)
	if len(history) != 2 {
		t.Fatalf("got the history %v, want two greetings", history)
	}
	for i, text := range []string{`{"text":"Hello \"you\" é"}`, `{"text":"How can we help?"}`} {
		if r := history[i]; string(r.Data) != text || r.Type != "TEXT" || r.NameOfSender != "Bo" || !r.IsFromSupport {
			t.Errorf("greeting %d: got %+v, want %s from the bot", i, r, text)
		}
	}
}

// A visitor who registers again continues the same chat, without new greetings.
func TestRegisterAgain(t *testing.T) {
	t.Parallel()
	w := start(t)
	published := bustest.Collect(t, w.engines.NATSURL, "chat.in.>")
	first := w.claims(w.register(appID, `"email":"sara@example.com","firstName":"Sara"`))
	for _, members := range []string{
		`"email":"SARA@example.com"`,
		`"email":"sara@example.com","userId":"crm-1","lastName":"Ahmadi"`,
		`"userId":"crm-1","phone":"989121234567"`,
		`"phone":"989121234567"`,
	} {
		token := w.register(appID, members)
		if got := w.claims(token); got.ChatUserID != first.ChatUserID {
			t.Errorf("%s: got the visitor %s, want %s", members, got.ChatUserID, first.ChatUserID)
		}
		if n := len(w.history(token)); n != 2 {
			t.Errorf("%s: got %d messages, want the two greetings of the first registration", members, n)
		}
	}
	last := published.Await(5)[4]
	for _, part := range []string{`"chatOpened":false`, `"firstName":"Sara","lastName":"Ahmadi"`, `"userId":"crm-1"`} {
		if !strings.Contains(string(last.Data), part) {
			t.Errorf("got the last event %s, want it to hold %s", last.Data, part)
		}
	}
	if other := w.claims(w.register(bareApp, `"email":"sara@example.com"`)); other.ChatUserID == first.ChatUserID {
		t.Error("got the same visitor at another application, want another")
	}
}

func TestConcurrentRegistrationsAreOneVisitor(t *testing.T) {
	t.Parallel()
	w := start(t)
	var wait sync.WaitGroup
	tokens := make([]string, 8)
	for i := range tokens {
		wait.Go(func() { tokens[i] = w.register(appID, `"email":"twin@example.com","userId":"twin"`) })
	}
	wait.Wait()
	for _, token := range tokens {
		if got, want := w.claims(token).ChatUserID, w.claims(tokens[0]).ChatUserID; got != want {
			t.Errorf("got the visitor %s, want %s", got, want)
		}
		if n := len(w.history(token)); n != 2 {
			t.Errorf("got %d messages, want two greetings", n)
		}
	}
}

func TestPresentRequiredFields(t *testing.T) {
	t.Parallel()
	w := start(t)
	w.register(strictApp, `"email":"a@example.com","firstName":"Sara","company":{"name":"ACME"}`)
}

func TestEmailAddresses(t *testing.T) {
	t.Parallel()
	w := start(t)
	status := func(email string) int {
		raw, err := json.Marshal(map[string]string{"appId": bareApp, "email": email})
		w.must(err)
		return w.post("/register", "", string(raw)).Status
	}
	for _, email := range []string{"a@b.co", "first.last+tag@sub.example-1.com", "o'neil@example.com", "ü@bücher.example"} {
		if got := status(email); got != 200 {
			t.Errorf("%q: got %d, want 200", email, got)
		}
	}
	for _, email := range []string{"", "a", "a@", "@b.co", "a@b", "a b@c.co", `"a b"@c.co`, "a@[127.0.0.1]", "Sara <a@b.co>", "a@b..co", "a@-b.co", "a@b.co ", "a@b.co,c@d.co",
		"a.@b.co", strings.Repeat("a", 65) + "@b.co", "a@" + strings.Repeat("b.", 130) + "co", "a@b_c.co", "a@b.co\nx"} {
		if got := status(email); got != 400 {
			t.Errorf("%q: got %d, want 400", email, got)
		}
	}
}

func TestMessageIsPublishedAndInTheHistoryAtOnce(t *testing.T) {
	t.Parallel()
	w := start(t)
	token := w.register(appID, `"firstName":"Sara","lastName":"Ahmadi","email":"sara@example.com"`)
	claims := w.claims(token)
	published := bustest.Collect(t, w.engines.NATSURL, "chat.in.visitor.message.>")
	for _, test := range []struct{ kind, data string }{
		{"TEXT", `{ "text":"h\u00e9", "n":1.50, "own":{"b":1,"a":[null]} }`},
		{"MULTIPLE_CHOICE_REPLY", `{"text":"Morning","payload":"AM","replyTo":"x"}`},
	} {
		got := w.post("/message", token, `{"type":"`+test.kind+`","data":`+test.data+`}`)
		var r record
		if err := json.Unmarshal([]byte(got.Body), &r); err != nil || got.Status != http.StatusCreated {
			t.Fatalf("%s: got %d %s, want 201", test.kind, got.Status, got.Body)
		}
		if id, err := uuid.Parse(r.ID); err != nil || id.Version() != 7 || r.Type != test.kind || r.NameOfSender != "Sara Ahmadi" || r.IsFromSupport {
			t.Errorf("%s: got the record %+v", test.kind, r)
		}
		history := w.history(token)
		if last := history[len(history)-1]; last.ID != r.ID || string(last.Data) != test.data || !last.CreatedAt.Equal(r.CreatedAt) {
			t.Errorf("%s: got %s at the end of the history, want the message as it was sent", test.kind, last.Data)
		}
		w.published(published.Next(), claims.ChatUserID, r.ID, test.data)
	}
}

func (w *world) published(m *nats.Msg, visitor, id, data string) {
	w.t.Helper()
	if want := "chat.in.visitor.message." + appID + "." + visitor; m.Subject != want || m.Header.Get("Nats-Msg-Id") != id {
		w.t.Errorf("got the event %s on %s, want %s on %s", m.Header.Get("Nats-Msg-Id"), m.Subject, id, want)
	}
	if !strings.Contains(string(m.Data), `"data":`+data) || !strings.Contains(string(m.Data), `"companyId":"`+companyID+`"`) {
		w.t.Errorf("got the event %s, want the data as it was sent", m.Data)
	}
}

// A message without an open chat opens one, and the history is that of the new chat.
func TestMessageOpensAChat(t *testing.T) {
	t.Parallel()
	w := start(t)
	token := w.register(appID, `"email":"sara@example.com"`)
	w.closeChat(token)
	if got := w.get("/message", token); got.Status != http.StatusNotFound {
		t.Errorf("with a closed chat: got %d, want 404", got.Status)
	}
	if got := w.post("/message", token, `{"type":"TEXT","data":{"text":"again"}}`); got.Status != http.StatusCreated {
		t.Fatalf("got %d %s, want 201", got.Status, got.Body)
	}
	if history := w.history(token); len(history) != 1 || string(history[0].Data) != `{"text":"again"}` || history[0].NameOfSender != "Visitor" {
		t.Errorf("got %+v, want the one message", history)
	}
}

func TestHistoryAscends(t *testing.T) {
	t.Parallel()
	w := start(t)
	token := w.register(appID, `"email":"sara@example.com"`)
	for range 20 {
		if got := w.post("/message", token, `{"type":"TEXT","data":{"text":"x"}}`); got.Status != http.StatusCreated {
			t.Fatalf("got %d %s, want 201", got.Status, got.Body)
		}
	}
	history := w.history(token)
	if len(history) != 22 || !slices.IsSortedFunc(history, func(a, b record) int { return a.CreatedAt.Compare(b.CreatedAt) }) {
		t.Errorf("got %d messages, want 22 in the order of their times", len(history))
	}
}

// A changed name appears on the next message.
func TestNameChanges(t *testing.T) {
	t.Parallel()
	w := start(t, func(cfg *widgetapi.Config) { cfg.CacheTTL = time.Hour })
	token := w.register(appID, `"email":"sara@example.com"`)
	for _, name := range []string{"Sara", "Sarah"} {
		w.register(appID, `"email":"sara@example.com","firstName":"`+name+`"`)
		got := w.post("/message", token, `{"type":"TEXT","data":{"text":"x"}}`)
		if !strings.Contains(got.Body, `"nameOfSender":"`+name+`"`) {
			t.Errorf("got %s, want the name %s", got.Body, name)
		}
	}
}

func TestStoredWindowFollowsTheVisitor(t *testing.T) {
	t.Parallel()
	w := start(t)
	token := w.register(appID, `"email":"sara@example.com"`)
	w.post("/message", token, `{"type":"TEXT","data":{"text":"x"}}`)
	v, err := w.store.Visitor(t.Context(), w.claims(token).ChatUserID)
	w.must(err)
	c, err := store.CurrentChat(t.Context(), w.store, v, time.Now())
	w.must(err)
	if c.Status(time.Now()) != chat.Active || !c.WindowStartedAt.Equal(c.VisitorWroteAt) {
		t.Errorf("got the chat %+v, want it active with a window from the message", c)
	}
}
