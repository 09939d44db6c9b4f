package widgetapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/store"
	widgetapi "github.com/parley-chat/parley/services/widget-api"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/httpapitest"
	"github.com/parley-chat/parley/testkit/timetest"
)

// verify turns on identity verification for an application and returns its secret.
func (w *world) verify(app string, mode chat.Verification) chat.Secret {
	w.t.Helper()
	secret := credential.NewIdentitySecret()
	err := w.store.ChangeApplication(w.t.Context(), app, store.ApplicationChange{Secrets: store.RotateSecret(secret, time.Now(), time.Hour)})
	w.must(err)
	w.must(w.store.ChangeApplication(w.t.Context(), app, store.ApplicationChange{Verification: mode}))
	return secret
}

func fast(cfg *widgetapi.Config) { cfg.CacheTTL = time.Millisecond }

// proved returns registration members with a userHash of the identifier.
func proved(secret chat.Secret, identifier, members string) string {
	return members + `,"userHash":"` + credential.UserHash(secret, identifier) + `"`
}

func (w *world) tryRegister(app, members string) httpapitest.Response {
	w.t.Helper()
	return w.post("/register", "", `{"appId":"`+app+`",`+members+`}`)
}

func TestUserHash(t *testing.T) {
	t.Parallel()
	w := start(t, fast)
	session, required := w.verify(appID, chat.VerificationSession), w.verify(bareApp, chat.VerificationRequired)
	const all = `"userId":"u1","email":"a@example.com","phone":"989121234567"`
	for _, test := range []struct{ name, app, members, wrong string }{
		{"session, none", appID, all, ""},
		{"session, null", appID, all + `,"userHash":null`, ""},
		{"session, of the userId", appID, proved(session, "u1", all), ""},
		{"session, wrong", appID, all + `,"userHash":"` + strings.Repeat("0", 64) + `"`, "does not prove the userId"},
		{"session, empty", appID, all + `,"userHash":""`, "does not prove the userId"},
		{"session, no string", appID, all + `,"userHash":7`, "must be a string"},
		{"required, none", bareApp, all, "or identityToken is required"},
		{"required, null", bareApp, all + `,"userHash":null`, "or identityToken is required"},
		{"required, of the userId", bareApp, proved(required, "u1", all), ""},
		{"required, of the email only", bareApp, proved(required, "a@example.com", all), "does not prove the userId"},
		{"required, of the email alone", bareApp, proved(required, "a@example.com", `"email":"a@example.com","phone":"989121234567"`), ""},
		{"required, of the phone before the email", bareApp, proved(required, "989121234567", `"email":"a@example.com","phone":"989121234567"`), "does not prove the email"},
		{"required, of the phone alone", bareApp, proved(required, "989121234567", `"phone":"989121234567"`), ""},
		{"required, in capitals", bareApp, `"userId":"u1","userHash":"` + strings.ToUpper(credential.UserHash(required, "u1")) + `"`, ""},
		{"required, of another identifier", bareApp, proved(required, "u2", `"userId":"u1"`), "does not prove the userId"},
		{"required, of another application", bareApp, proved(session, "u1", `"userId":"u1"`), "does not prove the userId"},
		{"off, anything", guardedApp, all + `,"userHash":"anything"`, ""},
	} {
		got := w.tryRegister(test.app, test.members)
		if test.wrong == "" {
			if got.Status != http.StatusOK {
				t.Errorf("%s: got %d %s, want 200", test.name, got.Status, got.Body)
			}
			continue
		}
		p := got.Problem(t)
		if got.Status != http.StatusBadRequest || got.Details(t) != "userHash "+test.wrong {
			t.Errorf("%s: got %d %s, want 400 and userHash %s", test.name, got.Status, got.Body, test.wrong)
		}
		if p.Code != "IDENTITY_NOT_VERIFIED" && p.Code != "VALIDATION_ERROR" {
			t.Errorf("%s: got the code %s, want IDENTITY_NOT_VERIFIED", test.name, p.Code)
		}
	}
}

