package parleyctl_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/secret"
	"github.com/parley-chat/parley/services/parleyctl"
	"github.com/parley-chat/parley/testkit/storetest"
)

// TestSecrets replaces the key of a database, as docs/runbook.md describes.
func TestSecrets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	now := noon
	w.now = func() time.Time { return now }
	u := account.NewUser("ada@example.com", "", account.Operator, "", noon)
	u.TOTPSecret = account.NewTOTPSecret()
	w.must(w.store.CreateUser(t.Context(), u))

	delete(w.env, "SECRETS_KEY_FILE")
	w.ctl("users", "list").fails(parleyctl.ExitUsage, "SECRETS_KEY_FILE is not set, and records have secrets")
	w.ctl("secrets", "list").fails(parleyctl.ExitUsage, "SECRETS_KEY_FILE is not set")
	w.env["SECRETS_KEY_FILE"] = filepath.Join(t.TempDir(), "missing.json")
	w.ctl("secrets", "list").fails(parleyctl.ExitNotFound, "There is no key file")
	w.ctl("users", "list").fails(parleyctl.ExitUsage, "SECRETS_KEY_FILE: reading")
	w.ctl("secrets", "generate").done()
	w.ctl("secrets", "generate").fails(parleyctl.ExitRefused, "exists already")
	w.ctl("secrets", "generate", "--if-missing").done()
	w.ctl("users", "list").fails(parleyctl.ExitUsage, "SECRETS_KEY_FILE has no key")
	w.diagnoses(w.doctor(), "secrets", "wrong", "restore the file")

	path := storetest.KeyFile(t)
	w.env["SECRETS_KEY_FILE"] = path
	w.ctl("users", "list").done()
	w.diagnoses(w.doctor(), "secrets", "ok", "")
	first := decoded[[]object](w.ctl("secrets", "list", "-o", "json"))[0]["kid"].(string)

	added := w.ctl("secrets", "rotate", "-o", "json")
	keys := decoded[[]object](added)
	if len(keys) != 2 || keys[0]["state"] != "primary" || keys[1]["state"] != "new" || !strings.Contains(added.errors, "Rotate again after 2026-11-21T12:05:00.000Z") {
		t.Fatalf("the first step: got %v, %q", keys, added.errors)
	}
	second := keys[1]["kid"].(string)
	w.ctl("secrets", "rotate").fails(parleyctl.ExitRefused, "is not known everywhere yet")
	now = now.Add(secret.Propagation)
	if keys := decoded[[]object](w.ctl("secrets", "rotate", "-o", "json")); keys[0]["state"] != "old" || keys[1]["state"] != "primary" {
		t.Fatalf("the second step: got %v", keys)
	}
	now = now.Add(secret.Propagation)
	if r := w.ctl("secrets", "retire"); r.code != parleyctl.ExitOK || !strings.Contains(r.errors, "1 secrets still use the old key "+first) {
		t.Errorf("retire before reencrypt: got %q, want the key kept", r.errors)
	}
	w.ctl("secrets", "reencrypt").prints("records  1")
	w.ctl("secrets", "reencrypt").prints("records  0")
	w.ctl("secrets", "retire", "-o", "json").done()
	if keys := decoded[[]object](w.ctl("secrets", "list", "-o", "json")); len(keys) != 1 || keys[0]["kid"] != second {
		t.Errorf("the last step: got %v, want only %s", keys, second)
	}
	w.ctl("users", "list").done()
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got mode %v, %v, want 0600", info.Mode(), err)
	}
	w.must(os.Chmod(path, 0o644))
	w.diagnoses(w.doctor(), "secrets", "warning", "chmod")
}
