package cutdisk_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/parley-chat/parley/testkit/engines/cutdisk"
	"github.com/parley-chat/parley/testkit/needs"
)

// mounted is a disk under test.
type mounted struct {
	*cutdisk.Disk
	t   testing.TB
	dir string
}

func mount(t testing.TB, rename cutdisk.Rename) *mounted {
	t.Helper()
	needs.FUSE(t)
	dir := t.TempDir()
	disk, err := cutdisk.Mount(cutdisk.Config{Backing: t.TempDir(), Mount: dir, Rename: rename})
	check(t, err)
	t.Cleanup(func() { check(t, disk.Unmount()) })
	return &mounted{Disk: disk, t: t, dir: dir}
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (m *mounted) path(name string) string { return filepath.Join(m.dir, name) }

// open opens a file with flags; use gets it, and it is closed before open returns.
func (m *mounted) open(name string, flags int, use func(f *os.File)) {
	m.t.Helper()
	f, err := os.OpenFile(m.path(name), flags|os.O_RDWR|os.O_CREATE, 0o600)
	check(m.t, err)
	use(f)
	check(m.t, f.Close())
}

// put writes a synced file.
func (m *mounted) put(name, content string) {
	m.t.Helper()
	m.open(name, os.O_TRUNC, func(f *os.File) { m.write(f, content); check(m.t, f.Sync()) })
}

func (m *mounted) write(f *os.File, content string) {
	m.t.Helper()
	_, err := f.WriteString(content)
	check(m.t, err)
}

func (m *mounted) cut() []cutdisk.Lost {
	m.t.Helper()
	lost, err := m.Cut(nil)
	check(m.t, err)
	return lost
}

func (m *mounted) want(name, content string) {
	m.t.Helper()
	got, err := os.ReadFile(m.path(name))
	check(m.t, err)
	if string(got) != content {
		m.t.Errorf("%s: got %q, want %q", name, got, content)
	}
}

// inChild changes a mapped file in a process of its own: in the file system's own process, a page fault would block
// the scheduler that has to answer it.
func (m *mounted) inChild(what, path string) {
	m.t.Helper()
	child := exec.CommandContext(m.t.Context(), os.Args[0])
	child.Env = append(os.Environ(), childVariable+"="+what, "PATH_TO_MAP="+path)
	if out, err := child.CombinedOutput(); err != nil {
		m.t.Fatalf("%v: %s", err, out)
	}
}

const childVariable = "CUTDISK_TEST_CHILD"

func TestMain(m *testing.M) {
	what := os.Getenv(childVariable)
	if what == "" {
		os.Exit(m.Run())
	}
	if err := changeMapped(os.Getenv("PATH_TO_MAP"), what == "map and sync"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

// changeMapped writes SYN at the start of a mapped file.
func changeMapped(path string, sync bool) error {
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	mapped, err := unix.Mmap(int(f.Fd()), 0, 6, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	if err != nil {
		return err
	}
	copy(mapped, "SYN")
	if sync {
		err = unix.Msync(mapped, unix.MS_SYNC)
	}
	return errors.Join(err, unix.Munmap(mapped))
}

func TestCut(t *testing.T) {
	for name, c := range map[string]struct {
		change func(m *mounted, f *os.File) // of a file with the synced content "synced"
		want   string
	}{
		"append":   {func(m *mounted, f *os.File) { _, _ = f.Seek(0, io.SeekEnd); m.write(f, " and more") }, "synced"},
		"write":    {func(m *mounted, f *os.File) { m.write(f, "SYN") }, "synced"},
		"truncate": {func(m *mounted, f *os.File) { check(m.t, f.Truncate(2)) }, "synced"},
		"truncate and write": {func(m *mounted, f *os.File) {
			check(m.t, f.Truncate(0))
			m.write(f, "something longer")
		}, "synced"},
		"extend": {func(m *mounted, f *os.File) { check(m.t, f.Truncate(10000)) }, "synced"},
		"allocate": {func(m *mounted, f *os.File) {
			check(m.t, unix.Fallocate(int(f.Fd()), unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, 0, 3))
		}, "synced"},
		"sync": {func(m *mounted, f *os.File) { m.write(f, "SYN"); check(m.t, f.Sync()) }, "SYNced"},
		"fdatasync": {func(m *mounted, f *os.File) {
			m.write(f, "SYN")
			check(m.t, syscall.Fdatasync(int(f.Fd())))
			m.write(f, "CED")
		}, "SYNced"},
		"mapped":            {func(m *mounted, f *os.File) { m.inChild("map", f.Name()) }, "synced"},
		"mapped and synced": {func(m *mounted, f *os.File) { m.inChild("map and sync", f.Name()) }, "SYNced"},
		"rename": {func(m *mounted, f *os.File) {
			m.write(f, "SYN")
			check(m.t, os.Rename(f.Name(), m.path("other")))
			check(m.t, os.Rename(m.path("other"), f.Name()))
		}, "synced"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := mount(t, cutdisk.Ordered)
			m.put("file", "synced")
			m.open("file", 0, func(f *os.File) { c.change(m, f) })
			m.cut()
			m.want("file", c.want)
			if lost := m.cut(); len(lost) > 0 {
				t.Errorf("a second cut: got %+v lost, want nothing", lost)
			}
			m.want("file", c.want)
		})
	}
}

func TestCutOfNewFiles(t *testing.T) {
	m := mount(t, cutdisk.Ordered)
	check(t, os.Mkdir(m.path("folder"), 0o700))
	m.open("folder/unsynced", 0, func(f *os.File) { m.write(f, "content") })
	for name, flag := range map[string]int{"O_SYNC": syscall.O_SYNC, "O_DSYNC": syscall.O_DSYNC} {
		m.open(name, flag, func(f *os.File) { m.write(f, "content") })
	}
	// The next file gets the inode number of the removed one.
	m.open("removed", 0, func(f *os.File) { m.write(f, "removed") })
	check(t, os.Remove(m.path("removed")))
	m.put("next", "next")
	want := []cutdisk.Lost{{Path: "folder/unsynced", From: 7, To: 0, Bytes: 7}}
	if got := m.cut(); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %+v lost, want %+v", got, want)
	}
	m.want("folder/unsynced", "")
	m.want("O_SYNC", "content")
	m.want("O_DSYNC", "content")
	m.want("next", "next")
	if _, err := os.Stat(m.path("removed")); !os.IsNotExist(err) {
		t.Errorf("the removed file: got %v, want none", err)
	}
}

func TestCutAfterRename(t *testing.T) {
	for rename, want := range map[cutdisk.Rename]string{cutdisk.Ordered: "new", cutdisk.Strict: ""} {
		t.Run(string(rename), func(t *testing.T) {
			t.Parallel()
			m := mount(t, rename)
			m.put("over", "old")
			for _, name := range []string{"over", "fresh"} {
				m.open("tmp", 0, func(f *os.File) { m.write(f, "new") })
				check(t, os.Rename(m.path("tmp"), m.path(name)))
			}
			m.cut()
			m.want("over", want)
			m.want("fresh", "") // no file system syncs a rename to a new name
		})
	}
}

// A full disk takes what replaces content, and nothing longer, and loses nothing that it has.
func TestFill(t *testing.T) {
	m := mount(t, cutdisk.Ordered)
	m.put("file", "synced")
	m.Fill(true)
	m.open("file", 0, func(f *os.File) {
		m.write(f, "SYN")
		if _, err := f.WriteAt([]byte("CED and more"), 3); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("past the end: got %v, want ENOSPC", err)
		}
		if err := unix.Fallocate(int(f.Fd()), 0, 0, 100); !errors.Is(err, syscall.ENOSPC) {
			t.Errorf("allocating: got %v, want ENOSPC", err)
		}
	})
	if _, err := os.Create(m.path("other")); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("a new file: got %v, want ENOSPC", err)
	}
	m.want("file", "SYNCED")
	m.Fill(false)
	m.put("file", "free")
	m.want("file", "free")
}

