package peer

import (
	"crypto/rand"
	"encoding/base64"
	"strings"
)

const (
	idBytes     = 6  // distinguishes gateways
	secretBytes = 16 // unguessable: a session id suffices to read the session's messages

	separator = "."
)

// ID identifies a gateway process; each start gets a new one.
type ID string

// NewID returns a random ID.
func NewID() ID { return ID(random(idBytes)) }

// Prefix returns the prefix of this gateway's session ids.
func (id ID) Prefix() string { return string(id) + separator }

// SessionID returns a new random session id of this gateway.
func (id ID) SessionID() string { return id.Prefix() + random(secretBytes) }

// holderOf returns the gateway of a session id; ok is false if no gateway can have issued the id.
func holderOf(sid string) (id ID, ok bool) {
	name, _, found := strings.Cut(sid, separator)
	if !found || len(name) != base64.RawURLEncoding.EncodedLen(idBytes) || strings.Trim(name, alphabet) != "" {
		return "", false
	}
	return ID(name), true
}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

func random(n int) string {
	b := make([]byte, n)
	rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}
