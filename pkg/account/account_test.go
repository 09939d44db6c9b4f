package account_test

import (
	"encoding/base32"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/apperr"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestPassword(t *testing.T) {
	t.Parallel()
	hash, err := account.HashPassword(t.Context(), "correct horse é")
	if err != nil || !strings.HasPrefix(hash, "$argon2id$v=19$m=19456,t=2,p=1$") {
		t.Fatalf("got %q, %v, want argon2id with our parameters", hash, err)
	}
	for password, want := range map[string]bool{"correct horse é": true, "correct horse e": false, "": false, strings.Repeat("x", 1<<20): false} {
		if got, err := account.VerifyPassword(t.Context(), password, hash); err != nil || got != want {
			t.Errorf("%.20q: got %v, %v, want %v", password, got, err, want)
		}
	}
	for _, broken := range []string{"", "x", "$argon2id$v=19$m=19456,t=2,p=1$AA$", "$argon2i$v=19$m=1,t=1,p=1$AAAA$AAAA", strings.Replace(hash, "m=19456", "m=99999999", 1)} {
		if got, err := account.VerifyPassword(t.Context(), "correct horse é", broken); err != nil || got {
			t.Errorf("the hash %q: got %v, %v, want false", broken, got, err)
		}
	}
	for password, ok := range map[string]bool{"short": false, "twelve chars": true, strings.Repeat("x", 201): false} {
		if err := account.CheckPassword("new", password); (err == nil) != ok {
			t.Errorf("%.20q: got %v", password, err)
		}
	}
}

// The codes of RFC 6238, appendix B, in six digits.
func TestTOTP(t *testing.T) {
	t.Parallel()
	secret := base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString([]byte("12345678901234567890"))
	for seconds, want := range map[int64]string{59: "287082", 1111111109: "081804", 1111111111: "050471", 1234567890: "005924", 2000000000: "279037"} {
		at := time.Unix(seconds, 0)
		if got := account.TOTP(secret, at); got != want {
			t.Errorf("at %d: got %s, want %s", seconds, got, want)
		}
		step, ok := account.VerifyTOTP(secret, want, at, 0)
		if !ok || step != seconds/30 {
			t.Errorf("at %d: got step %d, %v", seconds, step, ok)
		}
		if _, ok := account.VerifyTOTP(secret, want, at, step); ok {
			t.Errorf("at %d: a used code is accepted again", seconds)
		}
		if _, ok := account.VerifyTOTP(secret, want, at.Add(90*time.Second), 0); ok {
			t.Errorf("at %d: a code is accepted outside the skew", seconds)
		}
	}
	if _, ok := account.VerifyTOTP("", account.TOTP("", time.Unix(1, 0)), time.Unix(1, 0), -10); ok {
		t.Error("a code is accepted without a secret")
	}
}

func TestSessionEnds(t *testing.T) {
	t.Parallel()
	start := time.Unix(1_700_000_000, 0)
	secret, s := account.NewSession("ada", "", "", start)
	if !account.SameSecret(secret, s.ID) || account.SameSecret("", "") || account.CSRFToken(secret) == secret {
		t.Error("the session's id is not the hash of its secret")
	}
	if !s.Valid(start.Add(account.SessionIdle-1)) || s.Valid(start.Add(account.SessionIdle)) {
		t.Error("an idle session does not expire")
	}
	for now := start; now.Before(start.Add(account.SessionTTL)); now = now.Add(time.Hour) {
		if !s.Valid(now) {
			t.Fatalf("a session in use ended at %v", now.Sub(start))
		}
		s.ExpiresAt = s.Extended(now)
	}
	if s.Valid(start.Add(account.SessionTTL)) {
		t.Error("a session in use does not expire after SessionTTL")
	}
}

func TestUserCheck(t *testing.T) {
	t.Parallel()
	const company = "11111111-1111-4111-8111-111111111111"
	for name, test := range map[string]struct {
		user account.User
		ok   bool
	}{
		"an owner":                       {account.NewUser("a@b.example", "Ada", account.Owner, company, time.Time{}), true},
		"an operator":                    {account.NewUser("a@b.example", "", account.Operator, "", time.Time{}), true},
		"an operator of a company":       {account.NewUser("a@b.example", "", account.Operator, company, time.Time{}), false},
		"an agent of no company":         {account.NewUser("a@b.example", "", account.Agent, "", time.Time{}), false},
		"an unknown role":                {account.NewUser("a@b.example", "", "king", company, time.Time{}), false},
		"no address":                     {account.NewUser("a b@example", "", account.Agent, company, time.Time{}), false},
		"a name that colours the screen": {account.NewUser("a@b.example", "\x1b[31m", account.Agent, company, time.Time{}), false},
	} {
		if err := test.user.Check(); (err == nil) != test.ok || err != nil && !apperr.Is(err, apperr.Invalid) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if account.UserID(" A@B.example ") != account.UserID("a@b.EXAMPLE") || account.UserID("a@b.example") == account.UserID("c@b.example") {
		t.Error("the id is not derived from the address")
	}
}
