package panel_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/services/panel"
)

// step is one route of the walk and its resource.
type step struct {
	method, path, body string
	permission         account.Permission
	item               bool // names a resource of a company
	kind               kind
}

// kind marks special steps.
type kind int

const (
	plain   kind = iota
	endless      // a stream of events
	absent       // names a resource that does not exist
)

// steps lists all routes with a session. TestDocumentListsEveryRoute compares them with the document.
func steps(c company) []step {
	user := c.users[account.Agent].ID
	tokens, applications, templates, chats := "/api/tokens/"+c.token, "/api/applications/"+c.app, "/api/templates/"+c.template, "/api/chats/"+c.chat
	webhooks, q := "/api/webhooks/"+c.endpoint, "?companyId="+c.id
	return []step{
		{"PATCH", "/api/companies/" + c.id, `{"name":"acme"}`, account.People, true, plain},
		{"GET", "/api/tokens" + q, "", account.Tokens, true, plain},
		{"POST", "/api/tokens" + q, `{"name":"x"}`, account.Tokens, true, plain},
		{"POST", tokens + "/rotate", `{"overlapSeconds":60}`, account.Tokens, true, plain},
		{"POST", tokens + "/revoke", `{}`, account.Tokens, true, plain},
		{"GET", "/api/applications" + q, "", account.ReadApplications, true, plain},
		{"POST", "/api/applications" + q, `{"name":"x","botName":"y"}`, account.WriteApplications, true, plain},
		{"GET", applications, "", account.ReadApplications, true, plain},
		{"PUT", applications, `{"name":"x","botName":"y"}`, account.WriteApplications, true, plain},
		{"PUT", applications + "/support", `{"rating":true}`, account.WriteApplications, true, plain},
		{"PUT", applications + "/verification", `{"verification":"off"}`, account.WriteApplications, true, plain},
		{"POST", applications + "/secrets", `{"overlapSeconds":60}`, account.WriteApplications, true, plain},
		{"GET", "/api/templates" + q, "", account.ReadTemplates, true, plain},
		{"POST", "/api/templates" + q, `{"name":"x","text":"y"}`, account.WriteTemplates, true, plain},
		{"GET", templates, "", account.ReadTemplates, true, plain},
		{"GET", templates + "/history", "", account.ReadTemplates, true, plain},
		{"POST", templates + "/test", `{"source":"491701234567"}`, account.WriteTemplates, true, plain},
		{"PUT", templates, `{"name":"x","text":"y"}`, account.WriteTemplates, true, plain},
		{"POST", templates + "/submit", `{}`, account.WriteTemplates, true, plain},
		{"POST", templates + "/approve", `{}`, account.ApproveTemplates, true, plain},
		{"POST", templates + "/reject", `{"reason":"x"}`, account.ApproveTemplates, true, plain},
		{"GET", "/api/ratings" + q, "", account.ReadApplications, true, plain},
		{"GET", "/api/webhooks" + q, "", account.Webhooks, true, plain},
		{"POST", "/api/webhooks" + q, `{"url":"https://crm.example"}`, account.Webhooks, true, plain},
		{"PUT", "/api/webhooks/retention" + q, `{"retentionDays":7}`, account.Webhooks, true, plain},
		{"PATCH", webhooks, `{"ordered":true}`, account.Webhooks, true, plain},
		{"POST", webhooks + "/rotate", `{"overlapSeconds":60}`, account.Webhooks, true, plain},
		{"POST", webhooks + "/enable", `{}`, account.Webhooks, true, plain},
		{"POST", webhooks + "/disable", `{}`, account.Webhooks, true, plain},
		{"POST", webhooks + "/test", `{}`, account.Webhooks, true, plain},
		{"GET", webhooks + "/deliveries", "", account.Webhooks, true, plain},
		{"POST", webhooks + "/replay", `{"dryRun":true}`, account.Webhooks, true, plain},
		{"DELETE", webhooks, "", account.Webhooks, true, plain},
		{"GET", "/api/chats" + q, "", account.Inbox, true, plain},
		{"GET", "/api/chats/counts" + q, "", account.Inbox, true, plain},
		{"GET", chats, "", account.Inbox, true, plain},
		{"GET", chats + "/messages", "", account.Inbox, true, plain},
		{"POST", chats + "/messages", `{"type":"TEXT","data":{"text":"x"}}`, account.Inbox, true, plain},
		{"POST", chats + "/files", "x", account.Inbox, true, plain},
		{"PUT", chats + "/control", `{"control":"agent"}`, account.Inbox, true, plain},
		{"PUT", chats + "/assignee", `{"userId":null}`, account.Inbox, true, plain},
		{"POST", chats + "/read", `{}`, account.Inbox, true, plain},
		{"POST", chats + "/presence", `{}`, account.Inbox, true, plain},
		{"POST", chats + "/typing", `{}`, account.Inbox, true, plain},
		{"POST", chats + "/close", `{}`, account.Inbox, true, plain},
		{"GET", "/api/agents" + q, "", account.Inbox, true, plain},
		{"GET", "/api/events" + q, "", account.Inbox, true, endless},
		{"GET", "/api/users" + q, "", account.People, true, plain},
		{"POST", "/api/users" + q, `{"email":"new@example.com","role":"agent"}`, account.People, true, plain},
		{"POST", "/api/users/" + user + "/invitation", `{}`, account.People, true, plain},
		{"PATCH", "/api/users/" + user, `{"name":"x"}`, account.People, true, plain},
		{"GET", "/api/users/" + user + "/sessions", "", account.People, true, plain},
		{"DELETE", "/api/users/" + user + "/sessions", "", account.People, true, plain},
		{"DELETE", "/api/users/" + user, "", account.People, true, plain},
		{"GET", "/api/audit" + q, "", account.Audit, true, plain},
		{"GET", "/api/visitors" + q, "", account.Visitors, true, plain},
		{"GET", "/api/visitors/" + c.visitor + "/export", "", account.Visitors, true, plain},
		{"POST", "/api/visitors/" + c.visitor + "/erase", `{"confirm":"` + c.visitor + `"}`, account.Visitors, true, plain},
		{"GET", "/api/streams", "", account.Streams, false, plain},
		{"GET", "/api/dead-letters", "", account.Streams, false, plain},
		{"GET", "/api/dead-letters/1", "", account.Streams, false, absent},
		{"POST", "/api/dead-letters/redrive", `{}`, account.Streams, false, plain},
		{"POST", "/api/dead-letters/drop", `{}`, account.Streams, false, plain},
		{"GET", "/api/trace/unknown", "", account.Streams, false, absent},
		{"GET", "/api/tail", "", account.Streams, false, endless},
		{"POST", "/api/templates/preview", `{"text":"x"}`, account.ReadTemplates, false, plain},
		{"POST", "/api/companies", `{"name":"new"}`, account.Companies, false, plain},
		{"GET", "/api/companies", "", "", false, plain},
		{"GET", "/api/session", "", "", false, plain},
		{"GET", "/api/sessions", "", "", false, plain},
		{"DELETE", "/api/sessions/unknown", "", "", false, plain},
		{"PUT", "/api/password", `{}`, "", false, plain},
		{"POST", "/api/totp", `{}`, "", false, plain},
		{"POST", "/api/totp/confirm", `{}`, "", false, plain},
		{"POST", "/api/totp/recovery-codes", `{}`, "", false, plain},
		{"DELETE", "/api/totp", `{}`, "", false, plain},
		{"DELETE", "/api/sessions", "", "", false, plain},
		{"DELETE", "/api/session", "", "", false, plain},
	}
}

