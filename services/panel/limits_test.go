package panel_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/admin"
	"github.com/parley-chat/parley/pkg/apperr"
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

// stall sends half of a request, whose rest never comes, and returns when the panel has it. status is called
// with the answer, if one comes.
func (b *browser) stall(path string, status func(int)) {
	b.w.t.Helper()
	body, slow := io.Pipe()
	r := b.request(http.MethodPost, path, "")
	r.Body = body
	r.Header.Set("Content-Type", "application/json")
	done := make(chan struct{})
	go func() {
		defer close(done)
		if response, err := b.streams.RoundTrip(r); err == nil {
			response.Body.Close()
			status(response.StatusCode)
		}
	}()
	b.w.t.Cleanup(func() { _ = slow.CloseWithError(io.ErrUnexpectedEOF); <-done })
	_, err := slow.Write([]byte("{"))
	b.w.must(err)
}

// A user with slow requests cannot take the panel, and the users of a company cannot either: further ones get
// 429, and others are served.
func TestRequestsInFlight(t *testing.T) {
	t.Parallel()
	const ofUser, ofCompany = 16, 64
	w := newWorld(t, unlimited)
	agent, owner := w.session(w.acme.users[account.Agent]), w.session(w.acme.users[account.Owner])
	others := w.session(w.other.users[account.Agent])
	refused := func(b *browser) bool {
		a := b.do(http.MethodGet, "/api/agents", "")
		return a.Status == http.StatusTooManyRequests && a.Header.Get("Retry-After") != ""
	}
	// A question that is served holds a place for a moment, for which a stalled request may be refused.
	refusedWhenFull := func(asking, stalling *browser) func() bool {
		return func() bool {
			if refused(asking) {
				return true
			}
			stalling.stall("/api/templates/preview", func(int) {})
			return false
		}
	}
	timetest.Until(t, "the user's requests are refused", refusedWhenFull(agent, agent))
	if a := owner.do(http.MethodGet, "/api/agents", ""); a.Status != http.StatusOK {
		t.Errorf("another user: got %d %s, want 200", a.Status, a.Body)
	}
	for n := range ofCompany / ofUser {
		colleague := w.session(w.user(fmt.Sprintf("agent%d@acme.example", n), account.Agent, w.acme.id))
		for range ofUser {
			colleague.stall("/api/templates/preview", func(int) {})
		}
	}
	spare := w.session(w.user("spare@acme.example", account.Agent, w.acme.id))
	timetest.Until(t, "the company's requests are refused", refusedWhenFull(owner, spare))
	if a := others.do(http.MethodGet, "/api/agents", ""); a.Status != http.StatusOK {
		t.Errorf("another company: got %d %s, want 200", a.Status, a.Body)
	}
}

// The users of four companies take all places with slow requests. They lose them to those that wait.
func TestSlowRequestsLoseTheirPlaces(t *testing.T) {
	t.Parallel()
	const ofUser, ofCompany = 16, 64
	w := newWorld(t, unlimited)
	operator := w.session(w.operator)
	for _, company := range []string{w.acme.id, w.other.id, w.seed("third", "7").id, w.seed("fourth", "8").id} {
		for n := range ofCompany / ofUser {
			user := w.session(w.user(fmt.Sprintf("slow%d@%s.example", n, company), account.Agent, company))
			for range ofUser {
				user.stall("/api/templates/preview", func(int) {})
			}
		}
	}
	began := time.Now()
	for range 3 {
		if a := operator.do(http.MethodGet, "/api/session", ""); a.Status != http.StatusOK {
			t.Errorf("another user: got %d %s, want 200 in the place of a slow request", a.Status, a.Body)
		}
	}
	t.Log("three requests took", time.Since(began))
}

// The clients of two companies are slow with the bodies of as many large requests as may be worked on at once. They
// keep no place: another company's request is answered, and none of theirs ends for it.
func TestSlowBodiesTakeNoLargePlace(t *testing.T) {
	t.Parallel()
	const ofUser, ofCompany = 3, 4
	w := newWorld(t, unlimited)
	ended := make(chan int, 2*ofCompany)
	for _, c := range []company{w.acme, w.other} {
		for n := range ofCompany {
			role := account.Owner
			if n >= ofUser {
				role = account.Developer
			}
			w.session(c.users[role]).stall("/api/webhooks/"+c.endpoint+"/replay", func(status int) { ended <- status })
		}
	}
	third := w.seed("third", "7")
	for range 2 {
		if a := w.session(third.users[account.Owner]).do(http.MethodGet, "/api/chats", ""); a.Status != http.StatusOK {
			t.Errorf("another company: got %d %s, want 200", a.Status, a.Body)
		}
	}
	select {
	case status := <-ended:
		t.Errorf("a slow request ended with %d, want none to give its place up", status)
	default:
	}
}

