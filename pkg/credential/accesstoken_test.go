package credential

import (
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/chat"
)

func newToken() (string, chat.AccessToken) {
	return NewAccessToken("company", "name", time.Now(), time.Time{})
}

func TestAccessTokenHashIsTheStoredHash(t *testing.T) {
	t.Parallel()
	secret, token := newToken()
	hash, prefix := token.Hash, token.Prefix
	sum := sha256.Sum256([]byte(secret))
	if want := hex.EncodeToString(sum[:]); hash != want {
		t.Errorf("hash of a new token: got %s, want %s", hash, want)
	}
	if got, ok := HashAccessToken(secret); !ok || got != hash {
		t.Errorf("HashAccessToken(new token): got %s, %v, want %s, true", got, ok, hash)
	}
	if !strings.HasPrefix(secret, prefix) || len(prefix) != 10 {
		t.Errorf("prefix: got %q, want the first ten characters of the secret", prefix)
	}
	if other, _ := newToken(); other == secret {
		t.Error("two new tokens: got the same, want different ones")
	}
}

func TestMalformedAccessTokenHasNoHash(t *testing.T) {
	t.Parallel()
	secret, _ := newToken()
	for name, token := range map[string]string{
		"empty":         "",
		"prefix only":   "pat_",
		"no prefix":     strings.TrimPrefix(secret, "pat_"),
		"other prefix":  "pet_" + secret[4:],
		"one too short": secret[:len(secret)-1],
		"one too long":  secret + "A",
		"padding":       secret[:len(secret)-1] + "=",
		"space":         secret[:len(secret)-1] + " ",
		"plain base64":  secret[:len(secret)-1] + "+",
		"control":       secret[:len(secret)-1] + "\x00",
		"not ASCII":     secret[:len(secret)-2] + "é",
	} {
		if hash, ok := HashAccessToken(token); ok || hash != "" {
			t.Errorf("%s: got %q, %v, want no hash", name, hash, ok)
		}
	}
}
