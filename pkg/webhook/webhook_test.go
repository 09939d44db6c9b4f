package webhook_test

import (
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/webhook"
)

// The example of the specification: Standard Webhooks, "Verifying signatures".
func TestSign(t *testing.T) {
	t.Parallel()
	secret := webhook.Secret{Value: "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}
	timestamp, signature, err := webhook.Sign([]webhook.Secret{secret}, "msg_p5jXN8AQM9LWM0D4loKWxJek", time.Unix(1614265330, 0), []byte(`{"test": 2432232314}`))
	if want := "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="; err != nil || timestamp != "1614265330" || signature != want {
		t.Errorf("got %s, %s, %v, want %s", timestamp, signature, err, want)
	}
	if _, _, err := webhook.Sign([]webhook.Secret{{Value: secret.Value, ExpiresAt: time.Unix(1, 0)}}, "id", time.Unix(2, 0), nil); err == nil {
		t.Error("without an active secret: got no error, want one")
	}
}

// Earlier secrets sign during the overlap only; a secret with an earlier expiry keeps it; their number is bounded.
func TestRotate(t *testing.T) {
	t.Parallel()
	now := time.Now()
	e := webhook.Endpoint{Secrets: []webhook.Secret{webhook.NewSecret(webhook.HMAC, now), webhook.NewSecret(webhook.Ed25519, now)}}
	old := e.Secrets[0].Value
	fresh := e.Rotate(now, time.Hour)
	if len(fresh) != 2 || len(e.Secrets) != 4 || e.Secrets[0] != fresh[0] || e.Secrets[2].Value != old {
		t.Fatalf("got %+v, want a new secret of each kind, first", e.Secrets)
	}
	signatures := func(at time.Time) (n int) {
		_, signature, err := webhook.Sign(e.Secrets, "id", at, nil)
		if err != nil {
			t.Fatal(err)
		}
		return len(strings.Fields(signature))
	}
	if during, after := signatures(now.Add(59*time.Minute)), signatures(now.Add(time.Hour)); during != 4 || after != 2 {
		t.Errorf("got %d signatures during the overlap and %d after it, want 4 and 2", during, after)
	}
	e.Rotate(now.Add(time.Minute), 24*time.Hour)
	for _, s := range e.Secrets {
		if s.Value == old && !s.ExpiresAt.Equal(now.Add(time.Hour)) {
			t.Errorf("got the end %s, want the earlier one", s.ExpiresAt)
		}
	}
	for range 20 {
		e.Rotate(now.Add(2*time.Minute), time.Hour)
	}
	if len(e.Secrets) > 10 {
		t.Errorf("got %d secrets, want at most five of each kind", len(e.Secrets))
	}
	e.Rotate(now.Add(3*time.Minute), 0)
	if got := signatures(now.Add(3 * time.Minute)); got != 2 {
		t.Errorf("without an overlap: got %d signatures, want 2", got)
	}
}

func TestCheck(t *testing.T) {
	t.Parallel()
	valid := webhook.Endpoint{URL: "https://crm.example:8443/hook?key=1", Secrets: []webhook.Secret{webhook.NewSecret(webhook.HMAC, time.Now())}}
	if err := valid.Check(); err != nil {
		t.Errorf("got %v, want it valid", err)
	}
	for name, change := range map[string]func(*webhook.Endpoint){
		"no URL":               func(e *webhook.Endpoint) { e.URL = "" },
		"another scheme":       func(e *webhook.Endpoint) { e.URL = "gopher://crm.example" },
		"no host":              func(e *webhook.Endpoint) { e.URL = "https:///x" },
		"a password":           func(e *webhook.Endpoint) { e.URL = "https://a:b@crm.example" },
		"a fragment":           func(e *webhook.Endpoint) { e.URL = "https://crm.example/#x" },
		"a long URL":           func(e *webhook.Endpoint) { e.URL = "https://crm.example/" + strings.Repeat("x", 2048) },
		"an unknown event":     func(e *webhook.Endpoint) { e.Events = []string{"chat.exploded"} },
		"the test as a filter": func(e *webhook.Endpoint) { e.Events = []string{webhook.TypeTest} },
		"a control character":  func(e *webhook.Endpoint) { e.Description = "\x1b[2J" },
		"a signature header":   func(e *webhook.Endpoint) { e.Headers = map[string]string{"Webhook-Signature": "x"} },
		"the host":             func(e *webhook.Endpoint) { e.Headers = map[string]string{"Host": "x"} },
		"a header with a line": func(e *webhook.Endpoint) { e.Headers = map[string]string{"X-A": "a\r\nX-B: b"} },
		"a header's odd name":  func(e *webhook.Endpoint) { e.Headers = map[string]string{"X A": "a"} },
		"a small header":       func(e *webhook.Endpoint) { e.Headers = map[string]string{"x-a": "a"} },
		"no secret":            func(e *webhook.Endpoint) { e.Secrets = nil },
		"a short secret":       func(e *webhook.Endpoint) { e.Secrets = []webhook.Secret{{Value: "whsec_MTIz"}} },
		"a public key": func(e *webhook.Endpoint) {
			e.Secrets = []webhook.Secret{{Value: "whpk_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"}}
		},
	} {
		e := valid
		change(&e)
		if err := e.Check(); !apperr.Is(err, apperr.Invalid) {
			t.Errorf("%s: got %v, want it rejected", name, err)
		}
	}
}
