package secret

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/tink-crypto/tink-go/v2/aead"
	"github.com/tink-crypto/tink-go/v2/insecurecleartextkeyset"
	"github.com/tink-crypto/tink-go/v2/keyset"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/atomicfile"
)

// Propagation is how long a changed file takes to reach every service: Kubernetes updates a mounted secret
// within about two minutes, and the services read their file every two seconds.
const Propagation = 5 * time.Minute

// KeyState is the role of a key in a file.
type KeyState string

const (
	KeyNew     KeyState = "new"     // decrypts, and is to encrypt later
	KeyPrimary KeyState = "primary" // encrypts
	KeyOld     KeyState = "old"     // has encrypted; decrypts until no record needs it
)

// KeyInfo is the public information about a key.
type KeyInfo struct {
	ID           KeyID
	State        KeyState
	CreatedAt    time.Time
	SupersededAt time.Time // when another key was promoted; zero: not yet
}

// KeyFile edits a key file in three steps, during which every service can decrypt every secret: Add a key,
// which from then on decrypts; Promote it, when every service has it, and it encrypts; when all records are
// encrypted with it, Retire the old keys. Each step writes the whole file atomically, with mode 0600.
type KeyFile struct {
	path   string
	handle *keyset.Handle
	times  map[KeyID]keyTimes
}

// fileContent is the JSON of a key file: a keyset of Tink, and the times of its keys, which Tink's format
// does not have.
type fileContent struct {
	Keys   map[KeyID]keyTimes `json:"keys"`
	Keyset json.RawMessage    `json:"keyset"`
}

type keyTimes struct {
	CreatedAt    time.Time `json:"createdAt"`
	SupersededAt time.Time `json:"supersededAt,omitzero"`
}

// errNotKeyFile replaces the errors of Tink, which could repeat a piece of a key.
var errNotKeyFile = errors.New("not a key file; parleyctl secrets generate creates one")

// Generate returns the content of a file with one new key.
func Generate(now time.Time) ([]byte, error) {
	f := &KeyFile{times: map[KeyID]keyTimes{}}
	if err := f.edit(keyset.NewManager(), func(m *keyset.Manager) error {
		id, err := m.Add(aead.AES256GCMKeyTemplate())
		if err != nil {
			return err
		}
		f.times[KeyID(id)] = keyTimes{CreatedAt: seconds(now)}
		return m.SetPrimary(id)
	}); err != nil {
		return nil, err
	}
	return f.encode()
}

// Open reads a key file. Its errors contain nothing of its content.
func Open(path string) (*KeyFile, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading the keys of secrets: %w", err)
	}
	f, err := parseFile(data)
	if err != nil {
		return nil, fmt.Errorf("reading the keys of secrets from %s: %w", path, err)
	}
	f.path = path
	return f, nil
}

func parseFile(data []byte) (*KeyFile, error) {
	var content fileContent
	if json.Unmarshal(data, &content) != nil {
		return nil, errNotKeyFile
	}
	handle, err := insecurecleartextkeyset.Read(keyset.NewJSONReader(bytes.NewReader(content.Keyset)))
	if err != nil {
		return nil, errNotKeyFile
	}
	if content.Keys == nil {
		content.Keys = map[KeyID]keyTimes{}
	}
	return &KeyFile{handle: handle, times: content.Keys}, nil
}

// Keys returns the keys, oldest first, without their secrets.
func (f *KeyFile) Keys() []KeyInfo {
	info := f.handle.KeysetInfo()
	keys := make([]KeyInfo, len(info.GetKeyInfo()))
	for i, k := range info.GetKeyInfo() {
		id := KeyID(k.GetKeyId())
		times := f.times[id]
		keys[i] = KeyInfo{ID: id, State: KeyNew, CreatedAt: times.CreatedAt, SupersededAt: times.SupersededAt}
		switch {
		case k.GetKeyId() == info.GetPrimaryKeyId():
			keys[i].State = KeyPrimary
		case !times.SupersededAt.IsZero():
			keys[i].State = KeyOld
		}
	}
	return keys
}

