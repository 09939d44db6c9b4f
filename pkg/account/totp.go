package account

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha1" // RFC 6238's default, which authenticator apps support
	"crypto/subtle"
	"encoding/base32"
	"encoding/binary"
	"fmt"
	"net/url"
	"time"
)

const (
	totpPeriod = 30 * time.Second
	totpBytes  = 20 // RFC 4226, 4: at least 128 bits, 160 recommended
	totpSkew   = 1  // steps before and after that are also accepted
)

// NewTOTPSecret returns a secret for an authenticator app, in base32.
func NewTOTPSecret() string {
	var raw [totpBytes]byte
	_, _ = rand.Read(raw[:]) // never fails (crypto/rand)
	return base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(raw[:])
}

// TOTPURI returns the otpauth URI that an authenticator app reads from a QR code.
func TOTPURI(issuer, email, secret string) string {
	u := url.URL{Scheme: "otpauth", Host: "totp", Path: "/" + issuer + ":" + email}
	u.RawQuery = url.Values{"secret": {secret}, "issuer": {issuer}}.Encode()
	return u.String()
}

// VerifyTOTP reports whether code is valid at now, and returns its time step. A step not after last is rejected, so
// that each code is accepted once (RFC 6238, 5.2).
func VerifyTOTP(secret, code string, now time.Time, last int64) (step int64, ok bool) {
	key, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(secret)
	if err != nil || secret == "" {
		return 0, false
	}
	current := now.Unix() / int64(totpPeriod/time.Second)
	for step := current - totpSkew; step <= current+totpSkew; step++ {
		if step > last && subtle.ConstantTimeCompare([]byte(totp(key, step)), []byte(code)) == 1 {
			return step, true
		}
	}
	return 0, false
}

// TOTP returns the code for a secret at a time.
func TOTP(secret string, at time.Time) string {
	key, err := base32.StdEncoding.WithPadding(base32.NoPadding).DecodeString(secret)
	if err != nil {
		return ""
	}
	return totp(key, at.Unix()/int64(totpPeriod/time.Second))
}

// totp returns the HOTP value (RFC 4226, 5.3) of a time step, with six digits.
func totp(key []byte, step int64) string {
	mac := hmac.New(sha1.New, key)
	_ = binary.Write(mac, binary.BigEndian, step) // hash.Hash never returns an error
	sum := mac.Sum(nil)
	offset := sum[len(sum)-1] & 0xf
	n := binary.BigEndian.Uint32(sum[offset:offset+4]) & 0x7fffffff
	return fmt.Sprintf("%06d", n%1_000_000)
}
