package http

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-chat/parley/pkg/attachment"
	"github.com/parley-chat/parley/pkg/file"
)

// oneFile is a store with one file.
type oneFile struct {
	file.Store
	file    file.File
	release chan struct{} // reads wait until it is closed; nil: they do not

	mu   sync.Mutex
	read int // bytes that were read from the store
}

const fileSize = 1 << 20

func newFile() *oneFile {
	return &oneFile{file: file.File{ID: file.NewID(time.Time{}), Name: "a.bin", ContentType: "application/octet-stream", Size: fileSize, Tag: "tag"}}
}

// Open implements [file.Store].
func (s *oneFile) Open(context.Context, string) (file.File, file.Content, error) {
	return s.file, s, nil
}

// From implements [file.Content].
func (s *oneFile) From(_ context.Context, offset int64) (io.ReadCloser, error) {
	return &content{store: s, rest: io.LimitReader(zeros{}, fileSize-offset)}, nil
}

func (s *oneFile) bytesRead() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.read
}

// content fetches chunks as the stores do: a read of one byte fetches all of its chunk.
type content struct {
	store *oneFile
	rest  io.Reader
	chunk []byte
}

func (c *content) Read(p []byte) (int, error) {
	if c.store.release != nil {
		<-c.store.release
	}
	if len(c.chunk) == 0 {
		chunk, err := io.ReadAll(io.LimitReader(c.rest, 128<<10))
		if len(chunk) == 0 {
			return 0, errors.Join(err, io.EOF)
		}
		c.chunk = chunk
		c.store.mu.Lock()
		c.store.read += len(chunk)
		c.store.mu.Unlock()
	}
	n := copy(p, c.chunk)
	c.chunk = c.chunk[n:]
	return n, nil
}

func (c *content) Close() error { return nil }

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// serving returns an API that serves the file.
func serving(s *oneFile) http.Handler {
	log := slog.New(slog.DiscardHandler)
	return New(Config{Files: attachment.New(attachment.Config{Store: s, Logger: log, Now: time.Now}), Now: time.Now, Logger: log})
}

func (s *oneFile) request(t *testing.T, address, ranges string) *http.Request {
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/files/"+s.file.ID+"/"+s.file.Name, nil)
	r.RemoteAddr = address + ":1234"
	if ranges != "" {
		r.Header.Set("Range", ranges)
	}
	return r
}

// A request reads at most one file from the store, however many ranges it names.
func TestManyRangesReadOneFile(t *testing.T) {
	t.Parallel()
	for name, ranges := range map[string]string{
		"one byte of each chunk, many times": "bytes=0-0" + strings.Repeat(",131072-131072,0-0", 3000),
		"the whole, many times":              "bytes=0-" + strings.Repeat(",0-", 100),
		"backwards":                          "bytes=-1,524288-524288,0-0",
	} {
		s, got := newFile(), httptest.NewRecorder()
		serving(s).ServeHTTP(got, s.request(t, "192.0.2.1", ranges))
		if read := s.bytesRead(); read > fileSize || got.Code != http.StatusOK || got.Body.Len() != fileSize {
			t.Errorf("%s: got %d with %d bytes, and %d read from the store; want 200 with the file, read once", name, got.Code, got.Body.Len(), read)
		}
	}
}

// leaving is a client that disconnects after the first bytes.
type leaving struct{ *httptest.ResponseRecorder }

func (l leaving) Write(p []byte) (int, error) {
	if l.Body.Len() > 0 {
		return 0, errors.New("the client has disconnected")
	}
	return l.ResponseRecorder.Write(p)
}

func (l leaving) WriteString(s string) (int, error) { return l.Write([]byte(s)) }

// A file is read by the goroutine of its request only, which closes it: nothing reads it after a client has
// disconnected. For several ranges, http.ServeContent would start a goroutine that goes on reading while the
// file is being closed; the race detector reports it.
func TestNothingReadsAClosedFile(t *testing.T) {
	t.Parallel()
	s := newFile()
	api := serving(s)
	for range 20 {
		api.ServeHTTP(leaving{httptest.NewRecorder()}, s.request(t, "192.0.2.1", "bytes=0-300000,300001-600000,600001-900000"))
	}
}

// An address has a share of the downloads at once. Its next download gets 429, and another address downloads.
func TestDownloadsOfAnAddress(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newFile()
		s.release = make(chan struct{})
		api := serving(s)
		var downloading sync.WaitGroup
		download := func(address string) {
			downloading.Go(func() {
				got := httptest.NewRecorder()
				api.ServeHTTP(got, s.request(t, address, ""))
				if got.Code != http.StatusOK || got.Body.Len() != fileSize {
					t.Errorf("%s: got %d with %d bytes, want the file", address, got.Code, got.Body.Len())
				}
			})
		}
		for range 32 {
			download("192.0.2.1")
		}
		synctest.Wait()
		refused, answered := httptest.NewRecorder(), false
		go func() {
			api.ServeHTTP(refused, s.request(t, "192.0.2.1", ""))
			answered = true
		}()
		time.Sleep(time.Minute)
		synctest.Wait()
		if !answered || refused.Code != http.StatusTooManyRequests || !bytes.Contains(refused.Body.Bytes(), []byte("TOO_MANY_DOWNLOADS")) ||
			refused.Header().Get("Retry-After") != "5" {
			t.Errorf("one more of the address: got %d %s, want 429 TOO_MANY_DOWNLOADS and Retry-After", refused.Code, refused.Body)
		}
		download("192.0.2.2")
		synctest.Wait()
		close(s.release)
		downloading.Wait()
	})
}
