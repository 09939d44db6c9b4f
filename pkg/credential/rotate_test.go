package credential

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/testkit/timetest"
)

// newKeyFile returns a file with one key, as created at the first start.
func newKeyFile(t *testing.T) (path string, f *KeyFile) {
	t.Helper()
	data, err := GenerateKeySet()
	if err != nil {
		t.Fatal(err)
	}
	path = filepath.Join(t.TempDir(), "keys.json")
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	if f, err = OpenKeyFile(path); err != nil {
		t.Fatal(err)
	}
	return path, f
}

func states(f *KeyFile) (s []KeyState) {
	for _, k := range f.Keys() {
		s = append(s, k.State)
	}
	return s
}

// After each step all tokens that are not expired still verify.
func TestKeysRotateInThreeSteps(t *testing.T) {
	t.Parallel()
	const ttl = 720 * time.Hour
	path, f := newKeyFile(t)
	set, err := LoadKeySet(path)
	if err != nil {
		t.Fatal(err)
	}
	v := NewVerifier(set, timetest.NewClock(testTime).Now)
	first := mustSign(t, set, testClaims())

	added, err := f.Add(testTime)
	if err != nil || !slices.Equal(states(f), []KeyState{KeySigning, KeyNew}) {
		t.Fatalf("Add: got %v, %v, want a new key after the signing one", states(f), err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode: got %v, %v, want 0600", info.Mode(), err)
	}
	mustReload(t, set)
	if got := kidOf(t, mustSign(t, set, testClaims())); got == added.ID {
		t.Error("a new key signs before it is promoted")
	}
	if _, err := f.Promote("", testTime.Add(KeyPropagation-time.Second), false); !apperr.Is(err, apperr.Conflict) {
		t.Errorf("Promote before everyone has it: got %v, want Conflict", err)
	}

	if f, err = OpenKeyFile(path); err != nil { // on another day
		t.Fatal(err)
	}
	promoted := testTime.Add(KeyPropagation)
	if k, err := f.Promote("", promoted, false); err != nil || k.ID != added.ID || !slices.Equal(states(f), []KeyState{KeySigning, KeyOld}) {
		t.Fatalf("Promote: got %+v, %v, %v, want %s to sign", k, states(f), err, added.ID)
	}
	mustReload(t, set)
	second := mustSign(t, set, testClaims())
	if kidOf(t, second) != added.ID {
		t.Error("a promoted key does not sign")
	}
	for name, token := range map[string]string{"old": first, "new": second} {
		if _, err := v.Verify(t.Context(), token); err != nil {
			t.Errorf("the %s key's token between the steps: got %v, want it to hold", name, err)
		}
	}

	if retired, err := f.Retire(promoted.Add(ttl), ttl); err != nil || retired != nil {
		t.Errorf("Retire too early: got %v, %v, want nothing", retired, err)
	}
	retired, err := f.Retire(promoted.Add(ttl+clockSkew), ttl)
	if err != nil || len(retired) != 1 || retired[0].ID != kidOf(t, first) || len(f.Keys()) != 1 {
		t.Fatalf("Retire: got %v, %v, want the first key", retired, err)
	}
	mustReload(t, set)
	if _, err := v.Verify(t.Context(), first); !apperr.Is(err, apperr.Unauthenticated) {
		t.Errorf("the retired key's token: got %v, want Unauthenticated", err)
	}
	if _, err := v.Verify(t.Context(), second); err != nil {
		t.Errorf("the new key's token: got %v, want it to hold", err)
	}
}

func mustReload(t *testing.T, set *KeySet) {
	t.Helper()
	if changed, err := set.Reload(); err != nil || !changed {
		t.Fatalf("Reload: got %v, %v, want a change", changed, err)
	}
}

func TestKeysThatCannotBePromotedOrRemoved(t *testing.T) {
	t.Parallel()
	_, f := newKeyFile(t)
	signing := f.Keys()[0].ID
	if _, err := f.Promote("", testTime, true); !apperr.Is(err, apperr.NotFound) {
		t.Errorf("Promote without a new key: got %v, want NotFound", err)
	}
	if _, err := f.Promote("nobody", testTime, true); !apperr.Is(err, apperr.NotFound) {
		t.Errorf("Promote an unknown key: got %v, want NotFound", err)
	}
	if _, err := f.Promote(signing, testTime, true); !apperr.Is(err, apperr.Conflict) {
		t.Errorf("Promote the key that signs: got %v, want Conflict", err)
	}
	if err := f.Remove(signing); !apperr.Is(err, apperr.Conflict) {
		t.Errorf("Remove the key that signs: got %v, want Conflict", err)
	}
	one, _ := f.Add(testTime)
	two, _ := f.Add(testTime)
	if _, err := f.Promote("", testTime, true); !apperr.Is(err, apperr.Conflict) {
		t.Errorf("Promote with two new keys: got %v, want Conflict", err)
	}
	if k, err := f.Promote(two.ID, testTime, true); err != nil || k.ID != two.ID { // urgent
		t.Errorf("Promote by id: got %v, %v, want it to sign", k, err)
	}
	if k, err := f.Promote(signing, testTime, true); err != nil || k.State != KeySigning || !k.SupersededAt.IsZero() { // and back
		t.Errorf("Promote the one before again: got %+v, %v, want it to sign", k, err)
	}
	if err := f.Remove(one.ID); err != nil || len(f.Keys()) != 2 {
		t.Errorf("Remove a new key: got %v, %v, want two keys left", f.Keys(), err)
	}
	if err := f.Remove(one.ID); !apperr.Is(err, apperr.NotFound) {
		t.Errorf("Remove it again: got %v, want NotFound", err)
	}
}

// Unknown members of the set are kept, and our metadata is not published.
func TestKeyFileKeepsUnknownMembers(t *testing.T) {
	t.Parallel()
	path, _ := newKeyFile(t)
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data = bytes.Replace(data, []byte(`"keys": [`), []byte(`"comment": "ours", "keys": [{"kty":"RSA","n":"AQ","e":"AQAB"},`), 1)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := OpenKeyFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.Add(testTime); err != nil {
		t.Fatal(err)
	}
	if _, err := f.Promote("", testTime, true); err != nil {
		t.Fatal(err)
	}
	var file struct {
		Comment string
		Keys    []map[string]any
	}
	if data, err = os.ReadFile(path); err != nil || json.Unmarshal(data, &file) != nil {
		t.Fatalf("reading it back: %v", err)
	}
	if file.Comment != "ours" || len(file.Keys) != 3 || !strings.Contains(string(data), `"RSA"`) {
		t.Errorf("got %d keys and the comment %q, want all that was there", len(file.Keys), file.Comment)
	}
	set, err := LoadKeySet(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, hidden := range []string{`"d"`, memberCreated, memberSuperseded} {
		if strings.Contains(string(set.JWKS()), hidden) {
			t.Errorf("published: got %s in it, want it kept back", hidden)
		}
	}
	if entries, err := os.ReadDir(filepath.Dir(path)); err != nil || len(entries) != 1 {
		t.Errorf("got %v, %v, want no draft left", entries, err)
	}
}

func TestInvalidKeyFiles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	const secret = "nWGxne_9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A"
	for name, content := range map[string]string{
		"empty": "", "not JSON": secret, "cut off": `{"keys":[{"d":"` + secret, "no keys": `{"keys":[]}`, "keys no list": `{"keys":"` + secret + `"}`,
	} {
		path := filepath.Join(dir, "keys.json")
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenKeyFile(path); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("%s: got %v, want an error that shows nothing of the file", name, err)
		}
	}
	if _, err := OpenKeyFile(filepath.Join(dir, "absent.json")); err == nil {
		t.Error("absent: got nil, want an error")
	}
}
