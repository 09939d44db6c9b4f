package e2e

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"
	"github.com/google/uuid"
)

// visitorKey is the key that signs visitor tokens, from the file that only the Widget API reads.
func visitorKey(t testing.TB, p place) (kid string, key ed25519.PrivateKey) {
	t.Helper()
	data, err := os.ReadFile(p.KeysFile)
	check(t, err)
	var set struct {
		Keys []struct{ Kid, D string }
	}
	check(t, json.Unmarshal(data, &set))
	seed, err := base64.RawURLEncoding.DecodeString(set.Keys[0].D)
	check(t, err)
	return set.Keys[0].Kid, ed25519.NewKeyFromSeed(seed)
}

// claims are those of a valid token.
func claims(p place, chatUserID string) jwt.MapClaims {
	now := time.Now()
	return jwt.MapClaims{
		"sub": chatUserID, "appId": p.AppID, "companyId": p.CompanyID, "iss": "parley", "aud": "parley-visitor", "jti": uuid.NewString(),
		"iat": now.Unix(), "exp": now.Add(time.Hour).Unix(),
	}
}

// sign signs a token as the Widget API does.
func sign(t testing.TB, p place, c jwt.MapClaims) string {
	t.Helper()
	kid, key := visitorKey(t, p)
	return signWith(t, jwt.SigningMethodEdDSA, kid, key, c)
}

func signWith(t testing.TB, method jwt.SigningMethod, kid string, key any, c jwt.MapClaims) string {
	t.Helper()
	token := jwt.NewWithClaims(method, c)
	if kid != "" {
		token.Header["kid"] = kid
	}
	signed, err := token.SignedString(key)
	check(t, err)
	return signed
}

// invalidTokens are invalid tokens, each with one fault.
func invalidTokens(t *testing.T, p place, chatUserID string) map[string]string {
	kid, key := visitorKey(t, p)
	_, foreign, err := ed25519.GenerateKey(rand.Reader)
	check(t, err)
	public := key.Public().(ed25519.PublicKey)
	good := sign(t, p, claims(p, chatUserID))
	changed := func(name string, value any) jwt.MapClaims {
		c := claims(p, chatUserID)
		if value == nil {
			delete(c, name)
		} else {
			c[name] = value
		}
		return c
	}
	parts := strings.Split(good, ".")
	other, err := json.Marshal(changed("sub", uuid.NewString()))
	check(t, err)
	return map[string]string{
		"expired":         sign(t, p, changed("exp", time.Now().Add(-time.Minute).Unix())),
		"without exp":     sign(t, p, changed("exp", nil)),
		"wrong audience":  sign(t, p, changed("aud", "somebody else")),
		"no audience":     sign(t, p, changed("aud", nil)),
		"wrong issuer":    sign(t, p, changed("iss", "somebody else")),
		"foreign key":     signWith(t, jwt.SigningMethodEdDSA, kid, foreign, claims(p, chatUserID)),
		"unknown kid":     signWith(t, jwt.SigningMethodEdDSA, "unknown", foreign, claims(p, chatUserID)),
		"no kid":          signWith(t, jwt.SigningMethodEdDSA, "", foreign, claims(p, chatUserID)),
		"alg none":        signWith(t, jwt.SigningMethodNone, kid, jwt.UnsafeAllowNoneSignatureType, claims(p, chatUserID)),
		"HS256, key":      signWith(t, jwt.SigningMethodHS256, kid, []byte(public), claims(p, chatUserID)),
		"HS256, base64":   signWith(t, jwt.SigningMethodHS256, kid, []byte(base64.RawURLEncoding.EncodeToString(public)), claims(p, chatUserID)),
		"other's payload": parts[0] + "." + base64.RawURLEncoding.EncodeToString(other) + "." + parts[2],
		"no signature":    parts[0] + "." + parts[1] + ".",
		"cut":             good[:len(good)-4],
		"nonsense":        "nonsense",
		"empty":           "",
		"company's token": p.AccessToken,
	}
}

func TestTokenAttacks(t *testing.T) {
	p := commonStandalone(t).place
	a := p.widgetAPI(t)
	v := register(t, p, a)
	chatUserID := subjectOf(t, v.token)
	v.token = sign(t, p, claims(p, chatUserID))
	v.history(t) // the token that the invalid tokens are derived from is valid
	attempts := invalidTokens(t, p, chatUserID)
	for name, token := range attempts {
		t.Run(name, func(t *testing.T) {
			for _, r := range []refusal{
				{method: http.MethodGet, headers: []header{bearer(token)}},
				{method: http.MethodPost, body: `{"type":"TEXT","data":{"text":"x"}}`, headers: []header{bearer(token)}},
				{method: http.MethodPost, body: `{}`, headers: []header{bearer(token)}},
			} {
				r.api, r.path, r.status, r.code, r.message = a, "/message", 401, "UNAUTHORIZED", "Unauthorized"
				if token == "" {
					r.code = "TOKEN_MISSING"
				}
				r.check(t)
			}
			refusedSocket(t, p, token)
		})
	}
	t.Run("no header", func(t *testing.T) {
		wantError(t, 401, a.call(t, http.MethodGet, "/message", nil))
		wantError(t, 401, a.call(t, http.MethodGet, "/message", nil, header{"Authorization", v.token}))
		wantError(t, 401, a.call(t, http.MethodGet, "/message", nil, header{"Authorization", "Basic " + v.token}))
		refusedSocket(t, p, nil)
		refusedSocket(t, p, 42)
	})
}

// refusedSocket checks that the official client gets the documented connect_error and stops reconnecting.
func refusedSocket(t *testing.T, p place, token any) {
	t.Helper()
	s := openSocket(t, p.SocketURLs[0], token, "websocket")
	e := s.await(t, "connect_error")
	var data struct{ Code string }
	if err := json.Unmarshal(e.Data, &data); err != nil || e.Message != "Unauthorized" || data.Code != "UNAUTHORIZED" || e.Active {
		t.Errorf("connect_error: got %q %s (still active: %v), want Unauthorized with the code UNAUTHORIZED", e.Message, e.Data, e.Active)
	}
}

// subjectOf returns a token's sub.
func subjectOf(t testing.TB, token string) string {
	t.Helper()
	var c jwt.RegisteredClaims
	_, _, err := jwt.NewParser().ParseUnverified(token, &c)
	check(t, err)
	return c.Subject
}

// Messages that a client sends over the socket are ignored.
func TestSocketOnlyBrings(t *testing.T) {
	p := commonStandalone(t).place
	v := register(t, p, p.widgetAPI(t))
	before := v.history(t)
	mine := connected(t, p.SocketURLs[0], v.token, "websocket")
	other := connected(t, p.SocketURLs[0], register(t, p, v.api).token, "websocket")
	mine.emit(t, "message", map[string]any{"type": "TEXT", "data": map[string]string{"text": "over the socket"}})
	mine.emit(t, "join", p.AppID)
	written := v.write(t, "over HTTP")
	answer := mine.next(t)
	checkHistory(t, v, append(before, written, answer.record))
	select {
	case e := <-other.events:
		t.Errorf("another visitor's socket got %+v", e)
	default:
	}
}
