package panel_test

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/services/panel"
)

// issuer is a small OpenID Connect issuer. The test sets the claims of the next user.
type issuer struct {
	t        *testing.T
	url      string
	key      ed25519.PrivateKey
	claims   map[string]any
	attempts map[string]url.Values // by code: the parameters of the browser's request
	calls    atomic.Int64          // of the token endpoint
}

func startIssuer(t *testing.T) *issuer {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	i := &issuer{t: t, key: key, attempts: map[string]url.Values{}}
	mux := http.NewServeMux()
	answer := func(w http.ResponseWriter, v any) {
		w.Header().Set("Content-Type", "application/json")
		_ = json.NewEncoder(w).Encode(v)
	}
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, map[string]any{
			"issuer": i.url, "authorization_endpoint": i.url + "/authorize", "token_endpoint": i.url + "/token", "jwks_uri": i.url + "/keys",
			"id_token_signing_alg_values_supported": []string{"EdDSA"},
		})
	})
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		answer(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: key.Public(), KeyID: "k", Algorithm: "EdDSA", Use: "sig"}}})
	})
	mux.HandleFunc("/authorize", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		code := account.NewSecret()
		i.attempts[code] = q
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {code}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
	})
	mux.HandleFunc("/token", func(w http.ResponseWriter, r *http.Request) {
		i.calls.Add(1)
		q, ok := i.attempts[r.FormValue("code")]
		delete(i.attempts, r.FormValue("code"))
		sum := sha256.Sum256([]byte(r.FormValue("code_verifier")))
		_, secret, _ := r.BasicAuth()
		if !ok || q.Get("code_challenge") != base64.RawURLEncoding.EncodeToString(sum[:]) || secret != "a-secret" {
			http.Error(w, `{"error":"invalid_grant"}`, http.StatusBadRequest)
			return
		}
		claims := map[string]any{"iss": i.url, "aud": q.Get("client_id"), "sub": "1", "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix(), "nonce": q.Get("nonce")}
		for name, value := range i.claims {
			claims[name] = value
		}
		answer(w, map[string]any{"access_token": "x", "token_type": "Bearer", "id_token": i.sign(claims)})
	})
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	i.url = server.URL
	return i
}

func (i *issuer) sign(claims map[string]any) string {
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: i.key}, (&jose.SignerOptions{}).WithHeader("kid", "k"))
	if err != nil {
		i.t.Fatal(err)
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		i.t.Fatal(err)
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		i.t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		i.t.Fatal(err)
	}
	return token
}

// newOIDCWorld returns a world whose panel signs users in with the issuer.
func newOIDCWorld(t *testing.T, i *issuer, options ...func(*panel.Config)) *world {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	base := "http://" + ln.Addr().String()
	w := newWorld(t, append(options, func(cfg *panel.Config) {
		cfg.Listener, cfg.PanelURL = ln, base
		cfg.OIDCIssuer, cfg.OIDCClientID, cfg.OIDCClientSecret, cfg.OIDCName = i.url, "panel", "a-secret", "Example"
	})...)
	w.base = base
	return w
}

// throughIssuer goes to the issuer and returns a browser with the path to which the issuer sends it back.
func (w *world) throughIssuer() (b *browser, callback string) {
	w.t.Helper()
	b = w.browser(w.base)
	return b, b.throughIssuer()
}

func (b *browser) throughIssuer() (callback string) {
	b.w.t.Helper()
	b.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return b.authorize(b.done(http.StatusFound, http.MethodGet, "/api/oidc/start", "").Header.Get("Location"))
}

// authorize goes to the issuer's address and returns the path to which the issuer sends the browser back.
func (b *browser) authorize(location string) (callback string) {
	b.w.t.Helper()
	toIssuer, err := http.NewRequestWithContext(b.w.t.Context(), http.MethodGet, location, nil)
	b.w.must(err)
	b.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	there, err := (&http.Client{Transport: b.streams, CheckRedirect: b.client.CheckRedirect}).Do(toIssuer)
	b.w.must(err)
	there.Body.Close()
	return strings.TrimPrefix(there.Header.Get("Location"), b.w.base)
}

// withIssuer signs in with the issuer, as the user of the issuer's claims, and returns the location
// to which the panel sends the browser. A session cookie that the browser has is sent too.
func (b *browser) withIssuer() (location string) {
	b.w.t.Helper()
	session := b.cookie
	callback := b.throughIssuer()
	if session != "" {
		b.cookie = session + "; " + b.cookie
	}
	device := b.device
	b.device = "" // SameSite=Strict: not sent on the way back
	location = b.done(http.StatusFound, http.MethodGet, callback, "").Header.Get("Location")
	if b.device == "" {
		b.device = device
	}
	return location
}

