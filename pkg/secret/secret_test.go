package secret

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
)

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func newFile(t *testing.T) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "keys.json")
	data, err := Generate(noon)
	if err == nil {
		err = os.WriteFile(path, data, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func load(t *testing.T, path string) *KeySet {
	t.Helper()
	s, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCiphertextBelongsToItsPlace(t *testing.T) {
	t.Parallel()
	keys := load(t, newFile(t))
	first, err := keys.Encrypt("whsec_abc", "users/1/totpSecret")
	if err != nil || strings.Contains(first, "abc") {
		t.Fatalf("Encrypt: got %q, %v", first, err)
	}
	if again, _ := keys.Encrypt("whsec_abc", "users/1/totpSecret"); again == first {
		t.Error("got the same ciphertext twice, want them to differ")
	}
	if text, err := keys.Decrypt(first, "users/1/totpSecret"); text != "whsec_abc" || err != nil {
		t.Errorf("Decrypt: got %q, %v", text, err)
	}
	flipped := []byte(first)
	flipped[20] = 'A' // still base64
	if first[20] == 'A' {
		flipped[20] = 'B'
	}
	for name, c := range map[string]struct {
		ciphertext, place string
		want              error
	}{
		"another record": {first, "users/2/totpSecret", ErrNotDecrypted},
		"another field":  {first, "users/1/totpPending", ErrNotDecrypted},
		"altered":        {string(flipped), "users/1/totpSecret", ErrNotDecrypted},
		"cut":            {first[:12], "users/1/totpSecret", ErrNotDecrypted},
		"plain":          {"whsec_abc", "users/1/totpSecret", ErrNotEncrypted},
		"empty":          {"", "users/1/totpSecret", ErrNotEncrypted},
	} {
		if text, err := keys.Decrypt(c.ciphertext, c.place); !errors.Is(err, c.want) {
			t.Errorf("%s: got %q, %v, want %v", name, text, err, c.want)
		}
	}
	if _, err := new(KeySet).Encrypt("x", "y"); err == nil || !strings.Contains(err.Error(), Setting) {
		t.Errorf("Encrypt without keys: got %v, want an error that names %s", err, Setting)
	}
}

// TestRotation has a service with the file of each step; every one decrypts what the others encrypt.
func TestRotation(t *testing.T) {
	t.Parallel()
	path := newFile(t)
	before := load(t, path)
	file, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	fresh, err := file.Add(noon)
	if err != nil || before.Has(fresh.ID) {
		t.Fatalf("Add: got %v, %v", fresh, err)
	}
	if _, err := file.Add(noon); !apperr.Is(err, apperr.Conflict) {
		t.Errorf("a second new key: got %v, want a conflict", err)
	}
	added := load(t, path)
	if err := file.Promote(noon.Add(Propagation - time.Second)); !apperr.Is(err, apperr.Conflict) {
		t.Errorf("Promote too early: got %v, want a conflict", err)
	}
	if err := file.Promote(noon.Add(Propagation)); err != nil {
		t.Fatal(err)
	}
	promoted := load(t, path)
	if promoted.Primary() != fresh.ID || added.Primary() != before.Primary() {
		t.Errorf("primary keys: got %s then %s, want %s last", added.Primary(), promoted.Primary(), fresh.ID)
	}
	old, _ := added.Encrypt("x", "y")
	recent, _ := promoted.Encrypt("x", "y")
	for _, c := range []string{old, recent} {
		for name, keys := range map[string]*KeySet{"added": added, "promoted": promoted} {
			if text, err := keys.Decrypt(c, "y"); text != "x" || err != nil {
				t.Errorf("%s: got %q, %v", name, text, err)
			}
		}
	}
	_, err = before.Decrypt(recent, "y")
	if unknown, ok := errors.AsType[*UnknownKeyError](err); !ok || unknown.ID != fresh.ID || !strings.Contains(err.Error(), Setting) {
		t.Errorf("with the file before the rotation: got %v, want the missing key and %s", err, Setting)
	}

	used := map[KeyID]int{before.Primary(): 1}
	late := noon.Add(2 * Propagation)
	for name, retire := range map[string]func() ([]KeyInfo, error){
		"in use":    func() ([]KeyInfo, error) { return file.Retire(late, used) },
		"too early": func() ([]KeyInfo, error) { return file.Retire(late.Add(-time.Second), nil) },
	} {
		if retired, err := retire(); len(retired) != 0 || err != nil {
			t.Errorf("%s: got %v, %v, want the key kept", name, retired, err)
		}
	}
	if retired, err := file.Retire(late, map[KeyID]int{fresh.ID: 7}); len(retired) != 1 || retired[0].ID != before.Primary() || err != nil {
		t.Errorf("Retire: got %v, %v, want the old key", retired, err)
	}
	if changed, err := promoted.Reload(); !changed || err != nil || promoted.Has(before.Primary()) {
		t.Errorf("Reload: got %t, %v, want the file without the old key", changed, err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got mode %v, %v, want 0600", info.Mode(), err)
	}
}

// TestBrokenFileIsNotRepeated reads files that hold a piece of a key.
func TestBrokenFileIsNotRepeated(t *testing.T) {
	t.Parallel()
	path := newFile(t)
	keys := load(t, path)
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	material := strings.Split(strings.Split(string(whole), `"value": "`)[1], `"`)[0]
	for name, content := range map[string]string{
		"cut": string(whole[:len(whole)/2]), "no keyset": `{"keys":{}}`, "another type": strings.Replace(string(whole), "SYMMETRIC", material, 1),
		"a wrong key": strings.Replace(string(whole), material, material[4:], 1),
	} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := Load(path)
		if err == nil || strings.Contains(err.Error(), material[4:]) || !strings.Contains(err.Error(), Setting) {
			t.Errorf("%s: got %v, want an error that names %s and no key", name, err, Setting)
		}
		if changed, err := keys.Reload(); changed || err == nil {
			t.Errorf("%s: Reload: got %t, %v, want the current keys kept", name, changed, err)
		}
	}
	if _, err := keys.Encrypt("x", "y"); err != nil {
		t.Errorf("after a broken file: got %v, want the current keys", err)
	}
}
