package panel_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/httpapitest"
	"github.com/parley-chat/parley/testkit/timetest"
)

type tokenRow struct{ ID, Name, Status, CreatedBy, ExpiresAt string }

// A token works at once, stays valid for the overlap after its rotation, and is invalidated in the services
// when it is revoked.
func TestTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	cache := store.NewCache(w.store, store.CacheConfig{TokenTTL: time.Hour}) // expires only by invalidation
	stop, err := w.bus.RPC().OnInvalidate(cache.Forget)
	w.must(err)
	defer stop()
	valid := func(secret string) bool {
		hash, _ := credential.HashAccessToken(secret)
		token, err := cache.AccessToken(t.Context(), hash)
		return err == nil && token.Valid(time.Now())
	}
	developer := w.as(w.acme.users[account.Developer])
	var made, rotated struct {
		Token, Replaced tokenRow
		Secret          string
	}
	developer.done(http.StatusCreated, http.MethodPost, "/api/tokens", `{"name":"CRM"}`).Into(t, &made)
	if !valid(made.Secret) || made.Token.CreatedBy != "developer@acme.example" || made.Token.Status != "active" {
		t.Errorf("got %+v, want a token that works", made)
	}
	developer.done(http.StatusCreated, http.MethodPost, "/api/tokens/"+made.Token.ID+"/rotate", `{"overlapSeconds":600}`).Into(t, &rotated)
	if !valid(made.Secret) || !valid(rotated.Secret) || rotated.Replaced.ExpiresAt == "" || rotated.Token.Name != "CRM" {
		t.Errorf("got %+v, want both to work for a while", rotated)
	}
	developer.done(http.StatusOK, http.MethodPost, "/api/tokens/"+made.Token.ID+"/revoke", `{}`)
	timetest.Until(t, "a revoked token is refused", func() bool { return !valid(made.Secret) })
	developer.done(http.StatusConflict, http.MethodPost, "/api/tokens/"+made.Token.ID+"/rotate", `{"overlapSeconds":1}`)
	for _, bad := range []string{`{}`, `{"name":"x","expiresAt":"tomorrow"}`, `{"name":"x","expiresAt":"2020-01-01T00:00:00Z"}`} {
		developer.done(http.StatusBadRequest, http.MethodPost, "/api/tokens", bad)
	}
	log := w.as(w.acme.users[account.Owner]).done(http.StatusOK, http.MethodGet, "/api/audit", "").Body
	if strings.Contains(log, made.Secret) || strings.Contains(log, rotated.Secret) || !strings.Contains(log, "token.rotate") {
		t.Errorf("got %s, want the changes without the secrets", log)
	}
}

