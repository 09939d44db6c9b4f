package panel_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/admin"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/services/panel"
	"github.com/parley-chat/parley/testkit/httpapitest"
)

// limited allows three failures of an address and nine of an account. Tests choose addresses by X-Forwarded-For.
func limited(cfg *panel.Config) {
	cfg.RateSignIn, cfg.RateAccount = config.Rate{Count: 3, Per: time.Hour}, config.Rate{Count: 9, Per: time.Hour}
	cfg.TrustedProxies = config.Prefixes{netip.MustParsePrefix("127.0.0.0/8")}
}

// tries signs in from an address.
func (b *browser) tries(address, email, password string) httpapitest.Response {
	b.w.t.Helper()
	body, err := json.Marshal(map[string]string{"email": email, "password": password})
	b.w.must(err)
	return b.do(http.MethodPost, "/api/session", string(body), "X-Forwarded-For", address)
}

// The addresses of one IPv6 site share a budget: each guess hashes a password.
func TestBruteForceFromOneSite(t *testing.T) {
	t.Parallel()
	w := newWorld(t, limited)
	guess := func(address string, n int) int {
		return w.browser(w.base).tries(address, fmt.Sprintf("nobody%d@example.com", n), "a guess of a stranger").Status
	}
	for n := range 9 {
		if got := guess(fmt.Sprintf("2001:db8:1:%x::1", n), n); got != http.StatusUnauthorized {
			t.Fatalf("guess %d: got %d, want 401", n, got)
		}
	}
	if got := guess("2001:db8:1:ffff::1", 9); got != http.StatusTooManyRequests {
		t.Errorf("another address of the site: got %d, want 429", got)
	}
	if got := guess("2001:db8:2::1", 10); got != http.StatusUnauthorized {
		t.Errorf("another site: got %d, want 401", got)
	}
}

// Password guessing is bounded by address and by account, and the answers do not reveal whether a user exists.
func TestBruteForce(t *testing.T) {
	t.Parallel()
	w := newWorld(t, limited)
	victim, other := w.acme.users[account.Owner].Email, w.other.users[account.Owner].Email
	guess := func(address, email, password string) int {
		return w.browser(w.base).tries(address, email, password).Status
	}
	for n := range 3 {
		if got := guess("192.0.2.1", victim, fmt.Sprint("guess ", n)); got != http.StatusUnauthorized {
			t.Fatalf("guess %d: got %d, want 401", n, got)
		}
	}
	a := w.browser(w.base).tries("192.0.2.1", other, password)
	if a.Status != http.StatusTooManyRequests || a.Header.Get("Retry-After") == "" {
		t.Errorf("another user from that address: got %d %s, want 429", a.Status, a.Body)
	}
	for n := range 6 {
		guess(fmt.Sprint("192.0.2.", 2+n/3), victim, "guess")
	}
	if got := guess("192.0.2.9", victim, password); got != http.StatusTooManyRequests {
		t.Errorf("an unknown device after nine guesses: got %d, want 429", got)
	}
	known, unknown := w.browser(w.base).tries("192.0.2.10", other, "wrong"), w.browser(w.base).tries("192.0.2.11", "nobody@example.com", "wrong")
	var a1, a2 struct{ Code, Message string }
	known.Into(t, &a1)
	unknown.Into(t, &a2)
	if known.Status != unknown.Status || a1 != a2 {
		t.Errorf("got %v and %v, want the same", a1, a2)
	}
}

