package file_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/parley-chat/parley/pkg/file"
)

// content is a file in memory that counts its reads.
type content struct {
	text  string
	fail  error
	asked []int64
	open  int
}

func (c *content) From(_ context.Context, offset int64) (io.ReadCloser, error) {
	c.asked = append(c.asked, offset)
	if c.fail != nil {
		return nil, c.fail
	}
	c.open++
	return &closing{strings.NewReader(c.text[offset:]), c}, nil
}

type closing struct {
	io.Reader
	content *content
}

func (c *closing) Close() error { c.content.open--; return nil }

func TestReader(t *testing.T) {
	t.Parallel()
	c := &content{text: strings.Repeat("parley", 1000)}
	r := file.NewReader(t.Context(), file.File{Size: int64(len(c.text))}, c)
	if err := iotest.TestReader(r, []byte(c.text)); err != nil {
		t.Error(err)
	}
	if err := r.Close(); err != nil || c.open != 0 || r.Err() != nil {
		t.Errorf("Close: got %v, %d open, %v, want all closed", err, c.open, r.Err())
	}
}

// Seeking to the end and back, to determine the size, does not access the store.
func TestReaderRequestsOnlyWhatIsRead(t *testing.T) {
	t.Parallel()
	c := &content{text: "0123456789"}
	r := file.NewReader(t.Context(), file.File{Size: 10}, c)
	for _, seek := range []struct {
		offset int64
		whence int
		want   int64
	}{{0, io.SeekEnd, 10}, {0, io.SeekStart, 0}, {3, io.SeekCurrent, 3}, {-2, io.SeekEnd, 8}} {
		if got, err := r.Seek(seek.offset, seek.whence); err != nil || got != seek.want {
			t.Errorf("Seek: got %d, %v, want %d", got, err, seek.want)
		}
	}
	if len(c.asked) != 0 {
		t.Errorf("got %v asked for, want nothing", c.asked)
	}
	if got, err := io.ReadAll(r); err != nil || string(got) != "89" || len(c.asked) != 1 || c.asked[0] != 8 {
		t.Errorf("got %q, %v from %v, want the last two bytes", got, err, c.asked)
	}
	if _, err := r.Seek(-1, io.SeekStart); err == nil {
		t.Error("Seek before the beginning: got no error, want one")
	}
	_ = r.Close()
}

func TestReaderErrReturnsTheStoresError(t *testing.T) {
	t.Parallel()
	away := errors.New("away")
	r := file.NewReader(t.Context(), file.File{Size: 10}, &content{fail: away})
	if _, err := r.Read(make([]byte, 1)); !errors.Is(err, away) || !errors.Is(r.Err(), away) {
		t.Errorf("got %v and %v, want the store's error", err, r.Err())
	}
	short := file.NewReader(t.Context(), file.File{Size: 10}, &content{text: "01234"})
	if _, err := io.ReadAll(short); !errors.Is(err, io.ErrUnexpectedEOF) || short.Err() == nil {
		t.Errorf("a file that is too short: got %v, want an unexpected end", err)
	}
	_ = short.Close()
}