// A visitor with a proof and one without are never merged, whichever identity they share and whichever registers first.
func TestProvedAndPlainVisitorsAreNotMerged(t *testing.T) {
	t.Parallel()
	w := start(t, fast)
	secret := w.verify(appID, chat.VerificationSession)
	for i, identity := range []string{"userId", "email", "phone"} {
		for _, first := range []string{"plain", "proved"} {
			t.Run(identity+", "+first+" first", func(t *testing.T) {
				value := map[string]string{
					"userId": "u-" + first, "email": first + "@example.com", "phone": fmt.Sprintf("98912000%04d", 10*i+len(first)),
				}[identity]
				members := `"` + identity + `":"` + value + `"`
				var plain, owner string
				if first == "plain" {
					plain, owner = w.register(appID, members), w.register(appID, proved(secret, value, members))
				} else {
					owner, plain = w.register(appID, proved(secret, value, members)), w.register(appID, members)
				}
				w.write(owner, "from the owner")
				w.write(plain, "from the plain visitor")
				if w.claims(plain).ChatUserID == w.claims(owner).ChatUserID {
					t.Fatal("both are one visitor, want two")
				}
				// Both keep their identity when they register again, and see only their own messages.
				for token, want := range map[string]string{
					w.register(appID, proved(secret, value, members)): "from the owner", w.registerAs(plain, appID, members): "from the plain visitor",
				} {
					if got := w.texts(token); got[len(got)-1] != want || len(got) != 3 {
						t.Errorf("got %q, want the greetings and %q", got, want)
					}
				}
			})
		}
	}
}

// Other identities beside the proved one are unverified claims and match no existing visitor.
func TestOnlyTheProvedIdentityCounts(t *testing.T) {
	t.Parallel()
	w := start(t, fast)
	secret := w.verify(appID, chat.VerificationSession)
	victim := w.register(appID, proved(secret, "victim@example.com", `"email":"victim@example.com"`))
	plain := w.register(appID, `"email":"plain@example.com"`)
	for _, email := range []string{"victim@example.com", "plain@example.com"} {
		members := `"userId":"mallory","email":"` + email + `"`
		mallory := w.claims(w.register(appID, proved(secret, "mallory", members))).ChatUserID
		if mallory == w.claims(victim).ChatUserID || mallory == w.claims(plain).ChatUserID {
			t.Errorf("with her own hash and the e-mail address %s: got its owner's visitor, want her own", email)
		}
	}
	again := w.register(appID, proved(secret, "Victim@Example.com", `"email":"Victim@Example.com"`))
	if w.claims(again).ChatUserID != w.claims(victim).ChatUserID {
		t.Error("the owner registers again: got another visitor, want the same")
	}
	// The proof does not reserve the address either: a later claim to it creates a new visitor.
	fresh := w.register(appID, proved(secret, "u9", `"userId":"u9","email":"u9@example.com"`))
	if named := w.register(appID, `"email":"u9@example.com"`); w.claims(named).ChatUserID == w.claims(fresh).ChatUserID {
		t.Error("a claim to the profile's address: got the proved visitor, want a new one")
	}
}

// registerAs registers with a visitor's earlier token.
func (w *world) registerAs(token, app, members string) string {
	w.t.Helper()
	got := w.post("/register", token, `{"appId":"`+app+`",`+members+`}`)
	var r struct{ AccessToken string }
	if err := json.Unmarshal([]byte(got.Body), &r); err != nil || got.Status != http.StatusOK {
		w.t.Fatalf("POST /register: got %d %s, want 200 and a token", got.Status, got.Body)
	}
	return r.AccessToken
}

// In the mode session only the visitor's token continues a known chat; every other registration starts a new visitor.
func TestModeSession(t *testing.T) {
	t.Parallel()
	w := start(t, fast)
	w.must(w.store.ChangeApplication(t.Context(), appID, store.ApplicationChange{Verification: chat.VerificationSession})) // no secret is needed
	visitor := func(token string) string { return w.claims(token).ChatUserID }
	const email = `"email":"Sara@example.com"`
	sara := w.register(appID, email)
	w.write(sara, "my secret")
	if again := w.registerAs(sara, appID, `"email":"sara@EXAMPLE.com","firstName":"Sara"`); visitor(again) != visitor(sara) || len(w.texts(again)) != 3 {
		t.Error("with her own token: got another visitor, want her history")
	}
	if again := w.registerAs(sara, appID, email+`,"userId":"crm-1"`); visitor(again) != visitor(sara) {
		t.Error("with her own token and a userId that is new: got another visitor, want the same")
	}
	other := w.register(otherApp, email)
	jo := w.register(appID, `"email":"jo@example.com"`)
	expired, err := w.keys.Sign(credential.VisitorClaims{
		ChatUserID: visitor(sara), AppID: appID, CompanyID: companyID, TokenID: "old", IssuedAt: time.Now().Add(-2 * time.Hour), ExpiresAt: time.Now().Add(-time.Hour),
	})
	w.must(err)
	seen := map[string]string{visitor(sara): "sara's"}
	for name, token := range map[string]string{
		"no token": "", "another visitor's": jo, "another application's": other, "an expired one": expired, "nonsense": "nonsense",
	} {
		got := w.registerAs(token, appID, email)
		if known, ok := seen[visitor(got)]; ok {
			t.Errorf("%s: got the visitor of %s, want one of their own", name, known)
		}
		seen[visitor(got)] = name
		if texts := w.texts(got); len(texts) != 2 || slices.Contains(texts, "my secret") {
			t.Errorf("%s: got the history %q, want only greetings", name, texts)
		}
		if again := w.registerAs(got, appID, email); visitor(again) != visitor(got) {
			t.Errorf("%s: registering with the separate visitor's token: got another visitor, want the same", name)
		}
	}
	if got := w.registerAs(jo, appID, `"email":"jo@example.com","userId":"crm-9"`); visitor(got) != visitor(jo) {
		t.Error("jo: got another visitor, want the same")
	}
	if got := w.registerAs(jo, appID, `"email":"new@example.com"`); visitor(got) == visitor(jo) {
		t.Error("with jo's token and another address: got jo, want a new visitor")
	}
	// Off, as in the specification: a claim is enough.
	w.must(w.store.ChangeApplication(t.Context(), appID, store.ApplicationChange{Verification: chat.VerificationOff}))
	timetest.Until(t, "the mode off", func() bool { return visitor(w.register(appID, email)) == visitor(sara) })
}

