// Package filetest is the contract suite of [file.Store]: every store passes the same tests.
package filetest

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/file"
)

// Harness is a store for one test.
type Harness struct {
	Store file.Store
	// Leftovers counts the stored parts of files: chunks, objects, unfinished uploads.
	Leftovers func(t testing.TB) int
	// Crash disconnects Store from its backend, as the end of its process would: it can neither continue nor clean up.
	Crash func(t testing.TB)
	// Revive returns a new store on the crashed one's backend.
	Revive func(t testing.TB) file.Store
}

// Run runs the contract suite. open is called for every test.
func Run(t *testing.T, open func(t *testing.T) Harness) {
	for name, test := range map[string]func(*testing.T, Harness){
		"RoundTrip":    roundTrip,
		"NotThere":     notThere,
		"Delete":       remove,
		"ContentFails": contentFails,
		"SenderGoes":   senderGoes,
		"Expired":      expired,
		"Crash":        crash,
		"ManyAtOnce":   manyAtOnce,
		"Seek":         seek,
		"Space":        space,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

const large = 11<<20 + 7 // several chunks of every store, and a short one

func newFile(expires time.Time) file.File {
	return file.File{ID: file.NewID(expires), AppID: "33333333-3333-4333-8333-333333333333", Name: "گزارش ۲۰۲۶ “naïve” 100%.pdf", ContentType: "text/plain; charset=utf-8"}
}

// random returns the same bytes for the same size.
func random(size int) []byte {
	content := make([]byte, size)
	_, _ = rand.NewChaCha8([32]byte{byte(size)}).Read(content)
	return content
}

func put(t *testing.T, s file.Store, f file.File, content []byte) file.File {
	t.Helper()
	// The reader returns small pieces, as a network connection does.
	stored, err := s.Put(t.Context(), f, io.MultiReader(bytes.NewReader(content[:len(content)/3]), bytes.NewReader(content[len(content)/3:])))
	if err != nil {
		t.Fatalf("Put: %v", err)
	}
	return stored
}

func read(t *testing.T, c file.Content, offset int64) []byte {
	t.Helper()
	r, err := c.From(t.Context(), offset)
	if err != nil {
		t.Fatalf("From %d: %v", offset, err)
	}
	defer r.Close()
	content, err := io.ReadAll(r)
	if err != nil {
		t.Fatalf("reading from %d: %v", offset, err)
	}
	return content
}

func roundTrip(t *testing.T, h Harness) {
	tags := map[string]bool{}
	for _, size := range []int{1, 128<<10 - 1, 128 << 10, 128<<10 + 1, 5 << 20, large} {
		content, f := random(size), newFile(time.Time{})
		stored := put(t, h.Store, f, content)
		found, c, err := h.Store.Open(t.Context(), f.ID)
		if err != nil {
			t.Fatalf("%d bytes: Open: %v", size, err)
		}
		if found.ID != f.ID || found.AppID != f.AppID || found.Name != f.Name || found.ContentType != f.ContentType ||
			found.Size != int64(size) || stored.Size != found.Size || time.Since(found.StoredAt).Abs() > time.Hour {
			t.Errorf("%d bytes: got %+v, want what was put: %+v", size, found, stored)
		}
		if again, _, err := h.Store.Open(t.Context(), f.ID); err != nil || again.Tag != found.Tag || strings.ContainsAny(found.Tag, `"\ `) {
			t.Errorf("%d bytes: got the tag %q, then %q, %v, want the same", size, found.Tag, again.Tag, err)
		}
		tags[found.Tag] = true
		for _, offset := range []int{0, 1, size / 2, size - 1, size, max(size-128<<10, 0)} {
			if got := read(t, c, int64(offset)); !bytes.Equal(got, content[offset:]) {
				t.Errorf("%d bytes: got %d from %d, want the rest of the content", size, len(got), offset)
			}
		}
	}
	if len(tags) != 6 {
		t.Errorf("got %d tags, want one for each content", len(tags))
	}
}

func notThere(t *testing.T, h Harness) {
	for _, id := range []string{file.NewID(time.Time{}), "", "x", "../../etc/passwd", "zzzzzzz-*", newFile(time.Time{}).ID + ">"} {
		if _, _, err := h.Store.Open(t.Context(), id); !apperr.Is(err, apperr.NotFound) {
			t.Errorf("Open %q: got %v, want NotFound", id, err)
		}
		if err := h.Store.Delete(t.Context(), id); err != nil {
			t.Errorf("Delete %q: got %v, want nil", id, err)
		}
	}
}

func remove(t *testing.T, h Harness) {
	keep, content := put(t, h.Store, newFile(time.Time{}), random(10)), random(large)
	before := h.Leftovers(t)
	f := put(t, h.Store, newFile(time.Time{}), content)
	if h.Leftovers(t) == before {
		t.Fatal("got no trace of a file that was put: the test proves nothing")
	}
	for range 2 {
		if err := h.Store.Delete(t.Context(), f.ID); err != nil {
			t.Errorf("Delete: %v", err)
		}
	}
	if _, _, err := h.Store.Open(t.Context(), f.ID); !apperr.Is(err, apperr.NotFound) {
		t.Errorf("Open: got %v, want NotFound", err)
	}
	if got := h.Leftovers(t); got != before {
		t.Errorf("got %d things kept, want %d as before", got, before)
	}
	if _, _, err := h.Store.Open(t.Context(), keep.ID); err != nil {
		t.Errorf("the other file: got %v, want it untouched", err)
	}
}

var errContent = errors.New("the content ends here")

func contentFails(t *testing.T, h Harness) {
	for _, failure := range []error{errContent, io.ErrUnexpectedEOF} {
		for _, after := range []int{0, 100, 200 << 10, large} {
			f := newFile(time.Time{})
			_, err := h.Store.Put(t.Context(), f, io.MultiReader(bytes.NewReader(random(after)), failing{failure}))
			if !errors.Is(err, failure) {
				t.Errorf("after %d bytes: got %v, want the reader's error", after, err)
			}
			if _, _, err := h.Store.Open(t.Context(), f.ID); !apperr.Is(err, apperr.NotFound) {
				t.Errorf("after %d bytes: Open: got %v, want NotFound", after, err)
			}
			if got := h.Leftovers(t); got != 0 {
				t.Errorf("after %d bytes: got %d things kept, want none", after, got)
			}
		}
	}
}

type failing struct{ err error }

func (f failing) Read([]byte) (int, error) { return 0, f.err }

// senderGoes cancels the context during an upload whose content would continue.
func senderGoes(t *testing.T, h Harness) {
	ctx, cancel := context.WithCancel(t.Context())
	content := &blockingReader{open: random(large), reached: make(chan struct{}), release: make(chan struct{})}
	done := make(chan error, 1)
	go func() {
		_, err := h.Store.Put(ctx, newFile(time.Time{}), content)
		done <- err
	}()
	<-content.reached
	cancel()
	close(content.release)
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
	if got := h.Leftovers(t); got != 0 {
		t.Errorf("got %d things kept, want none", got)
	}
}

// blockingReader returns its first part, signals that it has been read, and continues without end once it is released.
type blockingReader struct {
	open             []byte
	once             sync.Once
	reached, release chan struct{}
}

func (g *blockingReader) Read(p []byte) (int, error) {
	if len(g.open) > 0 {
		n := copy(p, g.open)
		g.open = g.open[n:]
		return n, nil
	}
	g.once.Do(func() { close(g.reached) })
	<-g.release
	return len(p), nil
}

func expired(t *testing.T, h Harness) {
	now := time.Now()
	var gone []file.File
	for range 3 {
		gone = append(gone, put(t, h.Store, newFile(now.Add(time.Hour)), random(300<<10)))
	}
	kept := put(t, h.Store, newFile(now.Add(3*time.Hour)), random(300<<10))
	forever := put(t, h.Store, newFile(time.Time{}), random(300<<10))
	if swept, err := h.Store.Sweep(t.Context(), now.Add(59*time.Minute)); err != nil || swept != (file.Swept{}) {
		t.Errorf("Sweep before: got %+v, %v, want nothing", swept, err)
	}
	before := h.Leftovers(t)
	swept, err := h.Store.Sweep(t.Context(), now.Add(2*time.Hour))
	if err != nil || swept != (file.Swept{Expired: 3}) {
		t.Errorf("Sweep: got %+v, %v, want 3 files", swept, err)
	}
	for _, f := range gone {
		if _, _, err := h.Store.Open(t.Context(), f.ID); !apperr.Is(err, apperr.NotFound) {
			t.Errorf("Open of an expired file: got %v, want NotFound", err)
		}
	}
	if got := h.Leftovers(t); got*5 != before*2 {
		t.Errorf("got %d of %d things kept, want those of 2 files of 5", got, before)
	}
	for _, f := range []file.File{kept, forever} {
		_, c, err := h.Store.Open(t.Context(), f.ID)
		if err != nil || len(read(t, c, 0)) != 300<<10 {
			t.Errorf("a file that has not expired: got %v, want it whole", err)
		}
	}
}

// crash ends an upload as kill -9 would, and checks that a sweep removes the rest.
func crash(t *testing.T, h Harness) {
	content := &blockingReader{open: random(large), reached: make(chan struct{}), release: make(chan struct{})}
	done := make(chan error, 1)
	go func() {
		_, err := h.Store.Put(t.Context(), newFile(time.Time{}), content)
		done <- err
	}()
	<-content.reached
	h.Crash(t)
	close(content.release)
	if err := <-done; err == nil {
		t.Error("Put: got nil, want an error")
	}
	revived := h.Revive(t)
	other := put(t, revived, newFile(time.Time{}), random(10))
	left := h.Leftovers(t)
	if swept, err := revived.Sweep(t.Context(), time.Now()); err != nil || swept != (file.Swept{}) {
		t.Errorf("Sweep at once: got %+v, %v, want nothing: it could still be going on", swept, err)
	}
	if got := h.Leftovers(t); got != left {
		t.Errorf("got %d things kept, want %d", got, left)
	}
	if swept, err := revived.Sweep(t.Context(), time.Now().Add(2*file.OrphanAge)); err != nil || swept != (file.Swept{Orphans: 1}) {
		t.Errorf("Sweep later: got %+v, %v, want the abandoned upload", swept, err)
	}
	if err := revived.Delete(t.Context(), other.ID); err != nil {
		t.Errorf("Delete: %v", err)
	}
	if got := h.Leftovers(t); got != 0 {
		t.Errorf("got %d things kept, want none", got)
	}
}

func manyAtOnce(t *testing.T, h Harness) {
	var uploads sync.WaitGroup
	for i := range 8 {
		uploads.Go(func() {
			content, f := random(700<<10+i), newFile(time.Time{})
			if _, err := h.Store.Put(t.Context(), f, bytes.NewReader(content)); err != nil {
				t.Errorf("Put: %v", err)
				return
			}
			_, c, err := h.Store.Open(t.Context(), f.ID)
			if err != nil {
				t.Errorf("Open: %v", err)
				return
			}
			a, errA := c.From(t.Context(), 0)
			b, errB := c.From(t.Context(), 300<<10)
			if errA != nil || errB != nil {
				t.Errorf("From: got %v, %v", errA, errB)
				return
			}
			defer a.Close()
			defer b.Close()
			gotB, errB := io.ReadAll(b)
			gotA, errA := io.ReadAll(a)
			if errA != nil || errB != nil || !bytes.Equal(gotA, content) || !bytes.Equal(gotB, content[300<<10:]) {
				t.Errorf("got %d and %d bytes, %v, %v, want the content", len(gotA), len(gotB), errA, errB)
			}
		})
	}
	uploads.Wait()
}

// space is unlimited, or counts each file.
func space(t *testing.T, h Harness) {
	ask := func() file.Space {
		t.Helper()
		s, err := h.Store.Space(t.Context())
		if err != nil {
			t.Fatalf("Space: %v", err)
		}
		return s
	}
	before := ask()
	f := put(t, h.Store, newFile(time.Time{}), random(large))
	full := ask()
	if err := h.Store.Delete(t.Context(), f.ID); err != nil {
		t.Fatalf("Delete: %v", err)
	}
	after := ask()
	if before.Capacity == 0 {
		return
	}
	const around = 64 << 10 // headers and metadata
	added := full.Used - before.Used
	if added < large || added > large+around || after.Used != before.Used || full.Capacity < full.Used {
		t.Errorf("got %+v, then with a file of %d bytes %+v, and %+v without it, want that it counts", before, large, full, after)
	}
}

// seek seeks in a file, as a video player does.
func seek(t *testing.T, h Harness) {
	f := put(t, h.Store, newFile(time.Time{}), random(large))
	found, c, err := h.Store.Open(t.Context(), f.ID)
	if err != nil {
		t.Fatalf("Open: %v", err)
	}
	r := file.NewReader(t.Context(), found, c)
	for _, offset := range []int64{0, large - 5, 6 << 20, 17} {
		if _, err := r.Seek(offset, io.SeekStart); err != nil {
			t.Fatalf("Seek: %v", err)
		}
		got := make([]byte, 5)
		if _, err := io.ReadFull(r, got); err != nil || !bytes.Equal(got, random(large)[offset:offset+5]) {
			t.Errorf("at %d: got %x, %v, want the content", offset, got, err)
		}
	}
	if err := r.Close(); err != nil || r.Err() != nil {
		t.Errorf("Close: got %v, %v, want nil", err, r.Err())
	}
}