// Strangers who know an operator's address do not keep out a device that the operator has signed in on. The
// device has a limit of its own, and signing out everywhere ends the privilege.
func TestKnownDevice(t *testing.T) {
	t.Parallel()
	w := newWorld(t, limited)
	email := w.operator.Email
	laptop := w.browser(w.base)
	if a := laptop.tries("192.0.2.1", email, password); a.Status != http.StatusOK {
		t.Fatalf("the first sign-in: got %d %s", a.Status, a.Body)
	}
	lockOut := func() {
		t.Helper()
		for n := range 21 { // from seven addresses
			w.browser(w.base).tries(fmt.Sprint("198.51.100.", n%7), email, "guess")
		}
	}
	lockOut()
	if a := laptop.tries("198.51.100.1", email, password); a.Status != http.StatusOK {
		t.Fatalf("the known device: got %d %s, want 200", a.Status, a.Body)
	}
	colleague := w.browser(w.base)
	colleague.device = laptop.device
	for n := range 3 {
		colleague.tries("203.0.113.1", w.acme.users[account.Owner].Email, fmt.Sprint("guess ", n))
	}
	if a := colleague.tries("203.0.113.1", w.acme.users[account.Owner].Email, password); a.Status != http.StatusTooManyRequests {
		t.Errorf("the device of another user: got %d %s, want 429", a.Status, a.Body)
	}
	thief := w.browser(w.base)
	thief.device = laptop.device
	for n := range 3 {
		if a := thief.tries("203.0.113.2", email, fmt.Sprint("guess ", n)); a.Status != http.StatusUnauthorized {
			t.Errorf("guess %d on a known device: got %d, want 401", n, a.Status)
		}
	}
	if a := thief.tries("203.0.113.3", email, password); a.Status != http.StatusTooManyRequests {
		t.Errorf("a device after three guesses: got %d, want 429", a.Status)
	}
	session := w.session(w.operator)
	session.done(http.StatusNoContent, http.MethodDelete, "/api/sessions", "")
	if a := laptop.tries("203.0.113.4", email, password); a.Status != http.StatusTooManyRequests {
		t.Errorf("a device after signing out everywhere: got %d, want 429, as an unknown one", a.Status)
	}
}

// However many devices are known, they have no more guesses together than strangers have, and an unknown one
// still has its own.
func TestKnownDevicesShareALimit(t *testing.T) {
	t.Parallel()
	const devices, ofUser = 6, 9
	w := newWorld(t, limited)
	var known [devices]*browser
	for n := range known {
		known[n] = w.browser(w.base)
		if a := known[n].tries(fmt.Sprint("192.0.2.", n), w.operator.Email, password); a.Status != http.StatusOK {
			t.Fatalf("device %d: got %d %s, want it signed in", n, a.Status, a.Body)
		}
	}
	guesses := 0
	for _, b := range known {
		for range 3 {
			if b.tries("203.0.113.1", w.operator.Email, "guess").Status == http.StatusUnauthorized {
				guesses++
			}
		}
	}
	if guesses != ofUser {
		t.Errorf("got %d guesses on %d devices, want %d", guesses, devices, ofUser)
	}
	if a := w.browser(w.base).tries("203.0.113.2", w.operator.Email, password); a.Status != http.StatusOK {
		t.Errorf("an unknown device: got %d %s, want 200", a.Status, a.Body)
	}
}

// Right passwords cost nothing, also at the same time: colleagues share an address.
func TestColleaguesShareAnAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t, limited)
	var group sync.WaitGroup
	for n := range 8 {
		email := w.user(fmt.Sprintf("colleague%d@acme.example", n), account.Agent, w.acme.id).Email
		b := w.browser(w.base)
		group.Go(func() {
			if a := b.tries("192.0.2.1", email, password); a.Status != http.StatusOK {
				t.Errorf("%s: got %d %s, want 200", email, a.Status, a.Body)
			}
		})
	}
	group.Wait()
}

// Wrong tokens of a stranger do not lock an invited person out, not even from the same address.
func TestInvitationOfAStranger(t *testing.T) {
	t.Parallel()
	w := newWorld(t, limited)
	var invited struct{ InvitationURL string }
	owner := w.session(w.acme.users[account.Owner])
	owner.done(http.StatusCreated, http.MethodPost, "/api/users", `{"email":"new@acme.example","role":"agent"}`).Into(t, &invited)
	_, token, _ := strings.Cut(invited.InvitationURL, "/#/invitation/")
	accept := func(path, token string) int {
		return w.browser(w.base).do(http.MethodPost, path, `{"token":"`+token+`","password":"`+password+`"}`).Status
	}
	statuses := map[int]int{}
	for n := range 99 {
		statuses[accept("/api/invitation", fmt.Sprint("stranger.", n))]++
	}
	if statuses[http.StatusNotFound] != 3 || statuses[http.StatusTooManyRequests] != 96 {
		t.Errorf("wrong tokens: got %v, want three times 404, then 429", statuses)
	}
	if got := accept("/api/invitation/check", "stranger.x"); got != http.StatusTooManyRequests {
		t.Errorf("a look at a wrong token: got %d, want 429", got)
	}
	for _, path := range []string{"/api/invitation/check", "/api/invitation"} {
		if got := accept(path, token); got != http.StatusOK {
			t.Errorf("%s of the invited person: got %d, want 200", path, got)
		}
	}
}

