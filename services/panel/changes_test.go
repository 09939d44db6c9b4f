package panel_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/services/panel"
	"github.com/parley-chat/parley/testkit/httpapitest"
)

// What users change is charged to them and to their company. Reading, the inbox and what takes access away go on.
func TestChangesAreCharged(t *testing.T) {
	t.Parallel()
	const ofUser = 2
	w := newWorld(t, unlimited, func(cfg *panel.Config) {
		cfg.RateChanges = config.Rate{Count: 8 * ofUser, Per: 7 * 24 * time.Hour}
	})
	verify := func(b *browser, app string) httpapitest.Response {
		return b.do(http.MethodPut, "/api/applications/"+app+"/verification", `{"verification":"session"}`)
	}
	wantRefused := func(what string, a httpapitest.Response) {
		t.Helper()
		if a.Status != http.StatusTooManyRequests || a.Header.Get("Retry-After") == "" {
			t.Errorf("%s: got %d %s, want 429 with Retry-After", what, a.Status, a.Body)
		}
	}
	owner := w.session(w.acme.users[account.Owner])
	for range ofUser {
		if a := verify(owner, w.acme.app); a.Status != http.StatusOK {
			t.Fatalf("a change: got %d %s", a.Status, a.Body)
		}
	}
	wantRefused("one change more", verify(owner, w.acme.app))
	wantRefused("an export, which the audit log notes", owner.do(http.MethodGet, "/api/visitors/"+w.acme.visitor+"/export", ""))
	owner.done(http.StatusOK, http.MethodGet, "/api/applications", "")
	owner.done(http.StatusOK, http.MethodPost, "/api/templates/preview", `{"text":"x"}`)
	owner.done(http.StatusOK, http.MethodPut, "/api/chats/"+w.acme.chat+"/control", `{"control":"agent"}`)
	owner.done(http.StatusOK, http.MethodPost, "/api/tokens/"+w.acme.token+"/revoke", "{}")
	owner.done(http.StatusNoContent, http.MethodDelete, "/api/users/"+w.acme.users[account.Developer].ID, "")
	for n := range 7 { // users: the rest of the company's
		colleague := w.session(w.user(fmt.Sprintf("colleague%d@acme.example", n), account.Owner, w.acme.id))
		for range ofUser {
			if a := verify(colleague, w.acme.app); a.Status != http.StatusOK {
				t.Fatalf("a colleague: got %d %s", a.Status, a.Body)
			}
		}
	}
	last := w.session(w.user("last@acme.example", account.Owner, w.acme.id))
	wantRefused("a user who has changed nothing of a company that has changed much", verify(last, w.acme.app))
	if a := verify(w.session(w.other.users[account.Owner]), w.other.app); a.Status != http.StatusOK {
		t.Errorf("another company: got %d %s, want 200", a.Status, a.Body)
	}
	if a := verify(w.session(w.operator), w.acme.app); a.Status != http.StatusOK {
		t.Errorf("the operator: got %d %s, want 200", a.Status, a.Body)
	}
}

// Each sign-in is in the audit log and hashes a password, so a user who has the right one has not any number of them,
// also without the one-time code. Wrong passwords use nothing up: strangers know the address.
func TestSignInsAreCharged(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited, func(cfg *panel.Config) { cfg.RateStarts = config.Rate{Count: 2, Per: time.Hour} })
	agent, owner := w.acme.users[account.Agent].Email, w.acme.users[account.Owner].Email
	developer := w.acme.users[account.Developer]
	totp := w.session(developer)
	secret := totp.offer(`{"password":"` + password + `"}`)
	totp.done(http.StatusOK, http.MethodPost, "/api/totp/confirm",
		`{"password":"`+password+`","code":"`+account.TOTP(secret, time.Now())+`"}`)
	for _, c := range []struct {
		email, password string
		want            []int
	}{
		{agent, "wrong " + password, []int{http.StatusUnauthorized, http.StatusUnauthorized, http.StatusUnauthorized}},
		{agent, password, []int{http.StatusOK, http.StatusOK, http.StatusTooManyRequests}},
		{developer.Email, password, []int{http.StatusUnauthorized, http.StatusUnauthorized, http.StatusTooManyRequests}},
	} {
		for n, want := range c.want {
			if a := w.browser(w.base).signIn(c.email, c.password); a.Status != want {
				t.Errorf("sign-in %d of %s: got %d %s, want %d", n, c.email, a.Status, a.Body, want)
			}
		}
	}
	if a := w.browser(w.base).signIn(owner, password); a.Status != http.StatusOK {
		t.Errorf("a colleague: got %d %s, want 200", a.Status, a.Body)
	}
}