func TestIdentityToken(t *testing.T) {
	t.Parallel()
	w := start(t, fast)
	secret, required := w.verify(appID, chat.VerificationSession), w.verify(bareApp, chat.VerificationRequired)
	sign := func(key chat.Secret, p credential.ProvedIdentity, in time.Duration) string {
		token, err := credential.IdentityToken(key, p, time.Now().Add(in))
		w.must(err)
		return `"identityToken":"` + token + `"`
	}
	u1, both := credential.ProvedIdentity{UserID: "u1"}, credential.ProvedIdentity{UserID: "u1", Email: "a@example.com"}
	valid := sign(secret, u1, 59*time.Minute)
	none := `"identityToken":"` + func() string {
		header, claims := "eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0", "eyJ1c2VySWQiOiJ1MSIsImV4cCI6NDA3MDkwODgwMH0"
		return header + "." + claims + "."
	}() + `"`
	for _, test := range []struct{ name, app, members, wrong string }{
		{"alone", appID, valid, ""},
		{"with the same userId", appID, `"userId":"u1",` + valid, ""},
		{"with an address beside it", appID, `"email":"x@example.com",` + valid, ""},
		{"of two", bareApp, `"email":"a@example.com",` + sign(required, both, time.Hour), ""},
		{"with another userId", appID, `"userId":"u2",` + valid, "identityToken does not prove the userId"},
		{"of the email only", appID, `"userId":"u1","email":"a@example.com",` + sign(secret, credential.ProvedIdentity{Email: "a@example.com"}, time.Minute), "identityToken does not prove the userId"},
		{"expired", appID, sign(secret, u1, -time.Second), "identityToken has expired"},
		{"for too long", appID, sign(secret, u1, 2*time.Hour), "identityToken must have an exp at most an hour ahead"},
		{"without an identity", appID, sign(secret, credential.ProvedIdentity{}, time.Minute), "identityToken must have the claim userId, email or phone"},
		{"of another application", bareApp, valid, "identityToken is not a JWT signed with HS256 and the application's secret"},
		{"not signed", appID, none, "identityToken is not a JWT signed with HS256 and the application's secret"},
		{"a visitor token", appID, `"identityToken":"` + w.register(guardedApp, `"userId":"x"`) + `"`, "identityToken is not a JWT signed with HS256 and the application's secret"},
		{"with a userHash", appID, proved(secret, "u1", `"userId":"u1"`) + "," + valid, "userHash must be absent if identityToken is sent"},
		{"of an invalid address", appID, sign(secret, credential.ProvedIdentity{Email: "nobody"}, time.Minute), "email must be a valid e-mail address"},
		{"required, none", bareApp, `"userId":"u1"`, "userHash or identityToken is required"},
	} {
		got := w.tryRegister(test.app, test.members)
		if test.wrong == "" && got.Status != http.StatusOK {
			t.Errorf("%s: got %d %s, want 200", test.name, got.Status, got.Body)
		}
		if test.wrong != "" && (got.Status != http.StatusBadRequest || got.Details(t) != test.wrong) {
			t.Errorf("%s: got %d %s, want 400 and %s", test.name, got.Status, got.Body, test.wrong)
		}
	}
	// Both proofs of one identity lead to one visitor; a claim leads to another.
	byToken, byHash := w.claims(w.register(appID, valid)), w.claims(w.register(appID, proved(secret, "u1", `"userId":"u1"`)))
	if claimed := w.claims(w.register(appID, `"userId":"u1"`)); byToken.ChatUserID != byHash.ChatUserID || claimed.ChatUserID == byToken.ChatUserID {
		t.Errorf("got %s by token, %s by hash and %s by a claim, want the first two alike", byToken.ChatUserID, byHash.ChatUserID, claimed.ChatUserID)
	}
}

