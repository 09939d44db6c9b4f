package streamsync

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// store is a store directory of a server with the stream EVENTS, and the blocks that were synced.
type store struct {
	t      *testing.T
	dir    string
	syncer *Syncer

	mu     sync.Mutex
	synced []string
	fault  error
}

func newStore(t *testing.T) *store {
	t.Helper()
	s := &store{t: t, dir: t.TempDir()}
	s.add("$G", "EVENTS")
	s.syncer = New(s.dir)
	s.syncer.syncFile = s.record
	t.Cleanup(s.syncer.Close)
	return s
}

func (s *store) add(account, stream string) {
	s.t.Helper()
	dir := filepath.Join(s.dir, "jetstream", account, "streams", stream)
	if err := os.MkdirAll(filepath.Join(dir, "msgs"), 0o700); err != nil {
		s.t.Fatal(err)
	}
	s.declare(dir)
}

// declare writes the declaration of a stream or a consumer as the server does.
func (s *store) declare(dir string) {
	s.t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		s.t.Fatal(err)
	}
	for _, name := range []string{"meta.inf", "meta.sum"} {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path+".tmp", []byte("declaration"), 0o600); err != nil {
			s.t.Fatal(err)
		}
		if err := os.Rename(path+".tmp", path); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *store) path(number int) string {
	return filepath.Join(s.dir, "jetstream", "$G", "streams", "EVENTS", "msgs", strconv.Itoa(number)+".blk")
}

func (s *store) write(number int) {
	s.t.Helper()
	if err := os.WriteFile(s.path(number), []byte("event"), 0o600); err != nil {
		s.t.Fatal(err)
	}
}

func (s *store) record(f *os.File) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.synced = append(s.synced, filepath.Base(f.Name()))
	return s.fault
}

// sync syncs EVENTS and returns the blocks that were synced, sorted.
func (s *store) sync() []string {
	s.t.Helper()
	s.synced = nil
	if err := s.syncer.Sync(s.t.Context(), "EVENTS"); err != nil {
		s.t.Fatalf("syncing: %v", err)
	}
	slices.Sort(s.synced)
	return slices.Compact(s.synced)
}

func (s *store) want(step string, want ...string) {
	s.t.Helper()
	if got := s.sync(); !slices.Equal(got, want) {
		s.t.Errorf("%s: got %v synced, want %v", step, got, want)
	}
}

// Whatever the server does with its blocks, each sync covers those that may have been written since the last.
func TestSyncFollowsTheBlocks(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	s.want("no event yet", "meta.inf", "meta.sum")
	s.write(1)
	s.write(2)
	s.want("the first sync covers everything", "1.blk", "2.blk")
	s.want("then only the newest", "2.blk")
	s.write(3)
	s.write(4)
	s.want("new blocks, with the rest of the last", "2.blk", "3.blk", "4.blk")
	if err := os.WriteFile(s.path(9)+".tmp", []byte("compacted"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(s.path(9)+".tmp", s.path(4)); err != nil {
		t.Fatal(err)
	}
	s.want("the newest was replaced", "1.blk", "2.blk", "3.blk", "4.blk")
	for number := 1; number <= 4; number++ {
		if err := os.Remove(s.path(number)); err != nil {
			t.Fatal(err)
		}
	}
	s.write(5)
	s.want("all were purged", "4.blk", "5.blk")
	s.want("then only the newest", "5.blk")
}

// Declarations are synced when they are new or have been replaced, and no other time.
func TestSweepFollowsTheDeclarations(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	var swept map[string]os.FileInfo
	sweep := func(step string, want int) {
		t.Helper()
		s.synced = nil
		var err error
		if swept, err = s.syncer.sweep(swept); err != nil {
			t.Fatalf("%s: %v", step, err)
		}
		if len(s.synced) != want {
			t.Errorf("%s: got %v synced, want %d files", step, s.synced, want)
		}
	}
	stream := filepath.Join(s.dir, "jetstream", "$G", "streams", "EVENTS")
	sweep("the first", 2)
	sweep("nothing changed", 0)
	s.declare(filepath.Join(stream, "obs", "recorder"))
	sweep("a new consumer", 2)
	s.declare(stream)
	sweep("another declaration of the stream", 2)
	s.fault = errors.New("input/output error")
	s.declare(stream)
	var err error
	if swept, err = s.syncer.sweep(swept); !errors.Is(err, s.fault) {
		t.Errorf("got %v, want %v", err, s.fault)
	}
	s.fault = nil
	sweep("again after a failure", 2)
}

// After a failure nothing is known about the file: the next sync starts over.
func TestSyncReportsAFailure(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	s.write(1)
	s.write(2)
	s.sync()
	s.fault = errors.New("input/output error")
	if err := s.syncer.Sync(t.Context(), "EVENTS"); !errors.Is(err, s.fault) {
		t.Errorf("got %v, want %v", err, s.fault)
	}
	s.fault = nil
	s.want("afterwards", "1.blk", "2.blk")
}

func TestSyncRefusesAnUnknownStream(t *testing.T) {
	t.Parallel()
	s := newStore(t)
	s.add("A", "TWICE")
	s.add("B", "TWICE")
	for _, name := range []string{"MISSING", "TWICE", "..", "EVENTS/msgs", ""} {
		if err := s.syncer.Sync(t.Context(), name); err == nil {
			t.Errorf("%q: got no error", name)
		}
	}
}

// Callers that arrive during a sync share the next one: the current one may have begun before their events.
func TestCallersShareASync(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t)
		s.write(1)
		s.sync()
		s.synced = nil
		release := make(chan struct{})
		s.syncer.streams["EVENTS"].blocks.syncFile = func(f *os.File) error {
			<-release
			return s.record(f)
		}
		var callers sync.WaitGroup
		call := func() {
			if err := s.syncer.Sync(t.Context(), "EVENTS"); err != nil {
				t.Error(err)
			}
		}
		callers.Go(call)
		synctest.Wait()
		for range 50 {
			callers.Go(call)
		}
		synctest.Wait()
		close(release)
		callers.Wait()
		if len(s.synced) != 2 {
			t.Errorf("got %d syncs for 51 callers, want 2", len(s.synced))
		}
	})
}