func TestApplicationsAndTemplates(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	developer, owner := w.as(w.acme.users[account.Developer]), w.as(w.acme.users[account.Owner])
	var app struct {
		ID, Version, Verification string
		WidgetConfigs             map[string]any
		Secrets                   []any
		Embed                     struct{ Snippet string }
	}
	developer.done(http.StatusCreated, http.MethodPost, "/api/applications", `{"name":"Shop","botName":"Polly","widgetConfigs":{"own":1.50,"primaryBackgroundColor":"#1f6feb"}}`).Into(t, &app)
	if app.Verification != "session" || !strings.Contains(app.Embed.Snippet, app.ID) || len(app.WidgetConfigs) != 2 {
		t.Errorf("got %+v", app)
	}
	path := "/api/applications/" + app.ID
	body := `{"name":"Shop 2","botName":"Polly","widgetConfigs":{"own":1.50},"allowedOrigins":["https://www.example.com"],"fileRetentionSeconds":3600}`
	raw := developer.done(http.StatusOK, http.MethodPut, path, body, "If-Match", `"`+app.Version+`"`).Body
	if !strings.Contains(raw, `{"own":1.50}`) {
		t.Errorf("got %s, want the widget's configs as they were sent", raw)
	}
	developer.done(http.StatusPreconditionFailed, http.MethodPut, path, body, "If-Match", `"`+app.Version+`"`)
	developer.done(http.StatusBadRequest, http.MethodPut, path, `{"name":"","botName":"x","allowedOrigins":["*"]}`)
	developer.done(http.StatusBadRequest, http.MethodPut, path+"/verification", `{"verification":"required"}`)
	if a := developer.done(http.StatusCreated, http.MethodPost, path+"/secrets", `{"overlapSeconds":60}`); !strings.Contains(a.Body, `"secret":"`) {
		t.Errorf("got %s, want a secret", a.Body)
	}
	developer.done(http.StatusOK, http.MethodPut, path+"/verification", `{"verification":"required"}`)

	var template struct{ ID, Status, Reason string }
	developer.done(http.StatusBadRequest, http.MethodPost, "/api/templates", `{"name":"x","text":"y","parameters":[{"name":"order"}]}`)
	developer.done(http.StatusCreated, http.MethodPost, "/api/templates", `{"name":"shipped","text":"Hello {{username}}, {{order}}","parameters":[{"name":"order","default":""}]}`).Into(t, &template)
	path = "/api/templates/" + template.ID
	developer.done(http.StatusForbidden, http.MethodPost, path+"/approve", `{}`)
	owner.done(http.StatusConflict, http.MethodPost, path+"/approve", `{}`)
	developer.done(http.StatusOK, http.MethodPost, path+"/submit", `{}`)
	owner.done(http.StatusBadRequest, http.MethodPost, path+"/reject", `{}`)
	owner.done(http.StatusOK, http.MethodPost, path+"/reject", `{"reason":"say which shop"}`)
	developer.done(http.StatusOK, http.MethodGet, path, "").Into(t, &template)
	if template.Status != "rejected" || template.Reason != "say which shop" {
		t.Errorf("got %+v, want it rejected with the reason", template)
	}
	developer.done(http.StatusOK, http.MethodPost, path+"/submit", `{}`)
	owner.done(http.StatusOK, http.MethodPost, path+"/approve", `{}`)
	if a := developer.done(http.StatusOK, http.MethodPost, path+"/test", `{"source":"491701234567","username":"Ada","values":{"order":"4711"}}`); !strings.Contains(a.Body, `"wouldSend":true`) || !strings.Contains(a.Body, "Hello Ada, 4711") {
		t.Errorf("got %s, want that it would be sent", a.Body)
	}
	if a := developer.done(http.StatusOK, http.MethodPost, path+"/test", `{"source":"12"}`); !strings.Contains(a.Body, `"wouldSend":false`) {
		t.Errorf("got %s, want what is wrong", a.Body)
	}
	if a := developer.done(http.StatusOK, http.MethodGet, path+"/history", ""); strings.Count(a.Body, `"action"`) != 5 {
		t.Errorf("got %s, want five steps", a.Body)
	}
}

func TestPeople(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	owner := w.as(w.acme.users[account.Owner])
	var invited struct {
		User          struct{ ID, Status string }
		InvitationURL string
	}
	owner.done(http.StatusForbidden, http.MethodPost, "/api/users", `{"email":"op2@example.com","role":"operator"}`)
	owner.done(http.StatusConflict, http.MethodPost, "/api/users", `{"email":"AGENT@acme.example","role":"agent"}`)
	owner.done(http.StatusCreated, http.MethodPost, "/api/users", `{"email":"new@acme.example","role":"agent"}`).Into(t, &invited)
	_, token, ok := strings.Cut(invited.InvitationURL, "/#/invitation/")
	if !ok || invited.User.Status != "invited" {
		t.Fatalf("got %+v, want an invitation", invited)
	}
	guest := w.browser(w.base)
	guest.done(http.StatusNotFound, http.MethodPost, "/api/invitation/check", `{"token":"`+token+`x"}`)
	guest.done(http.StatusOK, http.MethodPost, "/api/invitation/check", `{"token":"`+token+`"}`)
	guest.done(http.StatusBadRequest, http.MethodPost, "/api/invitation", `{"token":"`+token+`","password":"short"}`)
	guest.done(http.StatusOK, http.MethodPost, "/api/invitation", `{"token":"`+token+`","name":"New","password":"a long password"}`)
	guest.done(http.StatusOK, http.MethodGet, "/api/session", "")
	w.browser(w.base).done(http.StatusNotFound, http.MethodPost, "/api/invitation", `{"token":"`+token+`","password":"a long password"}`)
	owner.done(http.StatusConflict, http.MethodPost, "/api/users/"+invited.User.ID+"/invitation", `{}`)

	owner.done(http.StatusNoContent, http.MethodDelete, "/api/users/"+invited.User.ID+"/sessions", "")
	guest.done(http.StatusUnauthorized, http.MethodGet, "/api/session", "")
	if a := guest.signIn("new@acme.example", "a long password"); a.Status != http.StatusOK {
		t.Fatalf("got %d %s", a.Status, a.Body)
	}
	owner.done(http.StatusOK, http.MethodPatch, "/api/users/"+invited.User.ID, `{"disabled":true}`)
	guest.done(http.StatusUnauthorized, http.MethodGet, "/api/session", "")
	if a := guest.signIn("new@acme.example", "a long password"); a.Status != http.StatusUnauthorized {
		t.Errorf("a disabled user: got %d, want 401", a.Status)
	}
	own := "/api/users/" + w.acme.users[account.Owner].ID
	owner.done(http.StatusConflict, http.MethodPatch, own, `{"role":"agent"}`)
	owner.done(http.StatusConflict, http.MethodDelete, own, "")
	owner.done(http.StatusBadRequest, http.MethodPatch, own, `{"role":"operator"}`)
	owner.done(http.StatusNoContent, http.MethodDelete, "/api/users/"+invited.User.ID, "")
	operator := w.as(w.operator)
	operator.done(http.StatusBadRequest, http.MethodGet, "/api/tokens", "")
	operator.done(http.StatusOK, http.MethodGet, "/api/tokens?companyId="+w.other.id, "")
	operator.done(http.StatusCreated, http.MethodPost, "/api/users", `{"email":"op2@example.com","role":"operator"}`)
}

