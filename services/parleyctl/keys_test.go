package parleyctl_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/services/parleyctl"
)

func TestKeys(t *testing.T) {
	t.Parallel()
	now := noon
	w := &world{t: t, now: func() time.Time { return now }}
	path := filepath.Join(t.TempDir(), "keys.json")
	w.ctl("keys", "list").fails(parleyctl.ExitUsage, "VISITOR_KEYS_FILE is not set")
	w.env = map[string]string{"VISITOR_KEYS_FILE": path}
	w.ctl("keys", "list").fails(parleyctl.ExitNotFound, "There is no key file "+path)
	first := decoded[[]object](w.ctl("keys", "generate", "-o", "json"))[0]["kid"].(string)
	w.ctl("keys", "generate").fails(parleyctl.ExitRefused, "exists already")
	if again := decoded[[]object](w.ctl("keys", "generate", "--if-missing", "-o", "json")); len(again) != 1 || again[0]["kid"] != first {
		t.Errorf("got %v of a file that is there, want the key that it has", again)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("got mode %v, %v, want 0600", info.Mode(), err)
	}
	set, err := credential.LoadKeySet(path)
	w.must(err)
	verifies := func(kid string) bool {
		t.Helper()
		_, err := set.Reload()
		w.must(err)
		_, err = set.Key(t.Context(), kid)
		return err == nil
	}

	added := w.ctl("keys", "rotate", "-o", "json")
	keys := decoded[[]object](added)
	if len(keys) != 2 || keys[0]["kid"] != first || keys[0]["state"] != "signing" || keys[1]["state"] != "new" || !strings.Contains(added.errors, "Rotate again after 2026-11-21T12:05:00.000Z") {
		t.Fatalf("the first step: got %v, %q", keys, added.errors)
	}
	second := keys[1]["kid"].(string)
	w.ctl("keys", "rotate").fails(parleyctl.ExitRefused, "is not known everywhere yet")
	now = noon.Add(credential.KeyPropagation)
	w.ctl("keys", "rotate").prints(`
KID                                          STATE    CREATED                   SUPERSEDED
` + second + `  signing  2026-11-21T12:00:00.000Z  -
` + first + `  old      -                         2026-11-21T12:05:00.000Z`)
	if !verifies(first) || !verifies(second) {
		t.Error("want both keys to verify")
	}
	if out := w.ctl("__complete", "keys", "remove", "").done(); !strings.HasPrefix(out, first+"\told") || strings.Contains(out, second) {
		t.Errorf("got %q, want only what can be removed", out)
	}
	now = now.Add(48 * time.Hour)
	if r := w.ctl("keys", "retire"); r.code != parleyctl.ExitOK || !strings.Contains(r.errors, "Retired 0 keys") || !verifies(first) {
		t.Errorf("too early: got %q", r.errors)
	}
	w.env["VISITOR_TOKEN_TTL"] = "24h"
	if r := w.ctl("keys", "retire"); r.code != parleyctl.ExitOK || !strings.Contains(r.errors, "Retired 1 keys") || verifies(first) {
		t.Errorf("got %q, want the first one retired", r.errors)
	}
	third := decoded[[]object](w.ctl("keys", "rotate", "--urgent", "-o", "json"))[0]
	if third["kid"] == second || third["state"] != "signing" {
		t.Errorf("urgent: got %v in front, want a new key that signs", third)
	}
	w.ctl("keys", "remove", third["kid"].(string), "--yes").fails(parleyctl.ExitRefused, "promote another one first")
	w.ctl("keys", "remove", "nobody", "--yes").fails(parleyctl.ExitNotFound, "Key not found")
	w.ctl("keys", "remove", second).fails(parleyctl.ExitUsage, "must register again")
	w.ctlIn("y\n", true, "keys", "remove", second).done()
	if verifies(second) {
		t.Error("a removed key verifies still")
	}

	file, err := os.ReadFile(path)
	w.must(err)
	private := strings.Split(strings.Split(string(file), `"d": "`)[1], `"`)[0]
	for _, r := range []result{w.ctl("keys", "list"), w.ctl("keys", "list", "-o", "json")} {
		if strings.Contains(r.done(), private) {
			t.Errorf("%s shows a private key", r.args)
		}
	}
}