// A file that is open prevents a cut: a power failure ends all programs.
func TestCutRefusesOpenFiles(t *testing.T) {
	m := mount(t, cutdisk.Ordered)
	m.open("file", 0, func(*os.File) {
		if _, err := m.Cut(nil); err == nil {
			t.Error("got a cut under an open file, want an error")
		}
	})
	m.cut()
}

// Random changes and cuts of two files, against two byte slices each: the current and the synced content.
func TestCutAgainstModel(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	chance := rand.New(rand.NewPCG(seed, 0))
	m := mount(t, cutdisk.Ordered)
	names := []string{"a", "b"}
	current, synced := map[string][]byte{}, map[string][]byte{}
	for step := range 2000 {
		name := names[chance.IntN(2)]
		m.open(name, 0, func(f *os.File) {
			for range 1 + chance.IntN(5) {
				current[name], synced[name] = changed(t, chance, f, current[name], synced[name])
			}
			got, err := io.ReadAll(io.NewSectionReader(f, 0, 1<<20))
			check(t, err)
			if !bytes.Equal(got, current[name]) {
				t.Fatalf("step %d: got %d bytes of %s that differ from the model's %d", step, len(got), name, len(current[name]))
			}
		})
		if chance.IntN(10) > 0 {
			continue
		}
		m.cut()
		for _, name := range names {
			current[name] = bytes.Clone(synced[name])
			got, err := os.ReadFile(m.path(name))
			if err != nil && !os.IsNotExist(err) || !bytes.Equal(got, current[name]) {
				t.Fatalf("step %d: after the cut got %d bytes of %s, %v, that differ from the synced %d", step, len(got), name, err, len(synced[name]))
			}
		}
	}
}

// changed changes or syncs the file, and returns the contents that it has then.
func changed(t *testing.T, chance *rand.Rand, f *os.File, current, synced []byte) (now, durable []byte) {
	t.Helper()
	at := chance.IntN(20000)
	switch chance.IntN(4) {
	case 0:
		check(t, f.Sync())
		return current, bytes.Clone(current)
	case 1:
		check(t, f.Truncate(int64(at)))
		return resized(current, at), synced
	default:
		data := bytes.Repeat([]byte{byte(1 + chance.IntN(255))}, 1+chance.IntN(9000))
		_, err := f.WriteAt(data, int64(at))
		check(t, err)
		current = resized(current, max(len(current), at+len(data)))
		copy(current[at:], data)
		return current, synced
	}
}

func resized(content []byte, length int) []byte {
	return append(content[:min(len(content), length):min(len(content), length)], make([]byte, max(0, length-len(content)))...)
}