func TestStreams(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	operator := w.as(w.operator)
	consumer := func(failing bool) (stop func()) {
		ctx, cancel := context.WithCancel(t.Context())
		b := bustest.Open(t, w.natsURL)
		ended := make(chan error, 1)
		go func() {
			ended <- b.Consume(ctx, bus.Consumer{
				Stream: subject.Inbound, Durable: "recorder", Filters: []string{subject.AllVisitorMessages},
				Handle: func(context.Context, bus.Delivery) error {
					if failing {
						return apperr.New(apperr.Invalid, "BROKEN", "It is broken")
					}
					return nil
				},
			})
		}()
		return func() { cancel(); w.must(<-ended) }
	}
	stop := consumer(true)
	tail, _ := operator.events("/api/tail?kind=visitor-message&since=1h&companyId="+w.acme.id, "")
	m := w.visitorWrites(w.acme, "doomed")
	var letters struct {
		Letters []struct {
			Sequence uint64
			Reason   string
		}
	}
	timetest.Until(t, "a dead letter", func() bool {
		operator.done(http.StatusOK, http.MethodGet, "/api/dead-letters?consumer=recorder", "").Into(t, &letters)
		return len(letters.Letters) > 0
	})
	stop()
	sequence := letters.Letters[0].Sequence
	if a := operator.done(http.StatusOK, http.MethodGet, fmt.Sprint("/api/dead-letters/", sequence), ""); !strings.Contains(a.Body, "doomed") || !strings.Contains(a.Body, "headers") {
		t.Errorf("got %s, want the letter with its event", a.Body)
	}
	if a := operator.done(http.StatusOK, http.MethodGet, "/api/trace/"+m.ID, ""); !strings.Contains(a.Body, `"state":"dead"`) || !strings.Contains(a.Body, `"stored"`) {
		t.Errorf("got %s, want the trace of the message", a.Body)
	}
	operator.done(http.StatusNotFound, http.MethodGet, "/api/trace/"+w.acme.chat, "")
	if a := operator.done(http.StatusOK, http.MethodPost, "/api/dead-letters/redrive", `{"consumer":"recorder","dryRun":true}`); !strings.Contains(a.Body, "would be redriven") {
		t.Errorf("got %s, want what would be done", a.Body)
	}
	if a := operator.done(http.StatusOK, http.MethodPost, "/api/dead-letters/redrive", fmt.Sprintf(`{"sequences":[%d,999]}`, sequence)); !strings.Contains(a.Body, `"redriven"`) || !strings.Contains(a.Body, `"failed"`) {
		t.Errorf("got %s, want the one redriven and the other missing", a.Body)
	}
	defer consumer(false)()
	operator.done(http.StatusBadRequest, http.MethodPost, "/api/dead-letters/drop", `{}`)
	timetest.Until(t, "the recorder has acknowledged everything", func() bool {
		a := operator.done(http.StatusOK, http.MethodGet, "/api/streams", "")
		return strings.Contains(a.Body, `"name":"recorder","pending":0,"ackPending":0`)
	})
	if e := w.next(tail, "event"); !strings.Contains(e.data, m.ID) {
		t.Errorf("got %s, want the message as it passed", e.data)
	}
}

