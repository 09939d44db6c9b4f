package natsfile_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/file"
	"github.com/parley-chat/parley/pkg/file/natsfile"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/filetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, bustest.LeftByNATS()...) }

func open(t *testing.T, maxBytes int64) filetest.Harness {
	server := bustest.StartSized(t, bus.StreamSettings{MaxBytes: 1 << 20, FilesMaxBytes: maxBytes})
	b, observer := bustest.Open(t, server.URL()), bustest.JetStream(t, server.URL())
	return filetest.Harness{
		Store: natsfile.New(b),
		Leftovers: func(t testing.TB) int {
			t.Helper()
			stream, err := observer.Stream(context.Background(), "OBJ_FILES")
			if err != nil {
				t.Fatalf("looking at the bucket: %v", err)
			}
			return int(stream.CachedInfo().State.Msgs)
		},
		Crash:  func(testing.TB) { b.Close() },
		Revive: func(t testing.TB) file.Store { return natsfile.New(bustest.Open(t, server.URL())) },
	}
}

func TestContract(t *testing.T) {
	t.Parallel()
	filetest.Run(t, func(t *testing.T) filetest.Harness { return open(t, 1<<30) })
}

// A full bucket rejects a file, keeps nothing of it, and accepts the next file that fits.
func TestFull(t *testing.T) {
	t.Parallel()
	h := open(t, 1<<20)
	_, err := h.Store.Put(t.Context(), file.File{ID: file.NewID(time.Time{})}, io.LimitReader(zeros{}, 2<<20))
	var coded *apperr.Error
	if !errors.As(err, &coded) || coded.Code != apperr.Unavailable || coded.Reason != apperr.FileStoreFull.Reason || coded.RetryAfter < time.Second {
		t.Errorf("got %v, want Unavailable with %s", err, apperr.FileStoreFull.Reason)
	}
	if got := h.Leftovers(t); got != 0 {
		t.Errorf("got %d messages, want none", got)
	}
	if _, err := h.Store.Put(t.Context(), file.File{ID: file.NewID(time.Time{})}, io.LimitReader(zeros{}, 1<<19)); err != nil {
		t.Errorf("a file that fits: got %v, want nil", err)
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// Object store clients can read our files.
func TestObjectStoreFormat(t *testing.T) {
	t.Parallel()
	server := bustest.Start(t)
	js := bustest.JetStream(t, server.URL())
	s := natsfile.New(bustest.Open(t, server.URL()))
	content := bytes.Repeat([]byte("parley "), 60_000)
	f, err := s.Put(t.Context(), file.File{ID: file.NewID(time.Time{}), Name: "a.txt"}, bytes.NewReader(content))
	if err != nil {
		t.Fatalf("Put: %v", err)
	}
	bucket, err := js.ObjectStore(t.Context(), natsfile.Bucket)
	if err != nil {
		t.Fatalf("ObjectStore: %v", err)
	}
	got, err := bucket.GetBytes(t.Context(), f.ID) // verifies the digest
	if err != nil || !bytes.Equal(got, content) {
		t.Errorf("GetBytes: got %d bytes, %v, want the content", len(got), err)
	}
	info, err := bucket.GetInfo(t.Context(), f.ID)
	if err != nil || info.Size != uint64(len(content)) || info.Chunks != 4 || info.Description != "a.txt" {
		t.Errorf("GetInfo: got %+v, %v, want 4 chunks", info, err)
	}
	if err := bucket.Delete(t.Context(), f.ID); err != nil {
		t.Fatalf("Delete: %v", err)
	}
	if _, _, err := s.Open(t.Context(), f.ID); !apperr.Is(err, apperr.NotFound) {
		t.Errorf("Open after another client's removal: got %v, want NotFound", err)
	}
}

// The store does not create the bucket: without one it fails, and it works again once the bucket is created.
func TestBucketIsCreatedLater(t *testing.T) {
	t.Parallel()
	server := bustest.Start(t)
	js := bustest.JetStream(t, server.URL())
	s := natsfile.New(bustest.Open(t, server.URL()))
	putSmall := func() error {
		_, err := s.Put(t.Context(), file.File{ID: file.NewID(time.Time{})}, strings.NewReader("x"))
		return err
	}
	if err := putSmall(); err != nil {
		t.Fatalf("Put: %v", err)
	}
	if err := js.DeleteObjectStore(t.Context(), natsfile.Bucket); err != nil {
		t.Fatalf("DeleteObjectStore: %v", err)
	}
	for range 2 {
		if err := putSmall(); !apperr.Is(err, apperr.Unavailable) {
			t.Errorf("Put without a bucket: got %v, want Unavailable", err)
		}
	}
	if _, err := js.Stream(t.Context(), bus.FilesStream); !errors.Is(err, jetstream.ErrStreamNotFound) {
		t.Errorf("got %v, want no bucket", err)
	}
	bustest.DeclareSmall(t, server.URL())
	if err := putSmall(); err != nil {
		t.Errorf("Put after it: got %v, want nil", err)
	}
}
