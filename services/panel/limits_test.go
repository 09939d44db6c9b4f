package panel_test

import (
	"fmt"
	"io"
	"net/http"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/services/panel"
	"github.com/parley-chat/parley/testkit/httpapitest"
	"github.com/parley-chat/parley/testkit/timetest"
)

// Requests are bounded by user, by company and by address, also on the routes without a session.
func TestRequestLimits(t *testing.T) {
	t.Parallel()
	const ofUser = 4
	w := newWorld(t, unlimited, func(cfg *panel.Config) { cfg.RateUser = config.Rate{Count: ofUser, Per: time.Hour} })
	get := func(b *browser, path string) httpapitest.Response { return b.do(http.MethodGet, path, "") }
	agent, owner := w.session(w.acme.users[account.Agent]), w.session(w.acme.users[account.Owner])
	for i := range ofUser {
		if a := get(agent, "/api/agents"); a.Status != http.StatusOK {
			t.Fatalf("request %d: got %d %s", i, a.Status, a.Body)
		}
	}
	if a := get(agent, "/api/agents"); a.Status != http.StatusTooManyRequests || a.Header.Get("Retry-After") == "" {
		t.Errorf("one request more: got %d %s, want 429 with Retry-After", a.Status, a.Body)
	}
	if a := get(owner, "/api/agents"); a.Status != http.StatusOK {
		t.Errorf("a colleague: got %d %s, want 200", a.Status, a.Body)
	}
	invalid := w.browser(w.base)
	invalid.cookie = "parley-panel=invalid"
	for i := range ofUser + 1 {
		want := http.StatusUnauthorized
		if i == ofUser {
			want = http.StatusTooManyRequests
		}
		if a := get(invalid, "/api/agents"); a.Status != want {
			t.Errorf("invalid session %d of the address: got %d, want %d", i, a.Status, want)
		}
	}
	guest := w.browser(w.base)
	status := map[int]int{}
	for range 2 * ofUser {
		status[get(guest, "/api/meta").Status]++
	}
	if status[http.StatusOK] != ofUser || status[http.StatusTooManyRequests] != ofUser {
		t.Errorf("the address without a session: got %v, want %d of each 200 and 429", status, ofUser)
	}
	company := w.panel(unlimited, func(cfg *panel.Config) { cfg.RateUser = config.Rate{Count: 1, Per: time.Hour} })
	refused := 0
	for i := range 11 {
		u := w.user(fmt.Sprintf("agent%d@acme.example", i), account.Agent, w.acme.id)
		b := w.session(u)
		b.base = company
		if b.do(http.MethodGet, "/api/agents", "").Status == http.StatusTooManyRequests {
			refused++
		}
	}
	if refused != 1 {
		t.Errorf("eleven users of one company: got %d refusals, want 1", refused)
	}
}

// A user with slow requests cannot take the panel: further ones get 429, and others are served.
func TestRequestsInFlight(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	agent, owner := w.session(w.acme.users[account.Agent]), w.session(w.acme.users[account.Owner])
	for range 16 {
		body, slow := io.Pipe()
		r := agent.request(http.MethodPost, "/api/templates/preview", "")
		r.Body = body
		r.Header.Set("Content-Type", "application/json")
		done := make(chan struct{})
		go func() {
			defer close(done)
			if response, err := agent.streams.RoundTrip(r); err == nil {
				response.Body.Close()
			}
		}()
		t.Cleanup(func() { _ = slow.CloseWithError(io.ErrUnexpectedEOF); <-done })
		_, err := slow.Write([]byte("{"))
		w.must(err)
	}
	timetest.Until(t, "the user's requests are refused", func() bool {
		a := agent.do(http.MethodGet, "/api/agents", "")
		return a.Status == http.StatusTooManyRequests && a.Header.Get("Retry-After") != ""
	})
	if a := owner.do(http.MethodGet, "/api/agents", ""); a.Status != http.StatusOK {
		t.Errorf("another user: got %d %s, want 200", a.Status, a.Body)
	}
}

// A tail reads the streams by itself, and counts as an event stream of its user.
func TestTailsAreBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	operator := w.session(w.operator)
	for range 10 {
		operator.events("/api/tail", "")
	}
	if a := operator.do(http.MethodGet, "/api/tail", ""); a.Status != http.StatusTooManyRequests || a.Header.Get("Retry-After") == "" {
		t.Errorf("stream 11: got %d %s, want 429 with Retry-After", a.Status, a.Body)
	}
}