func TestOIDC(t *testing.T) {
	t.Parallel()
	i := startIssuer(t)
	w := newOIDCWorld(t, i, unlimited)
	if a := w.browser(w.base).done(http.StatusOK, http.MethodGet, "/api/meta", ""); !strings.Contains(a.Body, `"oidc":{"name":"Example"}`) {
		t.Errorf("got %s, want the issuer's name", a.Body)
	}
	email := w.operator.Email
	for name, test := range map[string]struct {
		claims map[string]any
		bend   func(callback string) string
		want   string
	}{
		"a user":                {map[string]any{"email": strings.ToUpper(email), "email_verified": true}, nil, "/"},
		"an address unverified": {map[string]any{"email": email}, nil, "/?error=oidc"},
		"nobody's address":      {map[string]any{"email": "x@example.com", "email_verified": true}, nil, "/?error=oidc"},
		"another audience":      {map[string]any{"email": email, "email_verified": true, "aud": "other"}, nil, "/?error=oidc"},
		"another nonce":         {map[string]any{"email": email, "email_verified": true, "nonce": "x"}, nil, "/?error=oidc"},
		"expired":               {map[string]any{"email": email, "email_verified": true, "exp": 1}, nil, "/?error=oidc"},
		"another state":         {map[string]any{"email": email, "email_verified": true}, func(s string) string { return s + "x" }, "/?error=oidc"},
	} {
		i.claims = test.claims
		b, callback := w.throughIssuer()
		if test.bend != nil {
			callback = test.bend(callback)
		}
		back := b.done(http.StatusFound, http.MethodGet, callback, "")
		if got := back.Header.Get("Location"); got != test.want {
			t.Errorf("%s: got to %s, want %s", name, got, test.want)
		}
		signedIn := b.do(http.MethodGet, "/api/session", "").Status == http.StatusOK
		if signedIn != (test.want == "/") {
			t.Errorf("%s: got signed in %v", name, signedIn)
		}
		again := w.browser(w.base) // another browser has not started this attempt
		again.client.CheckRedirect = b.client.CheckRedirect
		if a := again.done(http.StatusFound, http.MethodGet, callback, ""); a.Header.Get("Location") != "/?error=oidc" {
			t.Errorf("%s: another browser got to %s", name, a.Header.Get("Location"))
		}
	}
}

// callback signs in with the issuer and returns the location to which the panel sends the browser.
func (w *world) callback() string {
	w.t.Helper()
	b, callback := w.throughIssuer()
	return b.done(http.StatusFound, http.MethodGet, callback, "").Header.Get("Location")
}

// A response that this browser has not asked for is neither counted nor taken to the issuer.
func TestOIDCStateComesFirst(t *testing.T) {
	t.Parallel()
	i := startIssuer(t)
	w := newOIDCWorld(t, i, limited)
	i.claims = map[string]any{"email": w.operator.Email, "email_verified": true}
	stranger := w.browser(w.base)
	stranger.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for range 101 {
		stranger.done(http.StatusFound, http.MethodGet, "/api/oidc/callback?state=x&code=x", "")
	}
	if got := i.calls.Load(); got != 0 {
		t.Errorf("the issuer got %d calls, want none", got)
	}
	for range 5 { // successes are not counted
		if got := w.callback(); got != "/" {
			t.Errorf("a user after 101 calls of a stranger: got to %s, want /", got)
		}
	}
	for range 9 { // browsers that have started an attempt, with a code of their own
		b, _ := w.throughIssuer()
		data, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(b.cookie, "parley-panel-oidc="))
		w.must(err)
		var attempt struct{ State string }
		w.must(json.Unmarshal(data, &attempt))
		b.done(http.StatusFound, http.MethodGet, "/api/oidc/callback?code=x&state="+attempt.State, "")
	}
	// without a success the client tries both ways to authenticate (RFC 6749, 2.3.1)
	if got := i.calls.Load(); got != 5+2*3 {
		t.Errorf("the issuer got %d calls, want five of users and six of three failures", got)
	}
}

// The first sign-in binds a user to the issuer's subject.
func TestOIDCBindsUsers(t *testing.T) {
	t.Parallel()
	i := startIssuer(t)
	w := newOIDCWorld(t, i, unlimited)
	owner := w.acme.users[account.Owner]
	freed, err := w.store.User(t.Context(), w.other.users[account.Owner].ID) // an unbound user without a password
	w.must(err)
	freed.PasswordHash = ""
	w.must(w.store.UpdateUser(t.Context(), freed))
	sign := func(b *browser, email, subject, want string) {
		t.Helper()
		i.claims = map[string]any{"email": email, "email_verified": true, "sub": subject}
		if got := b.withIssuer(); got != want {
			t.Errorf("%s as %s: got to %s, want %s", email, subject, got, want)
		}
	}
	const in, refused = "/", "/?error=oidc"
	sign(w.browser(w.base), w.operator.Email, "s-1", in)
	sign(w.browser(w.base), w.operator.Email, "s-1", in)
	sign(w.browser(w.base), w.operator.Email, "s-2", refused)
	sign(w.browser(w.base), freed.Email, "s-3", in)
	sign(w.browser(w.base), owner.Email, "s-4", refused) // a stranger may have set the password
	sign(w.as(owner), owner.Email, "s-4", in)
	sign(w.browser(w.base), owner.Email, "s-4", in)
}

