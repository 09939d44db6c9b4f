package bustest

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"testing"
)

// Messages returns the folder of a stream's messages in the directory of a server.
func Messages(dir, stream string) string {
	return filepath.Join(dir, "jetstream", "$G", "streams", stream, "msgs")
}

// Damage changes one byte of a text that a stream stores in the directory of a server. The server may run.
func Damage(t testing.TB, dir, stream, text string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(Messages(dir, stream), "*.blk"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		block, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		at := bytes.Index(block, []byte(text))
		if at < 0 {
			continue
		}
		f, err := os.OpenFile(file, os.O_WRONLY, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, err = f.WriteAt([]byte{block[at] ^ 1}, int64(at))
		if err := errors.Join(err, f.Close()); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Fatalf("%s has no text %q", stream, text)
}
