package credential

import (
	"strings"
	"testing"

	"github.com/parley-chat/parley/pkg/chat"
)

func TestUserHashMatchesOpenSSL(t *testing.T) {
	t.Parallel()
	// printf %s user-42 | openssl dgst -sha256 -hmac pis_secret
	const want = "6dbcb094939460d0f2221328d82380d477fccc525c31a05e7deb5dabefd217c3"
	if got := UserHash("pis_secret", "user-42"); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

func TestUserHash(t *testing.T) {
	t.Parallel()
	old, current, foreign := NewIdentitySecret(), NewIdentitySecret(), NewIdentitySecret()
	if old == current || !strings.HasPrefix(string(old), "pis_") || len(string(old)) != 47 {
		t.Fatalf("a new secret has %d characters, want 47 of its own", len(string(old)))
	}
	secrets := []chat.Secret{current, old}
	good := UserHash(current, "user-42")
	for name, test := range map[string]struct {
		secrets          []chat.Secret
		identifier, hash string
		want             bool
	}{
		"the current secret":  {secrets, "user-42", good, true},
		"the one before":      {secrets, "user-42", UserHash(old, "user-42"), true},
		"in capitals":         {secrets, "user-42", strings.ToUpper(good), true},
		"a foreign secret":    {secrets, "user-42", UserHash(foreign, "user-42"), false},
		"another user's":      {secrets, "user-43", good, false},
		"no secrets":          {nil, "user-42", good, false},
		"the secret is empty": {nil, "user-42", UserHash("", "user-42"), false},
		"empty":               {secrets, "user-42", "", false},
		"half":                {secrets, "user-42", good[:32], false},
		"longer":              {secrets, "user-42", good + "00", false},
		"odd":                 {secrets, "user-42", good[:63], false},
		"not hexadecimal":     {secrets, "user-42", strings.Repeat("g", 64), false},
		"space":               {secrets, "user-42", " " + good, false},
	} {
		if got := IsUserHash(test.secrets, test.identifier, test.hash); got != test.want {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
}
