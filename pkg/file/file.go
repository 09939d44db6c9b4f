package file

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
)

// File is the metadata of a stored file.
type File struct {
	ID          string // see [NewID]
	AppID       string // the application whose visitor sent it
	Name        string // see [CleanName]
	ContentType string // detected from the content, with parameters
	Size        int64  // bytes
	Tag         string // changes whenever the content does; letters, digits, - and _; set by Open only
	StoredAt    time.Time
}

// Content is the readable content of a file. Several readers may be open at once.
type Content interface {
	// From returns a reader from offset, at most the file's size, to the end. ctx bounds the reading.
	From(ctx context.Context, offset int64) (io.ReadCloser, error)
}

// Store stores files. It is safe for concurrent use.
//
// Errors: apperr.NotFound for a missing file; apperr.Unavailable if the store is unreachable, with the reason of
// [apperr.FileStoreFull] if it is full. Errors of Put's reader are wrapped.
type Store interface {
	// Put stores content under f.ID, which must be new. It returns f with its size and time. If it fails, or ctx ends,
	// nothing of the file remains.
	Put(ctx context.Context, f File, content io.Reader) (File, error)
	// Open opens a file, whether or not it has expired.
	Open(ctx context.Context, id string) (File, Content, error)
	// Delete removes a file and its bytes. A missing file is not an error.
	Delete(ctx context.Context, id string) error
	// Sweep removes the files that have expired at now, and the remains of uploads that a terminated process left and
	// that have been idle for [OrphanAge].
	Sweep(ctx context.Context, now time.Time) (Swept, error)
	// Space returns how much the store may hold and holds.
	Space(ctx context.Context) (Space, error)
}

// Space is the size of a store in bytes, with what it needs besides the content of files.
type Space struct {
	Capacity int64 // 0: unlimited
	Used     int64 // 0 if unlimited
}

// Swept counts what a sweep has removed.
type Swept struct {
	Expired int // files
	Orphans int // remains of interrupted uploads
}

// OrphanAge is how long an unfinished upload must have been idle before a sweep removes it. It is far above the upload
// timeout.
const OrphanAge = time.Hour

// fullRetryAfter is long: space is freed only when files expire or an operator adds capacity.
const fullRetryAfter = 30 * time.Second

// NotFound returns the error for a missing file.
func NotFound() *apperr.Error {
	return apperr.FileNotFound.New()
}

// Full returns the error of a full store with its cause.
func Full(cause error) *apperr.Error {
	e := apperr.FileStoreFull.Wrap(fmt.Errorf("file store: %w", cause))
	e.RetryAfter = fullRetryAfter
	return e
}
