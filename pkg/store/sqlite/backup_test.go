package sqlite_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/store/encrypted"
	parley "github.com/parley-chat/parley/pkg/store/sqlite"
	"github.com/parley-chat/parley/testkit/storetest"
)

func TestBackupWhileOthersWrite(t *testing.T) {
	t.Parallel()
	s := encrypted.Engine(storetest.Open(t)).(*parley.Store)
	storetest.Fill(t, s)
	before := map[store.Kind]int{}
	for _, kind := range store.Kinds() {
		before[kind] = len(storetest.Records(t, s, kind))
	}
	ctx, stop := context.WithCancel(t.Context())
	stopped := make(chan error, 1)
	go func() {
		for {
			if err := storetest.Converse(ctx, s); err != nil {
				stopped <- err
				return
			}
		}
	}()
	path := storetest.Path(t)
	if err := s.Backup(t.Context(), path); err != nil {
		t.Fatal(err)
	}
	stop()
	if err := <-stopped; !errors.Is(err, context.Canceled) {
		t.Fatalf("writing during a backup: got %v, want success until it was stopped", err)
	}
	if err := s.Backup(t.Context(), path); err == nil {
		t.Error("a backup over another: got no error, want one")
	}
	for _, beside := range []string{".unfinished", "-wal", "-shm", ".unfinished-wal", ".unfinished-shm"} {
		if _, err := os.Stat(path + beside); err == nil {
			t.Errorf("beside the copy: got %s, want nothing", beside)
		}
	}
	copied := encrypted.Engine(storetest.OpenAt(t, path)).(*parley.Store)
	if err := copied.Check(t.Context()); err != nil {
		t.Error(err)
	}
	for _, kind := range store.Kinds() {
		if n := len(storetest.Records(t, copied, kind)); n < before[kind] {
			t.Errorf("%s in the copy: got %d, want at least %d", kind, n, before[kind])
		}
	}
}

func TestCancelledBackupLeavesNothing(t *testing.T) {
	t.Parallel()
	s := encrypted.Engine(storetest.Open(t)).(*parley.Store)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	path := storetest.Path(t)
	if err := s.Backup(ctx, path); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
	for _, left := range []string{path, path + ".unfinished"} {
		if _, err := os.Stat(left); err == nil {
			t.Errorf("got %s, want nothing left", left)
		}
	}
}

func TestCheckFindsDamage(t *testing.T) {
	t.Parallel()
	path := storetest.Path(t)
	s, err := openAt(path, storetest.Options{})
	if err != nil {
		t.Fatal(err)
	}
	storetest.Fill(t, s)
	if err := s.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	// An index that lacks a row of its table.
	script(t, path, `PRAGMA writable_schema = ON;
		UPDATE sqlite_schema SET sql = replace(sql, 'chats (id)', 'chats (channel)') WHERE name = 'chats_id';`)
	damaged := encrypted.Engine(storetest.OpenAt(t, path)).(*parley.Store)
	if err := damaged.Check(t.Context()); !errors.Is(err, parley.ErrDamaged) {
		t.Errorf("Check: got %v, want %v", err, parley.ErrDamaged)
	}
	copied := storetest.Path(t)
	if err := damaged.Backup(t.Context(), copied); !errors.Is(err, parley.ErrDamaged) {
		t.Errorf("Backup: got %v, want %v", err, parley.ErrDamaged)
	}
	if _, err := os.Stat(copied); err == nil {
		t.Error("a copy of a damaged file: got one, want none")
	}
}