// TestRoleWalk calls every route with every role, on the user's own company and on a foreign one.
func TestRoleWalk(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	for _, u := range []account.User{w.acme.users[account.Owner], w.acme.users[account.Developer], w.acme.users[account.Agent], w.operator} {
		for _, foreign := range []bool{true, false} {
			about, session := w.acme, w.as(u)
			if foreign {
				about = w.other
			}
			for _, s := range steps(about) {
				operator := u.Role == account.Operator // no company is foreign to an operator
				if (!foreign || operator) && (s.method != "GET" || s.kind == endless) {
					continue // the sections' tests cover permitted changes
				}
				if foreign && !s.item {
					continue
				}
				want := http.StatusOK
				switch {
				case s.permission != "" && !u.Role.May(s.permission):
					want = http.StatusForbidden
				case foreign && !operator, s.kind == absent:
					want = http.StatusNotFound
				}
				a := session.do(s.method, s.path, s.body, "Idempotency-Key", "walk")
				if a.Status != want {
					t.Errorf("%s, foreign %v: %s %s: got %d %s, want %d", u.Role, foreign, s.method, s.path, a.Status, a.Body, want)
				}
				if foreign && !operator && strings.Contains(a.Body, "ada@other") {
					t.Errorf("%s: %s %s shows another company's data: %s", u.Role, s.method, s.path, a.Body)
				}
			}
		}
	}
	for _, s := range steps(w.acme) { // nothing without a session
		if a := w.browser(w.base).do(s.method, s.path, s.body); a.Status != http.StatusUnauthorized {
			t.Errorf("without a session: %s %s: got %d %s, want 401", s.method, s.path, a.Status, a.Body)
		}
	}
	// a user cannot grant a role above their own
	for _, role := range []account.Role{account.Developer, account.Agent, account.Owner} {
		session := w.as(w.acme.users[role])
		for _, s := range steps(w.acme) {
			if s.permission == "" || role.May(s.permission) {
				continue
			}
			if a := session.do(s.method, s.path, s.body, "Idempotency-Key", "walk"); a.Status != http.StatusForbidden {
				t.Errorf("%s: %s %s: got %d %s, want 403", role, s.method, s.path, a.Status, a.Body)
			}
		}
	}
}

