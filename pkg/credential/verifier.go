package credential

import (
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"errors"
	"runtime"
	"time"

	"github.com/golang-jwt/jwt/v5"
	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/parley-chat/parley/pkg/apperr"
)

const (
	// maxToken bounds the work for an unauthenticated caller. Our tokens have about 500 bytes.
	maxToken = 4 << 10

	// keptTokens is the number of cached verified tokens, at about 400 bytes each. An Ed25519 verification takes tens
	// of microseconds, a cache lookup one.
	keptTokens = 16 << 10

	// clockSkew is how far the signing service's clock may be ahead of ours.
	clockSkew = time.Minute
)

// Verifier checks visitor tokens. It is safe for concurrent use.
type Verifier struct {
	source   KeySource
	now      func() time.Time
	parser   *jwt.Parser
	verified *lru.Cache[[sha256.Size]byte, verifiedToken]
	// signatures has a place for each signature that is checked at the same time: at most half of the
	// processors, so that a flood of invalid tokens delays other tokens that are not cached, and no other
	// work of the process.
	signatures chan struct{}
}

// verifiedToken is a token with a valid signature. Whether it is still accepted depends on its key and the time.
type verifiedToken struct {
	claims VisitorClaims
	kid    string
	public ed25519.PublicKey
}

// NewVerifier returns a verifier that gets its keys from source. now is its clock; nil means time.Now.
func NewVerifier(source KeySource, now func() time.Time) *Verifier {
	if now == nil {
		now = time.Now
	}
	verified, err := lru.New[[sha256.Size]byte, verifiedToken](keptTokens)
	if err != nil {
		panic("credential: " + err.Error()) // only for a size that is not positive
	}
	return &Verifier{
		source:   source,
		now:      now,
		verified: verified,

		signatures: make(chan struct{}, max(1, runtime.GOMAXPROCS(0)/2)),

		parser: jwt.NewParser(
			jwt.WithValidMethods([]string{algorithm}), jwt.WithIssuer(issuer), jwt.WithAudience(audience),
			jwt.WithExpirationRequired(), jwt.WithTimeFunc(now), jwt.WithStrictDecoding(),
		),
	}
}

// Verify checks a token and returns its claims: it must be signed with EdDSA by a key of source, issued by us
// for visitors, and within its lifetime. Every invalid token yields the same apperr.Unauthenticated, with the
// fault as its cause; only the error for one with a valid signature says that it has expired. If the keys
// could not be fetched, or ctx ended first, the error is apperr.Unavailable, and the token may be valid.
func (v *Verifier) Verify(ctx context.Context, token string) (VisitorClaims, error) {
	if len(token) > maxToken {
		return VisitorClaims{}, unauthorized(errors.New("token is too long"))
	}
	sum := sha256.Sum256([]byte(token))
	if known, ok := v.verified.Get(sum); ok {
		if v.stillHolds(ctx, known) {
			return known.claims, nil
		}
		v.verified.Remove(sum)
	}
	fresh, err := v.parse(ctx, token)
	if err != nil {
		return VisitorClaims{}, unauthorized(err)
	}
	v.verified.Add(sum, fresh)
	return fresh.claims, nil
}

// stillHolds checks what can change about a verified token. If it returns false, the full verification finds the
// reason.
func (v *Verifier) stillHolds(ctx context.Context, t verifiedToken) bool {
	if !v.now().Before(t.claims.ExpiresAt) {
		return false
	}
	public, err := v.source.Key(ctx, t.kid)
	return err == nil && public.Equal(t.public)
}

func (v *Verifier) parse(ctx context.Context, token string) (verifiedToken, error) {
	var claims wireClaims
	var found verifiedToken
	defer func() {
		if found.public != nil {
			<-v.signatures
		}
	}()
	_, err := v.parser.ParseWithClaims(token, &claims, func(t *jwt.Token) (any, error) {
		if _, ok := t.Header["crit"]; ok {
			return nil, errors.New("critical header that we do not know") // RFC 7515, 4.1.11
		}
		kid, ok := t.Header["kid"].(string)
		if !ok || kid == "" {
			return nil, errors.New("no kid")
		}
		public, err := v.source.Key(ctx, kid)
		if err != nil {
			return nil, err
		}
		select {
		case v.signatures <- struct{}{}:
		case <-ctx.Done():
			return nil, apperr.ServiceUnavailable.Wrap(ctx.Err())
		}
		found.kid, found.public = kid, public
		return public, nil
	})
	if err != nil {
		return verifiedToken{}, err
	}
	if claims.IssuedAt != nil && claims.IssuedAt.After(v.now().Add(clockSkew)) {
		return verifiedToken{}, errors.New("token comes from the future")
	}
	found.claims = claims.visitor()
	return found, nil
}

// unauthorized hides the fault from the caller and keeps it for the log; it passes an apperr.Unavailable through.
func unauthorized(err error) error {
	if away, ok := errors.AsType[*apperr.Error](err); ok && away.Code == apperr.Unavailable {
		return away
	}
	if errors.Is(err, jwt.ErrTokenExpired) { // the parser checks the claims after the signature
		return apperr.TokenExpired().Wrap(err)
	}
	return apperr.Unauthorized.Wrap(err)
}
