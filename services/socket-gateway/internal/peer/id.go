package peer

import (
	"crypto/rand"
	"encoding/base64"
	"strings"
)

const (
	idBytes     = 6  // distinguishes gateways
	secretBytes = 16 // unguessable: a session's id is enough to read its messages

	separator = "."
)

// ID is the name of a gateway, made anew whenever one starts.
type ID string

// NewID returns an ID that no other gateway has.
func NewID() ID { return ID(random(idBytes)) }

// Prefix is what the ids of this gateway's sessions begin with.
func (id ID) Prefix() string { return string(id) + separator }

// SessionID makes the id of a session that this gateway holds.
func (id ID) SessionID() string { return id.Prefix() + random(secretBytes) }

// holderOf returns the gateway that a session's id names; ok is false for an id that none of ours has made.
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