func unlimited(cfg *panel.Config) { cfg.RateSignIn, cfg.RateAccount = config.Rate{}, config.Rate{} }

// walked lists the routes of the walk, as "METHOD /path", with their permissions.
func walked() map[string]account.Permission {
	c := company{id: "C", endpoint: "W", app: "A", template: "T", visitor: "V", chat: "K", token: "H", users: map[account.Role]account.User{account.Agent: {ID: "U"}}}
	ids := strings.NewReplacer("/C", "/{id}", "/A/", "/{id}/", "/W/", "/{id}/", "/T/", "/{id}/", "/K/", "/{id}/", "/H/", "/{id}/", "/U", "/{id}", "/V", "/{id}", "/unknown", "/{id}", "/dead-letters/1/", "/dead-letters/{sequence}/")
	all := map[string]account.Permission{}
	for _, s := range steps(c) {
		path, _, _ := strings.Cut(s.path, "?")
		all[s.method+" "+strings.TrimSuffix(ids.Replace(path+"/"), "/")] = s.permission
	}
	return all
}

func TestCSRF(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	owner := w.as(w.acme.users[account.Owner])
	for name, headers := range map[string][]string{
		"no header":           {"X-CSRF-Token", ""},
		"a wrong header":      {"X-CSRF-Token", "x"},
		"another session's":   {"X-CSRF-Token", w.as(w.acme.users[account.Owner]).csrf},
		"another origin":      {"Origin", "https://evil.example"},
		"no origin":           {"Origin", "null"},
		"another site":        {"Sec-Fetch-Site", "cross-site"},
		"a sibling":           {"Sec-Fetch-Site", "same-site"},
		"the form of a page":  {"Content-Type", "text/plain", "X-CSRF-Token", ""},
		"a port of this host": {"Origin", "http://127.0.0.1:1"},
	} {
		a := owner.do(http.MethodPost, "/api/tokens", `{"name":"x"}`, headers...)
		if a.Status != http.StatusForbidden || !strings.Contains(a.Body, `"CSRF"`) {
			t.Errorf("%s: got %d %s, want 403 CSRF", name, a.Status, a.Body)
		}
	}
	owner.done(http.StatusCreated, http.MethodPost, "/api/tokens", `{"name":"x"}`, "Origin", w.base, "Sec-Fetch-Site", "same-origin")
	if a := w.browser(w.base).do(http.MethodPost, "/api/session", `{}`, "X-CSRF-Token", ""); a.Status != http.StatusForbidden {
		t.Errorf("a cross-site sign-in: got %d, want 403", a.Status)
	}
	if a := owner.do(http.MethodGet, "/api/tokens", "", "Origin", "https://evil.example"); a.Header.Get("Access-Control-Allow-Origin") != "" {
		t.Error("another origin may read answers")
	}
}

