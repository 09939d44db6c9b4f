package widgetapi_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/bus/bustest"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/credential"
	widgetapi "github.com/parley-chat/parley/services/widget-api"
)

// verify makes an application verify its visitors and returns its secret.
func (w *world) verify(app string, mode chat.Verification) chat.Secret {
	w.t.Helper()
	secret := credential.NewIdentitySecret()
	_, err := w.store.RotateIdentitySecret(w.t.Context(), app, secret, time.Now(), time.Hour)
	w.must(err)
	w.must(w.store.SetVerification(w.t.Context(), app, mode))
	return secret
}

// clock is a clock that only the test moves.
type clock struct{ at atomic.Pointer[time.Time] }

func newClock(at time.Time) *clock {
	c := &clock{}
	c.set(at)
	return c
}

func (c *clock) set(at time.Time) { c.at.Store(&at) }
func (c *clock) now() time.Time   { return *c.at.Load() }

func fast(cfg *widgetapi.Config) { cfg.CacheTTL = time.Millisecond }

// proved is the members of a registration with a hash for identifier.
func proved(secret chat.Secret, identifier, members string) string {
	return members + `,"userHash":"` + credential.UserHash(secret, identifier) + `"`
}

func (w *world) tryRegister(app, members string) answer {
	w.t.Helper()
	return w.post("/register", "", `{"appId":"`+app+`",`+members+`}`)
}

func TestUserHash(t *testing.T) {
	t.Parallel()
	w := start(t, fast)
	optional, required := w.verify(appID, chat.VerificationOptional), w.verify(bareApp, chat.VerificationRequired)
	const all = `"userId":"u1","email":"a@example.com","phone":"989121234567"`
	for _, test := range []struct{ name, app, members, wrong string }{
		{"optional, none", appID, all, ""},
		{"optional, null", appID, all + `,"userHash":null`, ""},
		{"optional, of the userId", appID, proved(optional, "u1", all), ""},
		{"optional, wrong", appID, all + `,"userHash":"` + strings.Repeat("0", 64) + `"`, "does not prove the userId"},
		{"optional, empty", appID, all + `,"userHash":""`, "does not prove the userId"},
		{"optional, no string", appID, all + `,"userHash":7`, "must be a string"},
		{"required, none", bareApp, all, "is required"},
		{"required, null", bareApp, all + `,"userHash":null`, "is required"},
		{"required, of the userId", bareApp, proved(required, "u1", all), ""},
		{"required, of the email only", bareApp, proved(required, "a@example.com", all), "does not prove the userId"},
		{"required, of the email alone", bareApp, proved(required, "a@example.com", `"email":"a@example.com","phone":"989121234567"`), ""},
		{"required, of the phone before the email", bareApp, proved(required, "989121234567", `"email":"a@example.com","phone":"989121234567"`), "does not prove the email"},
		{"required, of the phone alone", bareApp, proved(required, "989121234567", `"phone":"989121234567"`), ""},
		{"required, in capitals", bareApp, `"userId":"u1","userHash":"` + strings.ToUpper(credential.UserHash(required, "u1")) + `"`, ""},
		{"required, of somebody else", bareApp, proved(required, "u2", `"userId":"u1"`), "does not prove the userId"},
		{"required, of another application", bareApp, proved(optional, "u1", `"userId":"u1"`), "does not prove the userId"},
		{"off, anything", guardedApp, all + `,"userHash":"anything"`, ""},
	} {
		got := w.tryRegister(test.app, test.members)
		if test.wrong == "" {
			if got.status != http.StatusOK {
				t.Errorf("%s: got %d %s, want 200", test.name, got.status, got.body)
			}
			continue
		}
		p := got.problem(t)
		if got.status != http.StatusBadRequest || p.details() != "userHash "+test.wrong {
			t.Errorf("%s: got %d %s, want 400 and userHash %s", test.name, got.status, got.body, test.wrong)
		}
		if p.Code != "IDENTITY_NOT_VERIFIED" && p.Code != "VALIDATION_ERROR" {
			t.Errorf("%s: got the code %s, want IDENTITY_NOT_VERIFIED", test.name, p.Code)
		}
	}
}

// A visitor without a proof never meets one with, in either direction, by whichever identity and whoever comes first.
func TestProvedAndPlainVisitorsAreApart(t *testing.T) {
	t.Parallel()
	w := start(t, fast)
	secret := w.verify(appID, chat.VerificationOptional)
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
				w.write(plain, "from anybody")
				if w.claims(plain).ChatUserID == w.claims(owner).ChatUserID {
					t.Fatal("both are one visitor, want two")
				}
				// They stay who they are when they come back, and see only what is theirs.
				for token, want := range map[string]string{
					w.register(appID, proved(secret, value, members)): "from the owner", w.register(appID, members): "from anybody",
				} {
					if got := w.texts(token); got[len(got)-1] != want || len(got) != 3 {
						t.Errorf("got %q, want the greetings and %q", got, want)
					}
				}
			})
		}
	}
}