// Slow requests without a session hold few places, and lose them to those that wait. Their bodies are small.
func TestGuestsInFlight(t *testing.T) {
	t.Parallel()
	const ofAddress = 32
	w := newWorld(t, unlimited)
	guest := w.browser(w.base)
	ended := make(chan int, ofAddress)
	for range ofAddress {
		guest.stall("/api/session", func(status int) { ended <- status })
	}
	began := time.Now()
	for range 3 {
		if a := guest.signIn(w.operator.Email, password); a.Status != http.StatusOK {
			t.Errorf("the same address: got %d %s, want 200 in the place of a slow request", a.Status, a.Body)
		}
	}
	if took := time.Since(began); took < time.Second {
		t.Errorf("three sign-ins took %v, want them to wait for the places of slow requests", took)
	}
	if status := <-ended; status != http.StatusBadRequest {
		t.Errorf("a slow request: got %d, want 400", status)
	}
	large := `{"email":"` + strings.Repeat("x", 20<<10) + `"}`
	if a := guest.do(http.MethodPost, "/api/session", large, "X-CSRF-Token", "none"); a.Status != http.StatusRequestEntityTooLarge {
		t.Errorf("a large body: got %d %s, want 413", a.Status, a.Body)
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

// blockingStreams is the purger of an erasure that ends with the test's word.
type blockingStreams struct {
	admin.Purger
	reads chan struct{} // one element for each erasure that reads the streams
	end   chan struct{}
}

func (b blockingStreams) PurgeWhere(context.Context, func(string, []byte) bool) (int, error) {
	select {
	case b.reads <- struct{}{}:
	default:
	}
	<-b.end
	return 0, nil
}

// A process erases one visitor at a time, since an erasure reads the streams of all companies: a company's second
// erasure is refused, another company's waits.
func TestOneErasureAtATime(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	erasures := admin.New(w.store, w.bus, time.Now)
	streams := blockingStreams{Purger: w.bus, reads: make(chan struct{}, 1), end: make(chan struct{})}
	erase := func(c company) error {
		v, err := w.store.Visitor(t.Context(), c.visitor)
		if err != nil {
			return err
		}
		_, err = erasures.EraseVisitor(t.Context(), admin.Actor{Name: "test"}, v, streams, nil)
		return err
	}
	first, others := make(chan error, 1), make(chan error, 1)
	go func() { first <- erase(w.acme) }()
	<-streams.reads
	if err := erase(w.acme); !apperr.Is(err, apperr.TooMany) {
		t.Errorf("the company's second erasure: got %v, want TooMany", err)
	}
	go func() { others <- erase(w.other) }()
	select {
	case <-streams.reads:
		t.Error("another company's erasure reads the streams at the same time, want that it waits")
	case err := <-others:
		t.Errorf("another company's erasure: got %v, want that it waits", err)
	case <-time.After(200 * time.Millisecond):
	}
	close(streams.end)
	w.must(<-first)
	w.must(<-others)
}

// A user has few sessions: beyond them the oldest ends.
func TestSessionsOfAUserAreBounded(t *testing.T) {
	t.Parallel()
	const most = 50
	w := newWorld(t, unlimited)
	u := w.acme.users[account.Agent]
	var sessions []*browser
	start := time.Now().Add(-time.Minute)
	for n := range most { // one each millisecond, the resolution of the store
		sessions = append(sessions, w.sessionAt(u, start.Add(time.Duration(n)*time.Millisecond)))
	}
	newest := w.as(u)
	for n, want := range map[int]int{0: http.StatusUnauthorized, 1: http.StatusOK, most - 1: http.StatusOK} {
		if a := sessions[n].do(http.MethodGet, "/api/session", ""); a.Status != want {
			t.Errorf("session %d: got %d %s, want %d", n, a.Status, a.Body, want)
		}
	}
	newest.done(http.StatusOK, http.MethodGet, "/api/session", "")
}

// Only requests that may need megabytes have bodies of up to 1 MiB.
func TestSmallRequestsHaveSmallBodies(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	owner := w.session(w.acme.users[account.Owner])
	large := `{"name":"` + strings.Repeat("x", 200<<10) + `"}`
	owner.done(http.StatusRequestEntityTooLarge, http.MethodPost, "/api/templates", large)
	owner.done(http.StatusBadRequest, http.MethodPost, "/api/applications", large)
}
