package datadir_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/parley-chat/parley/services/standalone/internal/datadir"
)

func TestOneOwnerAtATime(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "data")
	first, err := datadir.Open(path)
	if err != nil {
		t.Fatalf("first Open: %v", err)
	}
	if _, err := datadir.Open(path); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("in use by another standalone (process %d: kill ", os.Getpid())) {
		t.Errorf("second Open: got error %v, want one that names the process that uses the folder", err)
	}
	first.Close()
	again, err := datadir.Open(path)
	if err != nil {
		t.Fatalf("Open after Close: %v", err)
	}
	again.Close()
}

func TestWriteFileReplacesAndLeavesNothingElse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "demo.json")
	for _, content := range []string{"first, and longer", "second"} {
		if err := datadir.WriteFile(path, []byte(content)); err != nil {
			t.Fatalf("WriteFile: %v", err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != content {
			t.Errorf("after WriteFile: got %q, %v, want %q", got, err, content)
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

func TestWriteFileFailsWithoutTrace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	target := filepath.Join(dir, "taken") // a folder that is not empty cannot be replaced by a file
	if err := os.MkdirAll(filepath.Join(target, "inside"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := datadir.WriteFile(target, []byte("x")); err == nil {
		t.Error("WriteFile over a folder: got no error")
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 1 {
		t.Errorf("folder: got %v, %v, want only what was there", entries, err)
	}
}
