package panel_test

import (
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/services/panel"
	"github.com/parley-chat/parley/testkit/httpapitest"
)

// step is one route of the walk and its resource.
type step struct {
	operation
	path, body string
	item       bool // names a company or a resource of one
	absent     bool // names another resource, which does not exist
}

// steps returns a request of each operation with a session, as the document describes it, on the records of a company.
func steps(t *testing.T, c company) (all []step) {
	t.Helper()
	records := map[string]string{
		exampleCompany: c.id, exampleApp: c.app, exampleTemplate: c.template, exampleVisitor: c.visitor,
		exampleEndpoint: c.endpoint, exampleChat: c.chat, exampleUser: c.users[account.Agent].ID, exampleToken: c.token,
		exampleConnection: c.connection, exampleDocument: c.document,
	}
	for _, o := range operations() {
		if slices.Contains(panel.OpenRoutes(), o.name()) {
			continue
		}
		bodies := o.bodies(t)
		first := bodies[slices.Min(slices.Collect(maps.Keys(bodies)))]
		r := &trial{o: o, ids: records}
		s := step{operation: o, path: r.replaced(r.path()), body: r.replaced(first)}
		for example := range records {
			s.item = s.item || strings.Contains(r.path(), example)
		}
		s.absent = r.path() != o.path && !s.item
		if o.parameter("companyId") {
			s.path, s.item = s.path+"?companyId="+c.id, true
		}
		all = append(all, s)
	}
	return all
}

// ask sends the request of a step.
func (s step) ask(b *browser) httpapitest.Response {
	headers := []string{"Idempotency-Key", "walk"}
	if strings.HasPrefix(s.body, "--b") {
		headers = append(headers, "Content-Type", "multipart/form-data; boundary=b")
	}
	if strings.HasPrefix(s.body, "%PDF-") {
		headers = append(headers, "Content-Type", "application/pdf")
	}
	return b.do(s.method, s.path, s.body, headers...)
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
			for _, s := range steps(t, about) {
				operator := u.Role == account.Operator // no company is foreign to an operator
				if (!foreign || operator) && (s.method != "GET" || s.endless()) {
					continue // the sections' tests cover permitted changes
				}
				if foreign && !s.item {
					continue
				}
				want := http.StatusOK
				switch {
				case s.permission() != "" && !u.Role.May(s.permission()):
					want = http.StatusForbidden
				case foreign && !operator, s.absent:
					want = http.StatusNotFound
				}
				a := s.ask(session)
				if a.Status != want {
					t.Errorf("%s, foreign %v: %s %s: got %d %s, want %d", u.Role, foreign, s.method, s.path, a.Status, a.Body, want)
				}
				if foreign && !operator && strings.Contains(a.Body, "ada@other") {
					t.Errorf("%s: %s %s shows another company's data: %s", u.Role, s.method, s.path, a.Body)
				}
			}
		}
	}
	for _, s := range steps(t, w.acme) { // nothing without a session
		if a := s.ask(w.browser(w.base)); a.Status != http.StatusUnauthorized {
			t.Errorf("without a session: %s %s: got %d %s, want 401", s.method, s.path, a.Status, a.Body)
		}
	}
	// a user cannot grant a role above their own
	for _, role := range []account.Role{account.Developer, account.Agent, account.Owner} {
		session := w.as(w.acme.users[role])
		for _, s := range steps(t, w.acme) {
			if s.permission() == "" || role.May(s.permission()) {
				continue
			}
			if a := s.ask(session); a.Status != http.StatusForbidden {
				t.Errorf("%s: %s %s: got %d %s, want 403", role, s.method, s.path, a.Status, a.Body)
			}
		}
	}
}

func unlimited(cfg *panel.Config) { cfg.RateSignIn, cfg.RateAccount = config.Rate{}, config.Rate{} }

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
