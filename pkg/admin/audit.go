package admin

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// An entry has at most 8 KiB: its ids and names have less than 1 KiB, and each side what follows. The audit log
// is kept for a long time in the database that all companies share, and a request of a few bytes changes a
// record of up to 1 MiB.
const (
	maxAuditValue = 2 << 10
	maxAuditSide  = 3<<10 + 512
)

// digest stands for a value that is too large for the audit log.
type digest struct {
	Bytes  int    `json:"bytes"`
	SHA256 string `json:"sha256"`
}

// side is the record of a change before or after it, by member.
type side map[string]json.RawMessage

// sideOf encodes a side; nil for none.
func sideOf(f fields) (side, error) {
	if f == nil {
		return nil, nil
	}
	all := side{}
	for name, value := range f {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, fmt.Errorf("encoding an audit entry: %w", err)
		}
		all[name] = text
	}
	return all, nil
}

// same reports whether nothing has changed.
func (s side) same(other side) bool {
	equal := func(a, b json.RawMessage) bool { return bytes.Equal(a, b) }
	return s != nil && other != nil && maps.EqualFunc(s, other, equal)
}

// bounded encodes the side in at most maxAuditSide bytes: large values, and then the largest of the others, are
// kept as digests. An entry has so few members that their digests always fit.
func (s side) bounded(f fields) (json.RawMessage, error) {
	if s == nil {
		return nil, nil
	}
	kept := maps.Clone(s)
	size := 0
	for _, value := range kept {
		size += len(value)
	}
	bySize := slices.SortedFunc(maps.Keys(s), func(a, b string) int {
		if d := len(s[b]) - len(s[a]); d != 0 {
			return d
		}
		return strings.Compare(a, b)
	})
	for _, name := range bySize {
		if len(s[name]) <= maxAuditValue && size <= maxAuditSide-maxAuditNames {
			break
		}
		short, err := json.Marshal(digestOf(f[name], s[name]))
		if err != nil {
			return nil, fmt.Errorf("encoding an audit entry: %w", err)
		}
		size += len(short) - len(s[name])
		kept[name] = short
	}
	return json.Marshal(kept)
}

// maxAuditNames bounds the names of a side's members, with their punctuation.
const maxAuditNames = 512

// digestOf returns the digest of a text or of JSON as it is stored, or else of the value's encoding.
func digestOf(value any, encoded []byte) digest {
	switch v := value.(type) {
	case string:
		encoded = []byte(v)
	case json.RawMessage:
		encoded = v
	}
	sum := sha256.Sum256(encoded)
	return digest{Bytes: len(encoded), SHA256: hex.EncodeToString(sum[:])}
}