// revoke revokes tokens as parleyctl does.
func (w *world) revoke(token string) {
	w.t.Helper()
	id := w.claims(token).ChatUserID
	w.must(w.store.RevokeVisitorTokens(w.t.Context(), id, credential.RevocationTime(time.Now())))
	w.must(bustest.Open(w.t, w.engines.NATSURL).RPC().Invalidate(w.t.Context(), store.CachedVisitor, id))
}

// Every route refuses revoked tokens; they continue no visitor and stay refused. A new registration is valid at once.
func TestRevokedTokens(t *testing.T) {
	t.Parallel()
	w := start(t) // with the production cache
	w.must(w.store.ChangeApplication(t.Context(), appID, store.ApplicationChange{Verification: chat.VerificationSession}))
	const email = `"email":"sara@example.com"`
	sara, jo := w.register(appID, email), w.register(appID, `"email":"jo@example.com"`)
	w.write(sara, "before")
	w.revoke(sara)
	timetest.Until(t, "the revocation", func() bool { return w.get("/message", sara).Status == http.StatusUnauthorized })
	for name, got := range map[string]httpapitest.Response{
		"GET /message": w.get("/message", sara), "POST /message": w.post("/message", sara, hello), "POST read": w.post("/message/x/read", sara, ""),
	} {
		got.IsProblem(t, http.StatusUnauthorized, "UNAUTHORIZED", "Unauthorized", "token was revoked")
		if t.Failed() {
			t.Fatal(name)
		}
	}
	if fresh := w.registerAs(sara, appID, email); w.claims(fresh).ChatUserID == w.claims(sara).ChatUserID {
		t.Error("with a revoked token: got the visitor, want a separate one")
	}
	if got := w.get("/message", jo); got.Status != http.StatusOK {
		t.Errorf("another visitor: got %d, want 200", got.Status)
	}
	w.must(w.store.ChangeApplication(t.Context(), appID, store.ApplicationChange{Verification: chat.VerificationOff}))
	var again string
	timetest.Until(t, "the mode off", func() bool {
		again = w.register(appID, email)
		return w.claims(again).ChatUserID == w.claims(sara).ChatUserID
	})
	if got := w.get("/message", again); got.Status != http.StatusOK {
		t.Errorf("a token from after the revocation: got %d %s, want 200", got.Status, got.Body)
	}
	w.stop()
	w.run()
	if old, fresh := w.get("/message", sara), w.get("/message", again); old.Status != http.StatusUnauthorized || fresh.Status != http.StatusOK {
		t.Errorf("after a restart: got %d and %d, want 401 and 200", old.Status, fresh.Status)
	}
}

func TestConcurrentProvedAndPlainRegistrations(t *testing.T) {
	t.Parallel()
	w := start(t, fast)
	secret := w.verify(appID, chat.VerificationSession)
	const members = `"userId":"u1","email":"u1@example.com"`
	ids := [2]sync.Map{}
	var group sync.WaitGroup
	for i := range 16 {
		group.Go(func() {
			body := members
			if i%2 == 0 {
				body = proved(secret, "u1", members)
			}
			var r struct{ AccessToken string }
			if err := json.Unmarshal([]byte(w.tryRegister(appID, body).Body), &r); err != nil || r.AccessToken == "" {
				t.Errorf("got no token (%v)", err)
				return
			}
			claims, err := credential.NewVerifier(w.keys, nil).Verify(t.Context(), r.AccessToken)
			if err != nil {
				t.Error(err)
			}
			ids[i%2].Store(claims.ChatUserID, true)
		})
	}
	group.Wait()
	owners, plains := keysOf(&ids[0]), keysOf(&ids[1])
	if len(owners) != 1 || len(plains) != 8 || slices.Contains(plains, owners[0]) {
		t.Errorf("got the proved visitors %v and the plain ones %v, want one and eight others", owners, plains)
	}
}

func keysOf(m *sync.Map) (keys []string) {
	m.Range(func(k, _ any) bool { keys = append(keys, k.(string)); return true })
	return keys
}