// A change of an application that changes nothing leaves no entry, and one of large settings a small entry.
func TestAuditOfApplications(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	owner, app := w.session(w.acme.users[account.Owner]), "/api/applications/"+w.acme.app
	const settings = 64 << 10
	body := fmt.Sprintf(`{"name":"n","botName":"b","allowedOrigins":[],"widgetConfigs":{"x":"%0*d"}}`, settings, 0)
	entries := func() []account.AuditEntry {
		t.Helper()
		found, err := w.store.AuditEntries(t.Context(), store.AuditFilter{TargetID: w.acme.app}, store.Page{})
		w.must(err)
		return found
	}
	for range 2 {
		owner.done(http.StatusOK, http.MethodPut, app, body)
		owner.done(http.StatusOK, http.MethodPut, app+"/verification", `{"verification":"session"}`)
	}
	found := entries()
	if len(found) != 2 {
		t.Errorf("got %d entries of two changes and their repetition, want 2", len(found))
	}
	for _, e := range found {
		if size := len(e.Before) + len(e.After); size > 8<<10 {
			t.Errorf("%s: got an entry of %d bytes, want at most 8 KiB", e.Action, size)
		}
	}
}

// Agents assign chats to users of their company. An operator's id, which follows from the address, tells nothing.
func TestAssigneesAreOfTheCompany(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	agent, operator := w.session(w.acme.users[account.Agent]), w.session(w.operator)
	assign := func(b *browser, u account.User) int {
		return b.do(http.MethodPut, "/api/chats/"+w.acme.chat+"/assignee", `{"userId":"`+u.ID+`"}`).Status
	}
	for _, test := range []struct {
		name string
		by   *browser
		to   account.User
		want int
	}{
		{"a colleague", agent, w.acme.users[account.Owner], http.StatusOK},
		{"a user of another company", agent, w.other.users[account.Owner], http.StatusBadRequest},
		{"an operator", agent, w.operator, http.StatusBadRequest},
		{"nobody", agent, account.NewUser("nobody@example.com", "", account.Operator, "", time.Now()), http.StatusBadRequest},
		{"an operator themself", operator, w.operator, http.StatusOK},
	} {
		if got := assign(test.by, test.to); got != test.want {
			t.Errorf("%s: got %d, want %d", test.name, got, test.want)
		}
	}
}

// If the notice of another role is lost, the next heartbeat ends the event streams.
func TestHeartbeatChecksTheAccess(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited, func(cfg *panel.Config) { cfg.Heartbeat = 100 * time.Millisecond })
	agent := w.as(w.acme.users[account.Agent])
	here, _ := agent.events("/api/events", "")
	w.next(here, "ready")
	demoted, err := w.store.User(t.Context(), w.acme.users[account.Agent].ID)
	w.must(err)
	demoted.Role = account.Developer
	w.must(w.store.UpdateUser(t.Context(), demoted)) // without a notice
	timeout := time.After(limit)
	for open := true; open; {
		select {
		case _, open = <-here:
		case <-timeout:
			t.Fatal("the stream goes on, want it ended")
		}
	}
}