// Accepting an invitation with the issuer needs the invitation's token, before it expires. A normal sign-in does not
// lead into a company.
func TestOIDCAcceptsInvitations(t *testing.T) {
	t.Parallel()
	i := startIssuer(t)
	w := newOIDCWorld(t, i, unlimited)
	invite := func(c company, email string) (id, token string) {
		t.Helper()
		var invited struct {
			User          struct{ ID string }
			InvitationURL string
		}
		w.session(c.users[account.Owner]).
			done(http.StatusCreated, http.MethodPost, "/api/users", `{"email":"`+email+`","role":"agent"}`).Into(t, &invited)
		_, token, _ = strings.Cut(invited.InvitationURL, "/#/invitation/")
		return invited.User.ID, token
	}
	accept := func(token string) (location string) {
		t.Helper()
		b := w.browser(w.base)
		var to struct{ Location string }
		b.done(http.StatusOK, http.MethodPost, "/api/oidc/start", `{"token":"`+token+`"}`).Into(t, &to)
		return b.done(http.StatusFound, http.MethodGet, b.authorize(to.Location), "").Header.Get("Location")
	}
	wantUser := func(id, status, subject string) {
		t.Helper()
		u, err := w.store.User(t.Context(), id)
		if err != nil || u.Status() != status || u.Subject != subject {
			t.Errorf("got %+v, %v, want an %s user bound to %q", u, err, status, subject)
		}
	}
	const ceo = "ceo@other.example"
	stranger, strangersToken := invite(w.acme, ceo) // an invitation by a company that the person does not know
	i.claims = map[string]any{"email": ceo, "email_verified": true, "sub": "s-1"}
	if got := w.callback(); got != "/?error=oidc" {
		t.Errorf("without a token: got to %s, want it refused", got)
	}
	wantUser(stranger, account.StatusInvited, "")
	own, token := invite(w.other, ceo)
	if a := w.browser(w.base).do(http.MethodPost, "/api/oidc/start", `{"token":"`+token+`x"}`); a.Status != http.StatusNotFound {
		t.Errorf("a wrong token: got %d %s, want 404", a.Status, a.Body)
	}
	if got := accept(token); got != "/" {
		t.Errorf("with the token: got to %s, want /", got)
	}
	wantUser(own, account.StatusActive, "s-1")
	if got := w.callback(); got != "/" {
		t.Errorf("afterwards: got to %s, want /", got)
	}
	i.claims = map[string]any{"email": "somebody@other.example", "email_verified": true, "sub": "s-2"}
	if got := accept(strangersToken); got != "/?error=oidc" {
		t.Errorf("another address: got to %s, want it refused", got)
	}
	wantUser(stranger, account.StatusInvited, "")
}

// Failures of strangers behind the same address do not keep a known device from signing in with the issuer.
func TestOIDCOfAKnownDevice(t *testing.T) {
	t.Parallel()
	i := startIssuer(t)
	w := newOIDCWorld(t, i, limited)
	i.claims = map[string]any{"email": w.operator.Email, "email_verified": true}
	laptop := w.browser(w.base)
	if got := laptop.withIssuer(); got != "/" {
		t.Fatalf("the first sign-in: got to %s, want /", got)
	}
	fail := func(b *browser) (location string) {
		t.Helper()
		b.throughIssuer()
		data, err := base64.RawURLEncoding.DecodeString(strings.TrimPrefix(b.cookie, "parley-panel-oidc="))
		w.must(err)
		var attempt struct{ State string }
		w.must(json.Unmarshal(data, &attempt))
		return b.done(http.StatusFound, http.MethodGet, "/api/oidc/callback?code=x&state="+attempt.State, "").Header.Get("Location")
	}
	for range 4 {
		fail(w.browser(w.base))
	}
	if got := w.callback(); got != "/?error=oidc" {
		t.Errorf("an unknown device after four failures: got to %s, want it refused", got)
	}
	laptop.cookie = ""
	if got := laptop.withIssuer(); got != "/" {
		t.Errorf("the known device: got to %s, want /", got)
	}
	thief := w.browser(w.base)
	thief.device = laptop.device
	for range 4 {
		fail(thief)
	}
	thief.cookie = ""
	if got := thief.withIssuer(); got != "/?error=oidc" {
		t.Errorf("a device after four failures: got to %s, want it refused", got)
	}
}

func TestOIDCCookieOfThisHost(t *testing.T) {
	t.Parallel()
	w := newWorld(t, func(cfg *panel.Config) {
		cfg.PanelURL = "https://panel.example.com"
		cfg.OIDCIssuer, cfg.OIDCClientID = startIssuer(t).url, "panel"
	})
	b := w.browser(w.base)
	b.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	cookie := b.done(http.StatusFound, http.MethodGet, "/api/oidc/start", "").Header.Get("Set-Cookie")
	if !strings.HasPrefix(cookie, "__Host-parley-panel-oidc=") || !strings.Contains(cookie, "; Path=/; ") || !strings.Contains(cookie, "; HttpOnly; Secure") {
		t.Errorf("got the cookie %q, want a secure one of this host alone", cookie)
	}
}