// When an application starts to require proofs, only proved tokens stay valid.
func TestVerificationIsRequiredLater(t *testing.T) {
	t.Parallel()
	w := start(t, fast)
	secret := w.verify(appID, chat.VerificationSession)
	plain, owner := w.register(appID, `"userId":"u1"`), w.register(appID, proved(secret, "u1", `"userId":"u1"`))
	w.must(w.store.ChangeApplication(t.Context(), appID, store.ApplicationChange{Verification: chat.VerificationRequired}))
	timetest.Until(t, "the plain token being refused", func() bool { return w.get("/message", plain).Status == http.StatusUnauthorized })
	if got := w.post("/message", plain, hello); got.Status != http.StatusUnauthorized || got.Problem(t).Code != "UNAUTHORIZED" {
		t.Errorf("writing with a plain token: got %d %s, want 401", got.Status, got.Body)
	}
	if got := w.post("/message", owner, hello); got.Status != http.StatusCreated {
		t.Errorf("writing with a proved token: got %d %s, want 201", got.Status, got.Body)
	}
	w.must(w.store.ChangeApplication(t.Context(), appID, store.ApplicationChange{Verification: chat.VerificationOff}))
	timetest.Until(t, "the plain token being valid again", func() bool { return w.get("/message", plain).Status == http.StatusOK })
}

func TestIdentitySecretsRotate(t *testing.T) {
	t.Parallel()
	c := timetest.NewClock(time.Now())
	w := start(t, fast, func(cfg *widgetapi.Config) { cfg.Now = c.Now })
	old := w.verify(appID, chat.VerificationRequired)
	fresh := credential.NewIdentitySecret()
	now := c.Now()
	err := w.store.ChangeApplication(t.Context(), appID, store.ApplicationChange{Secrets: store.RotateSecret(fresh, now, time.Minute)})
	w.must(err)
	status := func(secret chat.Secret) int {
		return w.tryRegister(appID, proved(secret, "u1", `"userId":"u1"`)).Status
	}
	timetest.Until(t, "the new secret being known", func() bool { return status(fresh) == http.StatusOK })
	if got := status(old); got != http.StatusOK {
		t.Errorf("the old secret in the overlap: got %d, want 200", got)
	}
	c.Set(now.Add(time.Minute))
	if got := status(old); got != http.StatusBadRequest {
		t.Errorf("the old secret at the end of the overlap: got %d, want 400", got)
	}
	if got := status(fresh); got != http.StatusOK {
		t.Errorf("the new secret then: got %d, want 200", got)
	}
}

func TestSettingsShowNothingOfTheSecret(t *testing.T) {
	t.Parallel()
	w := start(t, fast)
	secret := w.verify(appID, chat.VerificationRequired)
	hash := credential.UserHash(secret, "u2")
	for _, body := range []string{
		w.get("/settings/"+appID, "").Body,
		w.tryRegister(appID, `"userId":"u1"`).Body,
		w.tryRegister(appID, `"userId":"u1","userHash":"`+hash+`"`).Body,
	} {
		for _, hidden := range []string{string(secret), string(secret)[4:], hash, credential.UserHash(secret, "u1"), "dentitySecret", "[secret]"} {
			if strings.Contains(body, hidden) {
				t.Errorf("got %s, want nothing of the secret or of a hash", body)
			}
		}
	}
}

func TestEventNamesTheProvedIdentity(t *testing.T) {
	t.Parallel()
	w := start(t, fast)
	secret := w.verify(appID, chat.VerificationSession)
	published := bustest.Collect(t, w.engines.NATSURL, "chat.in.visitor.registered.>")
	for _, test := range []struct{ members, want string }{
		{`"userId":"u1"`, ""},
		{proved(secret, "u1", `"userId":"u1"`), "userId"},
		{proved(secret, "a@example.com", `"email":"a@example.com"`), "email"},
	} {
		w.register(appID, test.members)
		var e struct{ VerifiedBy string }
		w.must(json.Unmarshal(published.Next().Data, &e))
		if e.VerifiedBy != test.want {
			t.Errorf("%s: got verifiedBy %q, want %q", test.members, e.VerifiedBy, test.want)
		}
	}
}

// write sends a text as the visitor.
func (w *world) write(token, text string) {
	w.t.Helper()
	if got := w.post("/message", token, `{"type":"TEXT","data":{"text":"`+text+`"}}`); got.Status != http.StatusCreated {
		w.t.Fatalf("POST /message: got %d %s, want 201", got.Status, got.Body)
	}
}

// texts returns the texts of the history.
func (w *world) texts(token string) (texts []string) {
	w.t.Helper()
	for _, r := range w.history(token) {
		var data struct{ Text string }
		w.must(json.Unmarshal(r.Data, &data))
		texts = append(texts, data.Text)
	}
	return texts
}
