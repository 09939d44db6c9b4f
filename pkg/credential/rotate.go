package credential

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/atomicfile"
)

// KeyPropagation is how long a new key must be in the file before it signs, so that every service has fetched it:
// longer than a gateway, or a cache in front of the Widget API, uses a fetched set.
const KeyPropagation = 5 * time.Minute

// KeyState is the role of a key in a file.
type KeyState string

const (
	KeyNew     KeyState = "new"     // verifies, and is to sign later
	KeySigning KeyState = "signing" // the first of the file
	KeyOld     KeyState = "old"     // has signed; verifies until the last token it signed has expired
)

// KeyInfo is the public information about a key.
type KeyInfo struct {
	ID           string
	State        KeyState
	CreatedAt    time.Time // zero: unknown
	SupersededAt time.Time // when another key was promoted; zero: unknown, or still signing
}

// KeyFile edits a JWK Set file in three steps that log no visitor out: Add a key, which from then on verifies; Promote
// it, when every service has it, and it signs; Retire the old key when the last of its tokens has expired. Each step
// writes the whole file atomically, with mode 0600, and keeps unknown members.
type KeyFile struct {
	path string
	set  map[string]json.RawMessage
	keys []fileKey
}

// fileKey is one element of the set's keys, including keys of other types.
type fileKey struct {
	raw  map[string]json.RawMessage
	ours bool
	info KeyInfo
}

const (
	memberCreated    = "createdAt"
	memberSuperseded = "supersededAt"
)

// OpenKeyFile reads the file. Its errors contain nothing of its content.
func OpenKeyFile(path string) (*KeyFile, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading visitor keys: %w", err)
	}
	if _, err := loadKeys(data); err != nil {
		return nil, fmt.Errorf("reading visitor keys from %s: %w", path, err)
	}
	f := &KeyFile{path: path}
	var raw []map[string]json.RawMessage
	if json.Unmarshal(data, &f.set) != nil || json.Unmarshal(f.set["keys"], &raw) != nil {
		return nil, fmt.Errorf("reading visitor keys from %s: not a JWK Set in JSON", path)
	}
	for _, r := range raw {
		f.keys = append(f.keys, newFileKey(r))
	}
	f.classify()
	return f, nil
}

func newFileKey(raw map[string]json.RawMessage) fileKey {
	k := fileKey{raw: raw}
	whole, _ := json.Marshal(raw) // it was decoded from JSON
	var j jwk
	if json.Unmarshal(whole, &j) != nil || !j.isEd25519() {
		return k
	}
	if parsed, err := j.key(); err == nil {
		k.ours, k.info.ID = true, parsed.id
	}
	_ = json.Unmarshal(raw[memberCreated], &k.info.CreatedAt) // a missing or malformed time stays zero
	_ = json.Unmarshal(raw[memberSuperseded], &k.info.SupersededAt)
	return k
}

// classify sets the state of each key. Keys after the first without a creation time predate tracking: they may have
// signed.
func (f *KeyFile) classify() {
	first := true
	for i := range f.keys {
		k := &f.keys[i]
		switch {
		case !k.ours:
			continue
		case first:
			k.info.State, first = KeySigning, false
		case k.info.SupersededAt.IsZero() && !k.info.CreatedAt.IsZero():
			k.info.State = KeyNew
		default:
			k.info.State = KeyOld
		}
	}
}

// Keys returns the keys in the order of the file, without their secrets.
func (f *KeyFile) Keys() []KeyInfo {
	var infos []KeyInfo
	for _, k := range f.keys {
		if k.ours {
			infos = append(infos, k.info)
		}
	}
	return infos
}

// Add generates a key, appends it and returns it.
func (f *KeyFile) Add(now time.Time) (KeyInfo, error) {
	j, err := generateJWK()
	if err != nil {
		return KeyInfo{}, err
	}
	whole, _ := json.Marshal(j) // strings only
	raw := map[string]json.RawMessage{}
	_ = json.Unmarshal(whole, &raw)
	note(raw, memberCreated, now)
	added := newFileKey(raw)
	f.keys = append(f.keys, added)
	if err := f.write(); err != nil {
		return KeyInfo{}, err
	}
	return f.keys[len(f.keys)-1].info, nil
}

