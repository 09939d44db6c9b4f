package credential

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
)

// KeyPropagation is how long a new key is to be in the file before it signs, so that every service has it by then: longer than
// a gateway, or a cache before the Widget API, goes by the set that it has.
const KeyPropagation = 5 * time.Minute

// KeyState is what a key of a file is for.
type KeyState string

const (
	KeyNew     KeyState = "new"     // verifies, and is to sign later
	KeySigning KeyState = "signing" // the first of the file
	KeyOld     KeyState = "old"     // has signed; verifies until the last token that it signed has expired
)

// KeyInfo is what may be seen of a key.
type KeyInfo struct {
	ID           string
	State        KeyState
	CreatedAt    time.Time // zero: not noted
	SupersededAt time.Time // when another one took over the signing; zero: not noted, or not yet
}

// KeyFile is a JWK Set file as an operator changes it, in three steps that log no visitor out: Add a key, which verifies from
// then on; Promote it when everyone has it, and it signs; Retire the old one when the last of its tokens has expired. Each
// writes the whole file or nothing, with mode 0600. Members that we do not know stay.
type KeyFile struct {
	path string
	set  map[string]json.RawMessage
	keys []fileKey
}

// fileKey is one element of the set's keys, ours or another.
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
	f.judge()
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
	_ = json.Unmarshal(raw[memberCreated], &k.info.CreatedAt) // what is not noted, or not a time, stays zero
	_ = json.Unmarshal(raw[memberSuperseded], &k.info.SupersededAt)
	return k
}

// judge says what each key is for. A key after the first without a note was there before notes were taken: it may have
// signed.
func (f *KeyFile) judge() {
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

// Add makes a new key, appends it and returns it.
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

// Promote makes the key sign; an empty id means the new one, if there is just one. Unless it is urgent, the key must have been
// in the file for [KeyPropagation]: a replica that does not have it yet would refuse its tokens. Errors: NotFound for an unknown key,
// Conflict for one that signs already or was added too recently.
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

// Retire removes the old keys whose last token has expired: those that were superseded a token's lifetime ago. It returns what
// it has removed, and writes nothing where that is nothing.
func (f *KeyFile) Retire(now time.Time, tokenTTL time.Duration) ([]KeyInfo, error) {
	return f.remove(func(k KeyInfo) bool {
		return k.State == KeyOld && !k.SupersededAt.IsZero() && !now.Before(k.SupersededAt.Add(tokenTTL+clockSkew))
	})
}

// Remove removes a key whatever is still signed with it: its visitors have to register again. It returns NotFound for an
// unknown key, and Conflict for the one that signs.
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

// write puts the keys into the file, and reads them back to see that the services will.
func (f *KeyFile) write() error {
	raw := make([]map[string]json.RawMessage, len(f.keys))
	for i, k := range f.keys {
		raw[i] = k.raw
		f.keys[i] = newFileKey(k.raw)
	}
	f.judge()
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
	return writePrivate(f.path, append(data, '\n'))
}

// writePrivate puts data under path with mode 0600, whole or not at all: it is on disk before it gets its name. The draft's name
// is always the same, so that what a crash leaves of a secret is overwritten by the next writing.
func writePrivate(path string, data []byte) error {
	draft := filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+".draft")
	err := writeSynced(draft, data)
	if err == nil {
		err = os.Rename(draft, path)
	}
	if err == nil {
		err = syncDir(filepath.Dir(path))
	}
	if err != nil {
		_ = os.Remove(draft)
		return fmt.Errorf("writing visitor keys: %w", err)
	}
	return nil
}

func writeSynced(path string, data []byte) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_WRONLY|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	if err = file.Chmod(0o600); err == nil { // a draft that a crash has left may be of another mode
		_, err = file.Write(data)
	}
	if err == nil {
		err = file.Sync()
	}
	return errors.Join(err, file.Close())
}

// syncDir makes a rename last.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	defer dir.Close()
	return dir.Sync()
}
