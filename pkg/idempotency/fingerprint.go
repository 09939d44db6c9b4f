package idempotency

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/go-json-experiment/json/jsontext"
)

// Fingerprint returns the hash of a parsed request: requests with equal parts are the same request, however they were
// encoded. For an uploaded file the part is the hash of its content.
func Fingerprint(parts ...string) string {
	hash := sha256.New()
	var length [8]byte
	for _, part := range parts { // with lengths, so that different lists of parts never collide
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		hash.Write(length[:])
		hash.Write([]byte(part))
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// Canonical normalises valid JSON: white space, the order of members and character escapes. Numbers keep their text,
// because no type represents all of them.
func Canonical(raw []byte) string {
	v := jsontext.Value(raw).Clone()
	if err := v.Format(jsontext.ReorderRawObjects(true), jsontext.AllowDuplicateNames(true)); err != nil {
		return string(raw) // not JSON: compared byte for byte
	}
	return string(v)
}
