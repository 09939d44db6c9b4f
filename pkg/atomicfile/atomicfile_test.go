package atomicfile_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/parley-chat/parley/pkg/atomicfile"
)

func TestWriteReplacesAndLeavesNothingElse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "demo.json")
	if err := os.WriteFile(filepath.Join(dir, ".demo.json.draft"), []byte("a secret that a crash has left"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, content := range []string{"first, and longer", "second"} {
		if err := atomicfile.Write(path, []byte(content)); err != nil {
			t.Fatalf("Write: %v", err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != content {
			t.Errorf("after Write: got %q, %v, want %q", got, err, content)
		}
	}
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	if info.Mode().Perm() != 0o600 {
		t.Errorf("mode: got %v, want 0600", info.Mode().Perm())
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("folder: got %v, %v, want only demo.json", entries, err)
	}
}

func TestWriteFailsWithoutTrace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	target := filepath.Join(dir, "taken") // a folder that is not empty cannot be replaced by a file
	if err := os.MkdirAll(filepath.Join(target, "inside"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Write(target, []byte("x")); err == nil {
		t.Error("Write over a folder: got no error")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("folder: got %v, %v, want only what was there", entries, err)
	}
}
