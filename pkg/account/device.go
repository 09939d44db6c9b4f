package account

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"strconv"
	"strings"
	"time"
)

// DeviceTTL is how long a device counts as known after a sign-in.
const DeviceTTL = 180 * 24 * time.Hour

// NewDevice returns the value of the cookie by which a device of the user is recognised: a random id, the end
// of its validity, the user's id and their signature with the [User.DeviceKey]. Nothing is stored for a device;
// a new key ends all of the user's devices.
func (u User) NewDevice(now time.Time) string {
	signed := NewSecret() + "." + strconv.FormatInt(now.Add(DeviceTTL).Unix(), 10) + "." + u.ID
	return signed + "." + signDevice(u.DeviceKey, signed)
}

// DeviceOwner returns the user's id in a device's cookie, unverified ([User.VerifyDevice] verifies it); "" if the cookie
// is malformed.
func DeviceOwner(cookie string) string {
	const ofID = 2
	if parts := strings.Split(cookie, "."); len(parts) == ofID+2 {
		return parts[ofID]
	}
	return ""
}

// VerifyDevice returns the id of a device that the user has signed in on; false if the cookie is not one of
// the user's, has expired, or was revoked.
func (u User) VerifyDevice(cookie string, now time.Time) (id string, ok bool) {
	end := strings.LastIndexByte(cookie, '.')
	if end < 0 || u.DeviceKey == "" {
		return "", false
	}
	signed, signature := cookie[:end], cookie[end+1:]
	if !hmac.Equal([]byte(signature), []byte(signDevice(u.DeviceKey, signed))) {
		return "", false
	}
	id, rest, _ := strings.Cut(signed, ".")
	expiry, _, _ := strings.Cut(rest, ".")
	until, err := strconv.ParseInt(expiry, 10, 64)
	return id, err == nil && now.Before(time.Unix(until, 0))
}

func signDevice(key, signed string) string {
	mac := hmac.New(sha256.New, []byte(key))
	mac.Write([]byte("device|" + signed)) // hash.Hash never returns an error
	return base64.RawURLEncoding.EncodeToString(mac.Sum(nil))
}
