package sqlite_test

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	parley "github.com/parley-chat/parley/pkg/store/sqlite"
	"github.com/parley-chat/parley/testkit/storetest"
)

// script modifies a file like another program would.
func script(t testing.TB, path, sql string) {
	t.Helper()
	c, err := sqlite.OpenConn(path)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := sqlitex.ExecuteScript(c, sql, nil); err != nil {
		t.Fatal(err)
	}
}

func TestOpenRejectsForeignFiles(t *testing.T) {
	t.Parallel()
	newer := storetest.Path(t)
	first, err := openAt(newer, storetest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := first.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	script(t, newer, "PRAGMA user_version = 4000")
	text, foreign := storetest.Path(t), storetest.Path(t)
	if err := os.WriteFile(text, []byte(strings.Repeat("not a database\n", 1000)), 0o600); err != nil {
		t.Fatal(err)
	}
	script(t, foreign, "CREATE TABLE companies (id)")

	for name, test := range map[string]struct{ path, want string }{
		"a newer file":           {newer, "written by a newer Parley (version 4000); this one supports versions up to 19"},
		"no database":            {text, "not an SQLite database"},
		"another program's file": {foreign, "not a Parley database"},
		"no such folder":         {filepath.Join(t.TempDir(), "none", "parley.db"), "no such file or directory"},
		"a folder":               {t.TempDir(), "is a directory"},
	} {
		before, _ := os.ReadFile(test.path)
		_, err := openAt(test.path, storetest.Options{})
		if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), test.path) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: got %v, want one line with the path and: %s", name, err, test.want)
		}
		if after, _ := os.ReadFile(test.path); string(after) != string(before) {
			t.Errorf("%s: the file was changed", name)
		}
	}
	if _, err := parley.Open(context.Background(), parley.Config{Path: newer}); err == nil {
		t.Error("without a logger: got no error, want one")
	}
}

func TestFileModeIsOwnerOnly(t *testing.T) {
	t.Parallel()
	path := storetest.Path(t)
	storetest.OpenAt(t, path)
	for _, suffix := range []string{"", "-wal", "-shm"} {
		info, err := os.Stat(path + suffix)
		if err != nil {
			t.Fatal(err)
		}
		if mode := info.Mode().Perm(); mode != 0o600 {
			t.Errorf("%s: got mode %o, want 600: it holds secrets", info.Name(), mode)
		}
	}
}

// Several processes that start at the same time on a new file, simulated by several stores in one process.
func TestConcurrentOpen(t *testing.T) {
	t.Parallel()
	path := storetest.Path(t)
	const many = 8
	failed := make(chan error, many)
	for range many {
		go func() {
			s, err := parley.Open(context.Background(), parley.Config{Path: path, Logger: slog.New(slog.DiscardHandler)})
			if err == nil {
				err = s.Close(context.Background())
			}
			failed <- err
		}()
	}
	for range many {
		if err := <-failed; err != nil {
			t.Errorf("got %v, want no error", err)
		}
	}
}
