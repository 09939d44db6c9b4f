package idempotency

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"

	"github.com/go-json-experiment/json/jsontext"
)

// Fingerprint of a request as it was understood: two with the same parts are the same request, however they were written. For
// an uploaded file the part is the hash of its content.
func Fingerprint(parts ...string) string {
	hash := sha256.New()
	var length [8]byte
	for _, part := range parts { // with their lengths, so that no two lists of parts read the same
		binary.BigEndian.PutUint64(length[:], uint64(len(part)))
		hash.Write(length[:])
		hash.Write([]byte(part))
	}
	return hex.EncodeToString(hash.Sum(nil))
}

// Canonical returns valid JSON without what does not matter: white space, the order of members, how characters are escaped.
// Numbers stay as they were written, because no type holds all of them.
func Canonical(raw []byte) string {
	v := jsontext.Value(raw).Clone()
	if err := v.Format(jsontext.ReorderRawObjects(true), jsontext.AllowDuplicateNames(true)); err != nil {
		return string(raw) // no JSON after all; then its bytes must be the same
	}
	return string(v)
}
