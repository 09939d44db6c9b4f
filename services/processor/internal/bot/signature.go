package bot

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"strconv"
	"strings"
	"time"
)

const secretPrefix = "whsec_"

// Secrets are 24 to 64 bytes long (Standard Webhooks, "Signature scheme").
const (
	minSecret = 24
	maxSecret = 64
)

// signer signs webhooks according to Standard Webhooks: HMAC-SHA256 over id.timestamp.body.
type signer struct{ secret []byte }

func newSigner(secret string) (signer, error) {
	encoded, ok := strings.CutPrefix(secret, secretPrefix)
	key, err := base64.StdEncoding.DecodeString(encoded)
	if !ok || err != nil || len(key) < minSecret || len(key) > maxSecret {
		return signer{}, errors.New(secretPrefix + " and 24 to 64 bytes in base64")
	}
	return signer{secret: key}, nil
}

// sign returns the values of webhook-timestamp and webhook-signature.
func (s signer) sign(id string, at time.Time, body []byte) (timestamp, signature string) {
	timestamp = strconv.FormatInt(at.Unix(), 10)
	mac := hmac.New(sha256.New, s.secret)
	mac.Write([]byte(id + "." + timestamp + "."))
	mac.Write(body)
	return timestamp, "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}