// What comes beside the proved identity is what the visitor says, and leads to nobody.
func TestOnlyTheProvedIdentityCounts(t *testing.T) {
	t.Parallel()
	w := start(t, fast)
	secret := w.verify(appID, chat.VerificationOptional)
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
		t.Error("the owner came back: got another visitor, want the same")
	}
	// Nor does a proof leave the address behind for others: who only names it later is somebody new.
	fresh := w.register(appID, proved(secret, "u9", `"userId":"u9","email":"u9@example.com"`))
	if named := w.register(appID, `"email":"u9@example.com"`); w.claims(named).ChatUserID == w.claims(fresh).ChatUserID {
		t.Error("who names the profile's address: got the proved visitor, want a new one")
	}
}

func TestProvedAndPlainAtOnce(t *testing.T) {
	t.Parallel()
	w := start(t, fast)
	secret := w.verify(appID, chat.VerificationOptional)
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
			if err := json.Unmarshal([]byte(w.tryRegister(appID, body).body), &r); err != nil || r.AccessToken == "" {
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
	if len(owners) != 1 || len(plains) != 1 || owners[0] == plains[0] {
		t.Errorf("got the proved visitors %v and the plain ones %v, want one each", owners, plains)
	}
}

func keysOf(m *sync.Map) (keys []string) {
	m.Range(func(k, _ any) bool { keys = append(keys, k.(string)); return true })
	return keys
}

// When an application comes to require proofs, tokens from before are good for nothing but proved ones go on.
func TestVerificationIsRequiredLater(t *testing.T) {
	t.Parallel()
	w := start(t, fast)
	secret := w.verify(appID, chat.VerificationOptional)
	plain, owner := w.register(appID, `"userId":"u1"`), w.register(appID, proved(secret, "u1", `"userId":"u1"`))
	w.must(w.store.SetVerification(t.Context(), appID, chat.VerificationRequired))
	eventually(t, "the plain token being refused", func() bool { return w.get("/message", plain).status == http.StatusUnauthorized })
	if got := w.post("/message", plain, hello); got.status != http.StatusUnauthorized || got.problem(t).Code != "UNAUTHORIZED" {
		t.Errorf("writing with a plain token: got %d %s, want 401", got.status, got.body)
	}
	if got := w.post("/message", owner, hello); got.status != http.StatusCreated {
		t.Errorf("writing with a proved token: got %d %s, want 201", got.status, got.body)
	}
	w.must(w.store.SetVerification(t.Context(), appID, chat.VerificationOff))
	eventually(t, "the plain token being good again", func() bool { return w.get("/message", plain).status == http.StatusOK })
}

func TestIdentitySecretsRotate(t *testing.T) {
	t.Parallel()
	c := newClock(time.Now())
	w := start(t, fast, func(cfg *widgetapi.Config) { cfg.Now = c.now })
	old := w.verify(appID, chat.VerificationRequired)
	fresh := credential.NewIdentitySecret()
	now := c.now()
	_, err := w.store.RotateIdentitySecret(t.Context(), appID, fresh, now, time.Minute)
	w.must(err)
	status := func(secret chat.Secret) int {
		return w.tryRegister(appID, proved(secret, "u1", `"userId":"u1"`)).status
	}
	eventually(t, "the new secret being known", func() bool { return status(fresh) == http.StatusOK })
	if got := status(old); got != http.StatusOK {
		t.Errorf("the old secret in the overlap: got %d, want 200", got)
	}
	c.set(now.Add(time.Minute))
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
		w.get("/settings/"+appID, "").body,
		w.tryRegister(appID, `"userId":"u1"`).body,
		w.tryRegister(appID, `"userId":"u1","userHash":"`+hash+`"`).body,
	} {
		for _, hidden := range []string{string(secret), string(secret)[4:], hash, credential.UserHash(secret, "u1"), "dentitySecret", "[secret]"} {
			if strings.Contains(body, hidden) {
				t.Errorf("got %s, want nothing of the secret or of a hash", body)
			}
		}
	}
}

func TestTheEventTellsWhatIsProved(t *testing.T) {
	t.Parallel()
	w := start(t, fast)
	secret := w.verify(appID, chat.VerificationOptional)
	heard := bustest.Collect(t, w.engines.natsURL, "chat.in.visitor.registered.>")
	for _, test := range []struct{ members, want string }{
		{`"userId":"u1"`, ""},
		{proved(secret, "u1", `"userId":"u1"`), "userId"},
		{proved(secret, "a@example.com", `"email":"a@example.com"`), "email"},
	} {
		w.register(appID, test.members)
		var e struct{ VerifiedBy string }
		w.must(json.Unmarshal(heard.Next().Data, &e))
		if e.VerifiedBy != test.want {
			t.Errorf("%s: got verifiedBy %q, want %q", test.members, e.VerifiedBy, test.want)
		}
	}
}

// write sends a text as the visitor.
func (w *world) write(token, text string) {
	w.t.Helper()
	if got := w.post("/message", token, `{"type":"TEXT","data":{"text":"`+text+`"}}`); got.status != http.StatusCreated {
		w.t.Fatalf("POST /message: got %d %s, want 201", got.status, got.body)
	}
}

// texts are those of the history.
func (w *world) texts(token string) (texts []string) {
	w.t.Helper()
	for _, r := range w.history(token) {
		var data struct{ Text string }
		w.must(json.Unmarshal(r.Data, &data))
		texts = append(texts, data.Text)
	}
	return texts
}