// Add generates a key, which decrypts, and returns it. Conflict if there is a new key already.
func (f *KeyFile) Add(now time.Time) (KeyInfo, error) {
	if fresh, found := f.first(KeyNew); found {
		return KeyInfo{}, apperr.New(apperr.Conflict, "KEY_NEW", "There is a new key already: "+fresh.ID.String())
	}
	err := f.edit(keyset.NewManagerFromHandle(f.handle), func(m *keyset.Manager) error {
		id, err := m.Add(aead.AES256GCMKeyTemplate())
		f.times[KeyID(id)] = keyTimes{CreatedAt: seconds(now)}
		return err
	})
	if err != nil {
		return KeyInfo{}, err
	}
	fresh, _ := f.first(KeyNew)
	return fresh, f.write()
}

// Promote makes the new key the primary one. It must have been in the file for [Propagation]: a service that
// does not have it yet could not decrypt. Errors: NotFound without a new key, Conflict for one that was added
// too recently.
func (f *KeyFile) Promote(now time.Time) error {
	fresh, found := f.first(KeyNew)
	if !found {
		return apperr.New(apperr.NotFound, "KEY_NOT_FOUND", "There is no new key; add one first")
	}
	if ready := fresh.CreatedAt.Add(Propagation); now.Before(ready) {
		return apperr.New(apperr.Conflict, "KEY_TOO_NEW",
			"Key "+fresh.ID.String()+" is not known everywhere yet; promote it from "+ready.UTC().Format(time.RFC3339)+" on")
	}
	last, _ := f.first(KeyPrimary)
	err := f.edit(
		keyset.NewManagerFromHandle(f.handle),
		func(m *keyset.Manager) error { return m.SetPrimary(uint32(fresh.ID)) },
	)
	if err != nil {
		return err
	}
	f.times[last.ID] = keyTimes{CreatedAt: last.CreatedAt, SupersededAt: seconds(now)}
	return f.write()
}

// Retire removes the old keys that no secret uses and that no service encrypts with any more: those
// superseded at least [Propagation] ago. It returns the removed keys, and does not write the file if there
// are none. used counts the secrets of each key.
func (f *KeyFile) Retire(now time.Time, used map[KeyID]int) (retired []KeyInfo, err error) {
	for _, k := range f.Keys() {
		if k.State != KeyOld || used[k.ID] > 0 || now.Before(k.SupersededAt.Add(Propagation)) {
			continue
		}
		retired = append(retired, k)
	}
	if len(retired) == 0 {
		return nil, nil
	}
	err = f.edit(keyset.NewManagerFromHandle(f.handle), func(m *keyset.Manager) error {
		for _, k := range retired {
			if err := m.Delete(uint32(k.ID)); err != nil {
				return err
			}
			delete(f.times, k.ID)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return retired, f.write()
}

// first returns the first key in a state.
func (f *KeyFile) first(state KeyState) (k KeyInfo, found bool) {
	for _, k := range f.Keys() {
		if k.State == state {
			return k, true
		}
	}
	return k, false
}

// edit changes the keyset.
func (f *KeyFile) edit(m *keyset.Manager, change func(*keyset.Manager) error) error {
	err := change(m)
	if err == nil {
		f.handle, err = m.Handle()
	}
	if err != nil {
		return fmt.Errorf("changing the keys of secrets: %w", err)
	}
	return nil
}

func (f *KeyFile) encode() ([]byte, error) {
	var text bytes.Buffer
	if err := insecurecleartextkeyset.Write(f.handle, keyset.NewJSONWriter(&text)); err != nil {
		return nil, errors.New("encoding the keys of secrets failed") // the cause could repeat a piece of a key
	}
	data, err := json.MarshalIndent(fileContent{Keys: f.times, Keyset: text.Bytes()}, "", "  ")
	if err != nil {
		return nil, errors.New("encoding the keys of secrets failed")
	}
	return append(data, '\n'), nil
}

// write writes the keys to the file after checking that the services can parse them.
func (f *KeyFile) write() error {
	data, err := f.encode()
	if err != nil {
		return err
	}
	if _, err := loadKeys(data); err != nil {
		return fmt.Errorf("the changed keys of secrets would not be read: %w", err)
	}
	return atomicfile.Write(f.path, data)
}

func seconds(t time.Time) time.Time { return t.UTC().Truncate(time.Second) }
