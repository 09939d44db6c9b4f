package sqlite_test

import (
	"context"
	"log/slog"
	"os"
	"testing"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/parley-chat/parley/pkg/store"
	parley "github.com/parley-chat/parley/pkg/store/sqlite"
	"github.com/parley-chat/parley/testkit/storetest"
)

func TestMain(m *testing.M) { storetest.Main(m, openAt) }

func openAt(path string, o storetest.Options) (store.Store, error) {
	s, err := parley.Open(context.Background(), parley.Config{Path: path, Logger: slog.New(slog.DiscardHandler), IdleClose: o.IdleClose})
	if err != nil {
		return nil, err
	}
	return s, nil
}

func TestContract(t *testing.T) {
	t.Parallel()
	storetest.Engine{Create: storetest.Path, Open: openAt, Dump: dump, Silence: lock, Atomic: true}.Run(t)
}

// dump returns the file and its log.
func dump(t testing.TB, path string) (all []byte) {
	t.Helper()
	for _, name := range []string{path, path + "-wal"} {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, content...)
	}
	return all
}

// lock holds the file's write lock, like a process that hangs in a transaction.
func lock(t testing.TB, path string) (end func()) {
	t.Helper()
	c, err := sqlite.OpenConn(path, sqlite.OpenReadWrite)
	if err == nil {
		err = sqlitex.ExecuteTransient(c, "BEGIN IMMEDIATE", nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	ended := false
	return func() {
		if ended {
			return
		}
		ended = true
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}
