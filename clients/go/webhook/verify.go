// Package webhook verifies and decodes Parley's webhook requests (Standard Webhooks). The payload types are generated
// from the webhooks' OpenAPI document.
package webhook

import (
	"crypto/ed25519"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Errors of [Verifier.Verify].
var (
	ErrHeaders   = errors.New("webhook: webhook-id, webhook-timestamp or webhook-signature is missing or malformed")
	ErrTimestamp = errors.New("webhook: webhook-timestamp is too old or too new")
	ErrSignature = errors.New("webhook: no signature matches")
)

// tolerance is the accepted deviation of webhook-timestamp.
const tolerance = 5 * time.Minute

// Event is the event of a webhook. Data is decoded by Type: MessageReceived, ChatOpened and the other types of this
// package.
type Event struct {
	ID        string          `json:"-"` // webhook-id: the same for retries and replays
	Type      string          `json:"type"`
	Timestamp time.Time       `json:"timestamp"`
	Data      json.RawMessage `json:"data"`
}

// Verifier verifies the requests to an endpoint. It is safe for concurrent use.
type Verifier struct {
	keys []key
	now  func() time.Time
}

type key struct {
	scheme string
	verify func(content, signature []byte) bool
}

// NewVerifier takes the endpoint's secret (whsec_) or public key (whpk_), or several of them during a rotation.
func NewVerifier(keys ...string) (*Verifier, error) {
	v := &Verifier{now: time.Now}
	for _, text := range keys {
		k, err := parseKey(text)
		if err != nil {
			return nil, err
		}
		v.keys = append(v.keys, k)
	}
	if len(v.keys) == 0 {
		return nil, errors.New("webhook: no key")
	}
	return v, nil
}

func parseKey(text string) (key, error) {
	if encoded, ok := strings.CutPrefix(text, "whsec_"); ok {
		if secret, err := base64.StdEncoding.DecodeString(encoded); err == nil && len(secret) > 0 {
			return key{"v1", func(content, signature []byte) bool {
				mac := hmac.New(sha256.New, secret)
				mac.Write(content)
				return hmac.Equal(mac.Sum(nil), signature)
			}}, nil
		}
	}
	if encoded, ok := strings.CutPrefix(text, "whpk_"); ok {
		if public, err := base64.StdEncoding.DecodeString(encoded); err == nil && len(public) == ed25519.PublicKeySize {
			return key{"v1a", func(content, signature []byte) bool { return ed25519.Verify(public, content, signature) }}, nil
		}
	}
	return key{}, errors.New("webhook: a key must be whsec_ or whpk_ followed by base64")
}

// Verify verifies the signature of a request with this body, exactly as received, and returns its event.
func (v *Verifier) Verify(body []byte, header http.Header) (Event, error) {
	id, timestamp := header.Get("webhook-id"), header.Get("webhook-timestamp")
	seconds, err := strconv.ParseInt(timestamp, 10, 64)
	if id == "" || err != nil || header.Get("webhook-signature") == "" {
		return Event{}, ErrHeaders
	}
	if off := v.now().Sub(time.Unix(seconds, 0)).Abs(); off > tolerance {
		return Event{}, ErrTimestamp
	}
	content := append([]byte(id+"."+timestamp+"."), body...)
	if !v.signed(content, header.Get("webhook-signature")) {
		return Event{}, ErrSignature
	}
	event := Event{ID: id}
	if err := json.Unmarshal(body, &event); err != nil {
		return Event{}, fmt.Errorf("webhook: %w", err)
	}
	return event, nil
}

func (v *Verifier) signed(content []byte, signatures string) bool {
	for entry := range strings.FieldsSeq(signatures) {
		scheme, encoded, _ := strings.Cut(entry, ",")
		signature, err := base64.StdEncoding.DecodeString(encoded)
		if err != nil {
			continue
		}
		for _, k := range v.keys {
			if k.scheme == scheme && k.verify(content, signature) {
				return true
			}
		}
	}
	return false
}
