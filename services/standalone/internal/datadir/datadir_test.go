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