// Promote makes the key the signing key; an empty id selects the only new one. Unless urgent, the key must have been in
// the file for [KeyPropagation]: a replica that does not have it yet would reject its tokens. Errors: NotFound for an
// unknown key, Conflict for one that already signs or was added too recently.
func (f *KeyFile) Promote(id string, now time.Time, urgent bool) (KeyInfo, error) {
	at, err := f.find(id)
	if err != nil {
		return KeyInfo{}, err
	}
	k := f.keys[at]
	ready := k.info.CreatedAt.Add(KeyPropagation)
	switch {
	case k.info.State == KeySigning:
		return KeyInfo{}, apperr.New(apperr.Conflict, "KEY_SIGNS", "Key "+k.info.ID+" signs already")
	case k.raw["d"] == nil:
		return KeyInfo{}, apperr.New(apperr.Conflict, "KEY_PUBLIC", "Key "+k.info.ID+" has no private part")
	case !urgent && now.Before(ready):
		return KeyInfo{}, apperr.New(apperr.Conflict, "KEY_TOO_NEW",
			"Key "+k.info.ID+" is not known everywhere yet; promote it from "+ready.UTC().Format(time.RFC3339)+" on")
	}
	f.keys = slices.Delete(f.keys, at, at+1)
	for i := range f.keys {
		if f.keys[i].info.State == KeySigning {
			note(f.keys[i].raw, memberSuperseded, now)
		}
	}
	delete(k.raw, memberSuperseded)
	f.keys = slices.Insert(f.keys, 0, k)
	if err := f.write(); err != nil {
		return KeyInfo{}, err
	}
	return f.keys[0].info, nil
}

// Retire removes the old keys whose last token has expired: those superseded at least a token's lifetime ago. It
// returns the removed keys, and does not write the file if there are none.
func (f *KeyFile) Retire(now time.Time, tokenTTL time.Duration) ([]KeyInfo, error) {
	return f.remove(func(k KeyInfo) bool {
		return k.State == KeyOld && !k.SupersededAt.IsZero() && !now.Before(k.SupersededAt.Add(tokenTTL+clockSkew))
	})
}

// Remove removes a key even if valid tokens are signed with it: their visitors have to register again. It returns
// NotFound for an unknown key, and Conflict for the signing key.
func (f *KeyFile) Remove(id string) error {
	at, err := f.find(id)
	if err != nil {
		return err
	}
	if f.keys[at].info.State == KeySigning {
		return apperr.New(apperr.Conflict, "KEY_SIGNS", "Key "+id+" signs; promote another one first")
	}
	_, err = f.remove(func(k KeyInfo) bool { return k.ID == f.keys[at].info.ID })
	return err
}

func (f *KeyFile) remove(wanted func(KeyInfo) bool) (removed []KeyInfo, err error) {
	var kept []fileKey
	for _, k := range f.keys {
		if k.ours && wanted(k.info) {
			removed = append(removed, k.info)
			continue
		}
		kept = append(kept, k)
	}
	if len(removed) == 0 {
		return nil, nil
	}
	f.keys = kept
	return removed, f.write()
}

func (f *KeyFile) find(id string) (at int, err error) {
	found := -1
	for i, k := range f.keys {
		switch {
		case !k.ours, id != "" && k.info.ID != id, id == "" && k.info.State != KeyNew:
			continue
		case found >= 0:
			return 0, apperr.New(apperr.Conflict, "KEY_AMBIGUOUS", "There are several new keys; name one")
		}
		found = i
	}
	if found >= 0 {
		return found, nil
	}
	if id == "" {
		return 0, apperr.New(apperr.NotFound, "KEY_NOT_FOUND", "There is no new key; add one first")
	}
	return 0, apperr.New(apperr.NotFound, "KEY_NOT_FOUND", "Key not found")
}

func note(raw map[string]json.RawMessage, member string, at time.Time) {
	raw[member], _ = json.Marshal(at.UTC().Truncate(time.Second)) // a time of this era: always encodes
}

// write writes the keys to the file after checking that the services can parse them.
func (f *KeyFile) write() error {
	raw := make([]map[string]json.RawMessage, len(f.keys))
	for i, k := range f.keys {
		raw[i] = k.raw
		f.keys[i] = newFileKey(k.raw)
	}
	f.classify()
	var err error
	if f.set["keys"], err = json.Marshal(raw); err != nil {
		return errors.New("encoding visitor keys failed") // the cause could repeat a piece of a key
	}
	data, err := json.MarshalIndent(f.set, "", "  ")
	if err != nil {
		return errors.New("encoding visitor keys failed")
	}
	if _, err := loadKeys(data); err != nil {
		return fmt.Errorf("the changed visitor keys would not be read: %w", err)
	}
	return atomicfile.Write(f.path, append(data, '\n'))
}