// An address has one user of each company: the own company cannot invite it again, and another company does not
// notice that it has a user.
func TestInvitationOfAnExistingUser(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	user := w.acme.users[account.Agent]
	before, err := w.store.User(t.Context(), user.ID)
	w.must(err)
	invite := func(c company) httpapitest.Response {
		body := `{"email":"` + strings.ToUpper(user.Email) + `","role":"owner"}`
		return w.session(c.users[account.Owner]).do(http.MethodPost, "/api/users", body)
	}
	if a := invite(w.other); a.Status != http.StatusCreated {
		t.Errorf("another company: got %d %s, want 201", a.Status, a.Body)
	}
	for _, c := range []company{w.acme, w.other} {
		if a := invite(c); a.Status != http.StatusConflict || !strings.Contains(a.Body, "EMAIL_TAKEN") {
			t.Errorf("again: got %d %s, want 409 EMAIL_TAKEN", a.Status, a.Body)
		}
	}
	if after, err := w.store.User(t.Context(), user.ID); err != nil || after != before {
		t.Errorf("got %+v, %v, want %+v", after, err, before)
	}
}

// Each user of an address signs in with a password of their own, and nobody keeps an operator's address.
func TestUsersOfOneAddress(t *testing.T) {
	t.Parallel()
	w := newWorld(t, limited)
	const email, own, strangers = "ceo@other.example", "the password of the person", "the password of a stranger"
	operations := admin.New(w.store, nil, time.Now)
	add := func(role account.Role, companyID, password string) account.User {
		t.Helper()
		u, err := operations.CreateUser(t.Context(), admin.Actor{Name: "test"}, account.NewUser(email, "", role, companyID, time.Now()), password)
		w.must(err)
		return u
	}
	stranger := add(account.Owner, w.acme.id, strangers)
	person := add(account.Owner, w.other.id, own)
	operator := add(account.Operator, "", password)
	for given, want := range map[string]account.User{strangers: stranger, own: person, password: operator} {
		var session struct{ User struct{ ID, Role string } }
		a := w.browser(w.base).tries("192.0.2.1", email, given)
		a.Into(t, &session)
		if a.Status != http.StatusOK || session.User.ID != want.ID || session.User.Role != string(want.Role) {
			t.Errorf("%s: got %d %s, want the user %s", given, a.Status, a.Body, want.ID)
		}
	}
	if operator.ID != account.UserID(email) {
		t.Errorf("the operator: got the id %s, want that of the first slot", operator.ID)
	}
	// The device of one user has no guesses of another one's password, beside those that any stranger has.
	laptop := w.browser(w.base)
	laptop.tries("192.0.2.2", email, strangers)
	for n := range 3 {
		laptop.tries("192.0.2.3", email, fmt.Sprint("guess ", n))
	}
	if a := w.browser(w.base).tries("192.0.2.3", email, own); a.Status != http.StatusTooManyRequests {
		t.Errorf("the address after three guesses: got %d %s, want 429", a.Status, a.Body)
	}
	for n := range account.Slots {
		u := account.NewUser(email, "", account.Agent, chat.NewID(), time.Now())
		w.must(w.store.PutCompany(t.Context(), chat.Company{ID: u.CompanyID, Name: "x"}))
		_, _, err := operations.InviteUser(t.Context(), admin.Actor{Name: "test"}, u)
		if full := n >= account.Slots-3; (apperr.ReasonOf(err) == apperr.EmailTaken.Reason) != full {
			t.Errorf("company %d: got %v, want EMAIL_TAKEN %v", n+3, err, full)
		}
	}
}

// offer returns a new secret of one-time codes.
func (b *browser) offer(proof string) string {
	b.w.t.Helper()
	var offer struct{ Secret, URI string }
	b.done(http.StatusOK, http.MethodPost, "/api/totp", proof).Into(b.w.t, &offer)
	if !strings.HasPrefix(offer.URI, "otpauth://totp/Parley:") || !strings.Contains(offer.URI, "secret="+offer.Secret) {
		b.w.t.Errorf("got the URI %q, want one for a QR code", offer.URI)
	}
	return offer.Secret
}