func TestFilesAndErasure(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	agent, owner := w.as(w.acme.users[account.Agent]), w.as(w.acme.users[account.Owner])
	w.visitorWrites(w.acme, "my secret")
	w.visitorWrites(w.other, "stays")
	png := "\x89PNG\r\n\x1a\n" + strings.Repeat("x", 5000)
	form := func(content string) string {
		return "--b\r\nContent-Disposition: form-data; name=\"caption\"\r\n\r\nlook\r\n--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.png\"\r\n" +
			"Content-Type: image/png\r\n\r\n" + content + "\r\n--b--\r\n"
	}
	path := "/api/chats/" + w.acme.chat + "/files"
	send := func(key, content string) httpapitest.Response {
		return agent.do(http.MethodPost, path, form(content), "Content-Type", "multipart/form-data; boundary=b", "Idempotency-Key", key)
	}
	first, again := send("f1", png), send("f1", png)
	if first.Status != http.StatusCreated || again.Body != first.Body || !strings.Contains(first.Body, `"IMAGE"`) || !strings.Contains(first.Body, `"caption":"look"`) {
		t.Fatalf("got %d %s and %s, want one image", first.Status, first.Body, again.Body)
	}
	files, err := w.store.IDs(t.Context(), store.IDFilter{FilesOf: w.acme.visitor}, store.Page{})
	w.must(err)
	if len(files) != 1 {
		t.Errorf("got the files %v, want the second upload removed", files)
	}
	if a := send("f2", ""); a.Status != http.StatusBadRequest {
		t.Errorf("an empty file: got %d %s", a.Status, a.Body)
	}
	if a := send("f3", strings.Repeat("x", 26<<20)); a.Status != http.StatusRequestEntityTooLarge {
		t.Errorf("a large file: got %d %s", a.Status, a.Body)
	}

	visitor := "/api/visitors/" + w.acme.visitor
	if a := owner.done(http.StatusOK, http.MethodGet, "/api/visitors?q=ada", ""); strings.Count(a.Body, `"id"`) != 1 {
		t.Errorf("got %s, want the company's visitor alone", a.Body)
	}
	export := owner.done(http.StatusOK, http.MethodGet, visitor+"/export", "")
	if !strings.Contains(export.Body, "my secret") || !strings.Contains(export.Header.Get("Content-Disposition"), "attachment") {
		t.Errorf("got %s, want all of it as a file", export.Body)
	}
	owner.done(http.StatusBadRequest, http.MethodPost, visitor+"/erase", `{"confirm":"yes"}`)
	var receipt struct{ Chats, Messages, Files, Events int }
	owner.done(http.StatusOK, http.MethodPost, visitor+"/erase", `{"confirm":"`+w.acme.visitor+`"}`).Into(t, &receipt)
	// the message, the reply, the take-over
	if receipt.Chats != 1 || receipt.Messages != 2 || receipt.Files != 1 || receipt.Events != 3 {
		t.Errorf("got %+v", receipt)
	}
	owner.done(http.StatusNotFound, http.MethodGet, visitor+"/export", "")
	for _, stream := range []string{subject.Inbound, subject.Replies, subject.Dead} {
		for d, err := range w.bus.Read(t.Context(), bus.Range{Stream: stream}) {
			w.must(err)
			if strings.Contains(string(d.Data), w.acme.visitor) {
				t.Errorf("%s still has %s", stream, d.Data)
			}
		}
	}
	if _, _, err := w.store.History(t.Context(), w.acme.chat, store.HistoryQuery{}); !apperr.Is(err, apperr.NotFound) {
		t.Errorf("the erased history: got %v", err)
	}
	if m, _, err := w.store.History(t.Context(), w.other.chat, store.HistoryQuery{}); err != nil || len(m) != 1 {
		t.Errorf("another visitor's history: got %v, %v", m, err)
	}
	if a := owner.done(http.StatusOK, http.MethodGet, "/api/audit?target="+w.acme.visitor, ""); !strings.Contains(a.Body, "visitor.erase") || !strings.Contains(a.Body, `"messages":2`) {
		t.Errorf("got %s, want the receipt in the log", a.Body)
	}
}
