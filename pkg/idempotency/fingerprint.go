package idempotency

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/go-json-experiment/json/jsontext"
)

// Fingerprint returns a hash of the parts of a parsed request. Requests with equal parts are equal, however
// they were encoded. The part of an uploaded file is the hash of its content.
func Fingerprint(parts ...string) string {
	hash := sha256.New()
	var length [8]byte
	for _, part := range parts { // length prefixes keep different lists from colliding
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		hash.Write(length[:])
		hash.Write([]byte(part))
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// Canonical normalises the white space, member order and character escapes of valid JSON. Numbers keep their
// text: no Go type represents all of them.
func Canonical(raw []byte) string {
	v := jsontext.Value(raw).Clone()
	if err := v.Format(jsontext.ReorderRawObjects(true), jsontext.AllowDuplicateNames(true)); err != nil {
		return string(raw) // not JSON: compared byte for byte
	}
	return string(v)
}