// The panel's clock stands still, so that no step of 30 seconds ends between the making of a code and its check.
func TestTOTP(t *testing.T) {
	t.Parallel()
	now := time.Now()
	codeOf := func(secret string, steps int) string { // of a time step relative to now
		return account.TOTP(secret, now.Add(time.Duration(steps)*30*time.Second))
	}
	w := newWorld(t, unlimited, func(cfg *panel.Config) { cfg.Now = func() time.Time { return now } })
	b := w.as(w.acme.users[account.Owner])
	email := w.acme.users[account.Owner].Email
	wantCode := func(method, path, body, code string) {
		t.Helper()
		if a := b.do(method, path, body); a.Status != http.StatusBadRequest || !strings.Contains(a.Body, code) {
			t.Errorf("%s %s with %s: got %d %s, want 400 %s", method, path, body, a.Status, a.Body, code)
		}
	}
	const pass = `"password":"` + password + `"`
	if a := b.do(http.MethodPost, "/api/totp/recovery-codes", `{`+pass+`}`); !strings.Contains(a.Body, "TOTP_NOT_SET") {
		t.Errorf("recovery codes without one-time codes: got %d %s", a.Status, a.Body)
	}
	wantCode(http.MethodPost, "/api/totp", `{"password":"wrong"}`, "WRONG_PASSWORD")
	secret := b.offer(`{` + pass + `}`)
	first := codeOf(secret, -1)
	wantCode(http.MethodPost, "/api/totp/confirm", `{"code":"`+first+`"}`, "VALIDATION_ERROR")
	wantCode(http.MethodPost, "/api/totp/confirm", `{`+pass+`,"code":"000000"}`, "INVALID_CODE")
	var made struct{ RecoveryCodes []string }
	b.done(http.StatusOK, http.MethodPost, "/api/totp/confirm", `{`+pass+`,"code":"`+first+`"}`).Into(t, &made)
	if len(made.RecoveryCodes) != 10 {
		t.Fatalf("got the recovery codes %v, want ten", made.RecoveryCodes)
	}
	try := func(code string) httpapitest.Response {
		return w.browser(w.base).do(http.MethodPost, "/api/session", `{"email":"`+email+`",`+pass+`,"code":"`+code+`"}`)
	}
	wantTry := func(what, code string, status int, reason string) {
		t.Helper()
		if a := try(code); a.Status != status || !strings.Contains(a.Body, reason) {
			t.Errorf("%s: got %d %s, want %d %s", what, a.Status, a.Body, status, reason)
		}
	}
	next := codeOf(secret, 0)
	wantTry("without a code", "", http.StatusUnauthorized, "TOTP_REQUIRED")
	wantTry("a wrong code", "123456", http.StatusUnauthorized, "INVALID_CODE")
	wantTry("a right code", next, http.StatusOK, "")
	wantTry("the same code again", next, http.StatusUnauthorized, "INVALID_CODE")
	wantTry("a recovery code", strings.ToUpper(strings.ReplaceAll(made.RecoveryCodes[0], "-", " ")), http.StatusOK, `"recoveryCodesLeft":9`)
	wantTry("the same recovery code", made.RecoveryCodes[0], http.StatusUnauthorized, "INVALID_CODE")

	// Now the password does not change the second factor any more.
	wantCode(http.MethodPost, "/api/totp", `{`+pass+`}`, "VALIDATION_ERROR")
	wantCode(http.MethodPost, "/api/totp/recovery-codes", `{`+pass+`}`, "VALIDATION_ERROR")
	wantCode(http.MethodDelete, "/api/totp", `{`+pass+`}`, "VALIDATION_ERROR")
	wantCode(http.MethodDelete, "/api/totp", `{"currentCode":"`+next+`"}`, "INVALID_CODE")
	wantCode(http.MethodPost, "/api/totp/confirm", `{`+pass+`,"code":"123456"}`, "VALIDATION_ERROR")
	var renewed struct{ RecoveryCodes []string }
	b.done(http.StatusOK, http.MethodPost, "/api/totp/recovery-codes", `{"currentCode":"`+codeOf(secret, 1)+`"}`).Into(t, &renewed)
	wantTry("a recovery code of before", made.RecoveryCodes[1], http.StatusUnauthorized, "INVALID_CODE")
	b.done(http.StatusNoContent, http.MethodDelete, "/api/totp", `{"currentCode":"`+renewed.RecoveryCodes[0]+`"}`)
	wantTry("without the second factor", "", http.StatusOK, `"recoveryCodesLeft":0`)
}
