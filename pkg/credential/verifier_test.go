package credential

import (
	"context"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/testkit/timetest"
)

var testTime = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func newKey(t testing.TB) key {
	t.Helper()
	public, private, err := ed25519.GenerateKey(nil)
	if err != nil {
		t.Fatal(err)
	}
	return key{id: thumbprint(public), public: public, private: private}
}

func encodeKeys(t testing.TB, keys ...key) []byte {
	t.Helper()
	var set jwkSet
	for _, k := range keys {
		j := publicJWK(k.public)
		j.D = base64.RawURLEncoding.EncodeToString(k.private.Seed())
		set.Keys = append(set.Keys, j)
	}
	data, err := json.Marshal(set)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func newKeySet(t testing.TB, keys ...key) *KeySet {
	t.Helper()
	set, err := ParseKeySet(encodeKeys(t, keys...))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

func testClaims() VisitorClaims {
	return VisitorClaims{
		ChatUserID: "0b8f0f4e-7c1b-4a43-9d38-111111111111",
		AppID:      "0b8f0f4e-7c1b-4a43-9d38-222222222222",
		CompanyID:  "0b8f0f4e-7c1b-4a43-9d38-333333333333",
		TokenID:    "0b8f0f4e-7c1b-4a43-9d38-444444444444",
		IssuedAt:   testTime,
		ExpiresAt:  testTime.Add(time.Hour),
	}
}

func mustSign(t testing.TB, set *KeySet, claims VisitorClaims) string {
	t.Helper()
	token, err := set.Sign(claims)
	if err != nil {
		t.Fatal(err)
	}
	return token
}

func TestSignedTokenVerifies(t *testing.T) {
	t.Parallel()
	set := newKeySet(t, newKey(t))
	v := NewVerifier(set, timetest.NewClock(testTime).Now)
	token := mustSign(t, set, testClaims())
	for _, way := range []string{"parsed", "remembered"} {
		got, err := v.Verify(t.Context(), token)
		if err != nil || got != testClaims() {
			t.Errorf("%s: got %+v, %v, want %+v", way, got, err, testClaims())
		}
	}
}

func TestTokenHasTheDocumentedClaims(t *testing.T) {
	t.Parallel()
	k := newKey(t)
	parts := strings.Split(mustSign(t, newKeySet(t, k), testClaims()), ".")
	for i, want := range []map[string]any{
		{"alg": "EdDSA", "typ": "JWT", "kid": k.id},
		{
			"iss": "parley", "aud": []any{"parley-visitor"}, "sub": testClaims().ChatUserID, "jti": testClaims().TokenID,
			"appId": testClaims().AppID, "companyId": testClaims().CompanyID,
			"iat": float64(testTime.Unix()), "exp": float64(testTime.Add(time.Hour).Unix()),
		},
	} {
		raw, _ := base64.RawURLEncoding.DecodeString(parts[i])
		var got map[string]any
		if err := json.Unmarshal(raw, &got); err != nil {
			t.Fatal(err)
		}
		gotText, _ := json.Marshal(got)
		wantText, _ := json.Marshal(want)
		if string(gotText) != string(wantText) {
			t.Errorf("part %d of a token: got %s, want %s", i, gotText, wantText)
		}
	}
}

// forge makes a token with any header and payload, signed by sign.
func forge(header, payload map[string]any, sign func(input string) []byte) string {
	h, _ := json.Marshal(header)
	p, _ := json.Marshal(payload)
	input := base64.RawURLEncoding.EncodeToString(h) + "." + base64.RawURLEncoding.EncodeToString(p)
	return input + "." + base64.RawURLEncoding.EncodeToString(sign(input))
}

func with(m map[string]any, name string, value any) map[string]any {
	c := map[string]any{}
	for k, v := range m {
		c[k] = v
	}
	if value == nil {
		delete(c, name)
	} else {
		c[name] = value
	}
	return c
}

func TestInvalidTokensAreUnauthorized(t *testing.T) {
	t.Parallel()
	ours, foreign := newKey(t), newKey(t)
	ecKey, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	header := map[string]any{"alg": "EdDSA", "typ": "JWT", "kid": ours.id}
	payload := map[string]any{
		"iss": issuer, "aud": audience, "sub": "u", "appId": "a", "companyId": "c", "jti": "j",
		"iat": testTime.Unix(), "exp": testTime.Add(time.Hour).Unix(),
	}
	eddsa := func(k key) func(string) []byte {
		return func(input string) []byte { return ed25519.Sign(k.private, []byte(input)) }
	}
	method := func(m jwt.SigningMethod, secret any) func(string) []byte {
		return func(input string) []byte {
			sig, err := m.Sign(input, secret)
			if err != nil {
				t.Fatal(err)
			}
			return sig
		}
	}
	nothing := func(string) []byte { return nil }
	ours64 := base64.RawURLEncoding.EncodeToString(ours.public)
	good := forge(header, payload, eddsa(ours))

	tokens := map[string]string{
		"expired":                   forge(header, with(payload, "exp", testTime.Add(-time.Second).Unix()), eddsa(ours)),
		"expired right now":         forge(header, with(payload, "exp", testTime.Unix()), eddsa(ours)),
		"expired, of a foreign key": forge(header, with(payload, "exp", testTime.Add(-time.Second).Unix()), eddsa(foreign)),
		"expired, no signature":     forge(header, with(payload, "exp", testTime.Add(-time.Second).Unix()), nothing),
		"not yet valid":             forge(header, with(payload, "nbf", testTime.Add(time.Minute).Unix()), eddsa(ours)),
		"from the future":           forge(header, with(payload, "iat", testTime.Add(2*time.Minute).Unix()), eddsa(ours)),
		"foreign key":               forge(header, payload, eddsa(foreign)),
		"foreign key and its kid":   forge(with(header, "kid", foreign.id), payload, eddsa(foreign)),
		"unknown kid":               forge(with(header, "kid", "nobody"), payload, eddsa(ours)),
		"no kid":                    forge(with(header, "kid", nil), payload, eddsa(ours)),
		"kid not a string":          forge(with(header, "kid", 7), payload, eddsa(ours)),
		"key in the header":         forge(with(header, "jwk", publicJWK(foreign.public)), payload, eddsa(foreign)),
		"alg none":                  forge(with(header, "alg", "none"), payload, nothing),
		"alg None":                  forge(with(header, "alg", "None"), payload, nothing),
		"alg none, signed":          forge(with(header, "alg", "none"), payload, eddsa(ours)),
		"no alg":                    forge(with(header, "alg", nil), payload, eddsa(ours)),
		"HS256 with public bytes":   forge(with(header, "alg", "HS256"), payload, method(jwt.SigningMethodHS256, []byte(ours.public))),
		"HS256 with public base64":  forge(with(header, "alg", "HS256"), payload, method(jwt.SigningMethodHS256, []byte(ours64))),
		"ES256":                     forge(with(header, "alg", "ES256"), payload, method(jwt.SigningMethodES256, ecKey)),
		"critical header":           forge(with(with(header, "crit", []string{"b64"}), "b64", true), payload, eddsa(ours)),
		"wrong audience":            forge(header, with(payload, "aud", "parley-agent"), eddsa(ours)),
		"no audience":               forge(header, with(payload, "aud", nil), eddsa(ours)),
		"wrong issuer":              forge(header, with(payload, "iss", "somebody"), eddsa(ours)),
		"no issuer":                 forge(header, with(payload, "iss", nil), eddsa(ours)),
		"no exp":                    forge(header, with(payload, "exp", nil), eddsa(ours)),
		"exp a string":              forge(header, with(payload, "exp", "never"), eddsa(ours)),
		"exp beyond any time":       forge(header, with(payload, "exp", 1e300), eddsa(ours)),
		"no subject":                forge(header, with(payload, "sub", nil), eddsa(ours)),
		"subject a number":          forge(header, with(payload, "sub", 7), eddsa(ours)),
		"no app":                    forge(header, with(payload, "appId", nil), eddsa(ours)),
		"no company":                forge(header, with(payload, "companyId", nil), eddsa(ours)),
		"no signature":              good[:strings.LastIndexByte(good, '.')+1],
		"two parts":                 good[:strings.LastIndexByte(good, '.')],
		"four parts":                good + ".e30",
		"padding":                   good + "=",
		"space before":              " " + good,
		"empty":                     "",
		"dots":                      "..",
		"a word":                    "token",
		"oversized":                 good + strings.Repeat("A", maxToken),
	}
	// A tampered payload under the signature of the true one.
	parts, other := strings.Split(good, "."), strings.Split(forge(header, with(payload, "sub", "v"), nothing), ".")
	tokens["tampered payload"] = parts[0] + "." + other[1] + "." + parts[2]
	for i := range parts[2] { // every character of the signature counts, the last one's spare bits too
		for _, c := range "AQgw" {
			if byte(c) != parts[2][i] {
				tokens["tampered signature "+string(c)+" at "+string(rune('0'+i%10))+parts[2][:i]] =
					parts[0] + "." + parts[1] + "." + parts[2][:i] + string(c) + parts[2][i+1:]
			}
		}
	}

	v := NewVerifier(newKeySet(t, ours), timetest.NewClock(testTime).Now)
	if _, err := v.Verify(t.Context(), good); err != nil {
		t.Fatalf("the token that the others are made from: got %v, want it to verify", err)
	}
	for name, token := range tokens {
		claims, err := v.Verify(t.Context(), token)
		e, ok := errors.AsType[*apperr.Error](err)
		if !ok || e.Code != apperr.Unauthenticated || e.Message != "Unauthorized" || e.Reason != "UNAUTHORIZED" {
			t.Errorf("%s: got error %v, want Unauthenticated with the message Unauthorized", name, err)
			continue
		}
		authentic := name == "expired" || name == "expired right now" || name == "exp beyond any time"
		if told := slices.Equal(e.Fields, []apperr.Field{{Name: "token", Message: "has expired"}}); told != authentic || !told && e.Fields != nil {
			t.Errorf("%s: got the details %v, want the expiry told only of an authentic token", name, e.Fields)
		}
		if claims != (VisitorClaims{}) {
			t.Errorf("%s: got claims %+v, want none", name, claims)
		}
	}
}

func TestCachedTokenExpires(t *testing.T) {
	t.Parallel()
	set, now := newKeySet(t, newKey(t)), timetest.NewClock(testTime)
	v, token := NewVerifier(set, now.Now), mustSign(t, set, testClaims())
	now.Set(testTime.Add(time.Hour - time.Millisecond))
	if _, err := v.Verify(t.Context(), token); err != nil {
		t.Fatalf("just before exp: got %v, want the token to verify", err)
	}
	now.Set(testTime.Add(time.Hour))
	if _, err := v.Verify(t.Context(), token); !apperr.Is(err, apperr.Unauthenticated) {
		t.Errorf("at exp: got %v, want Unauthenticated", err)
	}
	if v.verified.Len() != 0 {
		t.Errorf("cached tokens after exp: got %d, want 0", v.verified.Len())
	}
}

// switchable is a replaceable key source that counts its calls.
type switchable struct {
	KeySource
	err error
}

func (s *switchable) Key(ctx context.Context, kid string) (ed25519.PublicKey, error) {
	if s.err != nil {
		return nil, s.err
	}
	return s.KeySource.Key(ctx, kid)
}

func TestCachedTokenIsRejectedAfterItsKeyIsRemoved(t *testing.T) {
	t.Parallel()
	k := newKey(t)
	set := newKeySet(t, k)
	source := &switchable{KeySource: set}
	v, token := NewVerifier(source, timetest.NewClock(testTime).Now), mustSign(t, set, testClaims())
	if _, err := v.Verify(t.Context(), token); err != nil {
		t.Fatal(err)
	}
	source.KeySource = newKeySet(t, newKey(t))
	if _, err := v.Verify(t.Context(), token); !apperr.Is(err, apperr.Unauthenticated) {
		t.Errorf("after its key was removed: got %v, want Unauthenticated", err)
	}
	// The same kid with another key must not validate the token either.
	impostor := newKey(t)
	impostor.id = k.id
	source.KeySource = &fixedKey{id: k.id, public: impostor.public}
	if _, err := v.Verify(t.Context(), token); !apperr.Is(err, apperr.Unauthenticated) {
		t.Errorf("after another key took its kid: got %v, want Unauthenticated", err)
	}
}

type fixedKey struct {
	id     string
	public ed25519.PublicKey
}

func (f *fixedKey) Key(_ context.Context, kid string) (ed25519.PublicKey, error) {
	if kid != f.id {
		return nil, ErrUnknownKey
	}
	return f.public, nil
}

func TestUnavailableKeysAreNotUnauthenticated(t *testing.T) {
	t.Parallel()
	set := newKeySet(t, newKey(t))
	source := &switchable{KeySource: set, err: apperr.Unreachable("visitor keys", errors.New("connection refused"))}
	v := NewVerifier(source, timetest.NewClock(testTime).Now)
	if _, err := v.Verify(t.Context(), mustSign(t, set, testClaims())); !apperr.Is(err, apperr.Unavailable) {
		t.Errorf("keys unavailable: got %v, want Unavailable", err)
	}
	source.err = nil
	if _, err := v.Verify(t.Context(), mustSign(t, set, testClaims())); err != nil {
		t.Errorf("keys available again: got %v, want the token to verify", err)
	}
}

func TestVerifierCacheIsBounded(t *testing.T) {
	t.Parallel()
	v := NewVerifier(newKeySet(t, newKey(t)), nil)
	for i := range keptTokens + 10 {
		v.verified.Add([32]byte{byte(i), byte(i >> 8), byte(i >> 16)}, verifiedToken{})
	}
	if got := v.verified.Len(); got != keptTokens {
		t.Errorf("cached tokens: got %d, want %d", got, keptTokens)
	}
}

// TestSignaturesAtOnceAreBounded takes all places of signatures: other tokens wait, cached ones do not.
func TestSignaturesAtOnceAreBounded(t *testing.T) {
	t.Parallel()
	set := newKeySet(t, newKey(t))
	v := NewVerifier(set, timetest.NewClock(testTime).Now)
	cached, other := testClaims(), testClaims()
	other.TokenID = "other"
	cachedToken, otherToken := mustSign(t, set, cached), mustSign(t, set, other)
	if _, err := v.Verify(t.Context(), cachedToken); err != nil {
		t.Fatal(err)
	}
	for range cap(v.signatures) {
		v.signatures <- struct{}{}
	}
	if _, err := v.Verify(t.Context(), cachedToken); err != nil {
		t.Errorf("cached token: got %v, want it valid without a signature", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := v.Verify(ended, otherToken); !apperr.Is(err, apperr.Unavailable) {
		t.Errorf("got %v without a free place, want unavailable", err)
	}
	<-v.signatures
	for range 2 * cap(v.signatures) { // each gives its place back
		if _, err := v.Verify(t.Context(), otherToken[:len(otherToken)-4]+"AAAA"); !apperr.Is(err, apperr.Unauthenticated) {
			t.Errorf("got %v, want unauthenticated", err)
		}
	}
	if _, err := v.Verify(t.Context(), otherToken); err != nil {
		t.Errorf("got %v with a free place, want the token valid", err)
	}
}

func TestVerifyConcurrently(t *testing.T) {
	t.Parallel()
	set, now := newKeySet(t, newKey(t)), timetest.NewClock(testTime)
	v := NewVerifier(set, now.Now)
	var group sync.WaitGroup
	for g := range 8 {
		group.Go(func() {
			for i := range 50 {
				claims := testClaims()
				claims.ChatUserID = string(rune('a'+g%4)) + string(rune('a'+i%10))
				token, err := set.Sign(claims)
				if err != nil {
					t.Error(err)
					return
				}
				if got, err := v.Verify(t.Context(), token); err != nil || got != claims {
					t.Errorf("got %+v, %v, want %+v", got, err, claims)
				}
			}
		})
	}
	group.Wait()
}

func FuzzVerify(f *testing.F) {
	set := newKeySet(f, newKey(f))
	v := NewVerifier(set, timetest.NewClock(testTime).Now)
	good := mustSign(f, set, testClaims())
	f.Add(good)
	f.Add("")
	f.Add("..")
	f.Add("e30.e30.e30")
	f.Add(strings.Replace(good, ".", "..", 1))
	f.Fuzz(func(t *testing.T, token string) {
		claims, err := v.Verify(t.Context(), token)
		switch {
		case token == good && (err != nil || claims != testClaims()):
			t.Errorf("the good token: got %+v, %v, want %+v", claims, err, testClaims())
		case token != good && !apperr.Is(err, apperr.Unauthenticated):
			t.Errorf("%q: got %+v, %v, want Unauthenticated", token, claims, err)
		}
	})
}

func BenchmarkVerify(b *testing.B) {
	set := newKeySet(b, newKey(b))
	token := mustSign(b, set, testClaims())
	b.Run("remembered", func(b *testing.B) {
		v := NewVerifier(set, timetest.NewClock(testTime).Now)
		b.ReportAllocs()
		for b.Loop() {
			if _, err := v.Verify(b.Context(), token); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("fresh", func(b *testing.B) {
		v := NewVerifier(set, timetest.NewClock(testTime).Now)
		b.ReportAllocs()
		for b.Loop() {
			v.verified.Purge()
			if _, err := v.Verify(b.Context(), token); err != nil {
				b.Fatal(err)
			}
		}
	})
}
