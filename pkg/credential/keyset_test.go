package credential

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/atomicfile"
	"github.com/parley-chat/parley/testkit/timetest"
)

func writeKeys(t testing.TB, path string, keys ...key) {
	t.Helper()
	if err := os.WriteFile(path, encodeKeys(t, keys...), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestRotation(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys.json")
	old, fresh := newKey(t), newKey(t)
	writeKeys(t, path, old)
	set, err := LoadKeySet(path)
	if err != nil {
		t.Fatal(err)
	}
	v := NewVerifier(set, timetest.NewClock(testTime).Now)
	before := mustSign(t, set, testClaims())

	writeKeys(t, path, fresh, old)
	if changed, err := set.Reload(); !changed || err != nil {
		t.Fatalf("reload of a changed file: got %v, %v, want true, nil", changed, err)
	}
	if changed, err := set.Reload(); changed || err != nil {
		t.Errorf("reload of the same file: got %v, %v, want false, nil", changed, err)
	}
	after := mustSign(t, set, testClaims())
	if got := kidOf(t, after); got != fresh.id {
		t.Errorf("kid after rotation: got %s, want the first key's %s", got, fresh.id)
	}
	for name, token := range map[string]string{"old key": before, "new key": after} {
		if _, err := v.Verify(t.Context(), token); err != nil {
			t.Errorf("token of the %s while both are there: got %v, want it to verify", name, err)
		}
	}

	writeKeys(t, path, fresh)
	if _, err := set.Reload(); err != nil {
		t.Fatal(err)
	}
	if _, err := v.Verify(t.Context(), before); !apperr.Is(err, apperr.Unauthenticated) {
		t.Errorf("token of a removed key: got %v, want Unauthenticated", err)
	}
	if _, err := v.Verify(t.Context(), after); err != nil {
		t.Errorf("token of the remaining key: got %v, want it to verify", err)
	}
}

func kidOf(t testing.TB, token string) string {
	t.Helper()
	parsed, _, err := NewVerifier(nil, nil).parser.ParseUnverified(token, &wireClaims{})
	if err != nil {
		t.Fatal(err)
	}
	kid, _ := parsed.Header["kid"].(string)
	return kid
}

func TestLoadKeySetErrorsNameTheFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if _, err := LoadKeySet(filepath.Join(dir, "absent.json")); err == nil || !strings.Contains(err.Error(), "absent.json") {
		t.Errorf("absent file: got %v, want an error that names it", err)
	}
	broken := filepath.Join(dir, "broken.json")
	if err := os.WriteFile(broken, []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := LoadKeySet(broken); err == nil || !strings.Contains(err.Error(), "broken.json") {
		t.Errorf("broken file: got %v, want an error that names it", err)
	}
}

// bufferLogger returns a log that is read only while the bubble's other goroutines are blocked, so it needs no lock.
func bufferLogger() (*bytes.Buffer, *slog.Logger) {
	var b bytes.Buffer
	return &b, slog.New(slog.NewTextHandler(&b, nil))
}

func TestRunReloadsTheFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "keys.json")
	old, fresh := newKey(t), newKey(t)
	writeKeys(t, path, old)
	set, err := LoadKeySet(path)
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		logged, log := bufferLogger()
		done := make(chan error, 1)
		go func() { done <- set.Run(ctx, log, nil) }()

		if err := os.WriteFile(path, []byte("half a fi"), 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * atomicfile.WatchInterval)
		synctest.Wait()
		if got := strings.Count(logged.String(), "not reloaded"); got != 1 {
			t.Errorf("lines about a broken file: got %d, want 1", got)
		}
		if got := kidOf(t, mustSign(t, set, testClaims())); got != old.id {
			t.Errorf("kid while the file is broken: got %s, want the old %s", got, old.id)
		}

		writeKeys(t, path, fresh, old)
		time.Sleep(2 * atomicfile.WatchInterval)
		synctest.Wait()
		if got := kidOf(t, mustSign(t, set, testClaims())); got != fresh.id {
			t.Errorf("kid after the file was mended: got %s, want the new %s", got, fresh.id)
		}
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: got %v, want nil", err)
		}
	})
}
