package file_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/file"
)

// memory stores one file.
type memory struct {
	file.Store
	stored string
}

func (m *memory) Put(_ context.Context, f file.File, content io.Reader) (file.File, error) {
	text, err := io.ReadAll(content)
	m.stored, f.Size = string(text), int64(len(text))
	return f, err
}

// The sniffed beginning is stored too, whatever the file's length.
func TestKeepStoresAllOfTheContent(t *testing.T) {
	t.Parallel()
	for _, size := range []int{1, file.SniffLength - 1, file.SniffLength, file.SniffLength + 1, 3 * file.SniffLength} {
		m, text := new(memory), strings.Repeat("x", size)
		kind, content, err := file.Sniff(strings.NewReader(text), "")
		if err != nil || kind.Type != chat.File {
			t.Fatalf("%d bytes: got %+v, %v, want a text file", size, kind, err)
		}
		kept, err := file.Keep(t.Context(), m, file.File{AppID: "app", Name: "../a.txt"}, kind, content)
		if err != nil || m.stored != text || kept.AppID != "app" || kept.Name != "a.txt" || kept.ContentType != kind.ContentType || len(kept.Digest) != 64 {
			t.Errorf("%d bytes: got %d, %+v, %v, want all of it", size, len(m.stored), kept, err)
		}
	}
}

func TestSniffErrors(t *testing.T) {
	t.Parallel()
	if _, _, err := file.Sniff(strings.NewReader(""), ""); !apperr.Is(err, apperr.Invalid) {
		t.Errorf("empty content: got %v, want Invalid", err)
	}
	read := errors.New("broken line")
	if _, _, err := file.Sniff(io.MultiReader(strings.NewReader("x"), iotest.ErrReader(read)), ""); !errors.Is(err, read) {
		t.Errorf("got %v, want the reader's error", err)
	}
}

func TestExpiry(t *testing.T) {
	t.Parallel()
	now := time.Unix(1000, 0)
	for _, c := range []struct {
		app, fallback time.Duration
		want          time.Time
	}{{0, 0, time.Time{}}, {0, time.Hour, now.Add(time.Hour)}, {time.Minute, 0, now.Add(time.Minute)}, {time.Minute, time.Hour, now.Add(time.Minute)}} {
		if got := file.Expiry(chat.Application{FileRetention: c.app}, c.fallback, now); !got.Equal(c.want) {
			t.Errorf("application %v, fallback %v: got %v, want %v", c.app, c.fallback, got, c.want)
		}
	}
}