// Session fixation: a secret that the browser had before the sign-in does not become the session's.
func TestSessionFixation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	u := w.acme.users[account.Owner]
	planted := w.as(w.acme.users[account.Agent])
	before := planted.cookie
	if a := planted.signIn(u.Email, password); a.Status != http.StatusOK || planted.cookie == before {
		t.Fatalf("got %d and the cookie %q, want a new one", a.Status, planted.cookie)
	}
	stale := w.browser(w.base)
	stale.cookie = before
	if a := stale.do(http.MethodGet, "/api/session", ""); a.Status != http.StatusUnauthorized {
		t.Errorf("the earlier secret:  got %d, want 401", a.Status)
	}
	made := w.browser(w.base)
	made.cookie = "parley-panel=made-up-by-somebody"
	if a := made.signIn(u.Email, password); a.Status != http.StatusOK || strings.Contains(made.cookie, "made-up") {
		t.Errorf("got %d and %q, want a cookie of the server's", a.Status, made.cookie)
	}
	session := w.as(u)
	before = session.cookie
	a := session.done(http.StatusOK, http.MethodPut, "/api/password", `{"current":"`+password+`","new":"another long password"}`)
	if session.cookie == before {
		t.Error("a new password: got the same session, want a new one")
	}
	stale.cookie = before
	if a := stale.do(http.MethodGet, "/api/session", ""); a.Status != http.StatusUnauthorized {
		t.Errorf("the session from before the new password:  got %d, want 401", a.Status)
	}
	cookie := strings.Join(a.Header.Values("Set-Cookie")[1:], "")
	for _, attribute := range []string{"HttpOnly", "SameSite=Lax", "Path=/"} {
		if !strings.Contains(cookie, attribute) {
			t.Errorf("the cookie %q has no %s", cookie, attribute)
		}
	}
	if a := w.browser(w.base).signIn(u.Email, password); a.Status != http.StatusUnauthorized {
		t.Errorf("the old password: got %d, want 401", a.Status)
	}
}

func TestSecureCookie(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(cfg *panel.Config) { cfg.PanelURL = "https://panel.example.com" })
	b := w.browser(w.base)
	a := b.signIn(w.operator.Email, password)
	for n, name := range []string{"__Host-parley-device=", "__Host-parley-panel="} {
		if cookie := a.Header.Values("Set-Cookie")[n]; !strings.HasPrefix(cookie, name) || !strings.Contains(cookie, "Path=/; ") ||
			!strings.Contains(cookie, "HttpOnly; Secure") {
			t.Errorf("got the cookie %q, want a secure one of this host alone, %s", cookie, name)
		}
	}
	b.cookie = strings.TrimPrefix(b.cookie, "__Host-") // as a page of another host of the domain could set it
	if a := b.do(http.MethodGet, "/api/session", ""); a.Status != http.StatusUnauthorized {
		t.Errorf("a cookie without the prefix: got %d, want 401", a.Status)
	}
}
