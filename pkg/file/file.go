package file

import (
	"context"
	"io"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
)

// File is what is known of a file that is kept.
type File struct {
	ID          string // see [NewID]
	AppID       string // the application whose visitor sent it
	Name        string // see [CleanName]
	ContentType string // of the content, with parameters
	Size        int64  // bytes
	Tag         string // changes whenever the content does; letters, digits, - and _; set by Open only
	StoredAt    time.Time
}

// Content is a file that can be read. Several readers may be open at once.
type Content interface {
	// From reads from offset, at most the file's size, to the end. ctx bounds the reading.
	From(ctx context.Context, offset int64) (io.ReadCloser, error)
}

// Store keeps files. It is safe for concurrent use.
//
// Errors: apperr.NotFound for a missing file; apperr.Unavailable while the store is away, with the reason of [apperr.FileStoreFull] if it is full.
// Errors of the reader of Put are wrapped.
type Store interface {
	// Put keeps what content reads until its end, under f.ID, which must be new. It returns f with its size and time.
	// When it fails, or ctx ends, nothing is left of the file.
	Put(ctx context.Context, f File, content io.Reader) (File, error)
	// Open finds a file, whether or not it has expired.
	Open(ctx context.Context, id string) (File, Content, error)
	// Delete removes a file and its bytes. A missing file is no error.
	Delete(ctx context.Context, id string) error
	// Sweep removes the files that have expired at now, and what uploads have left that were cut off by the end of their
	// process and have not moved for [OrphanAge].
	Sweep(ctx context.Context, now time.Time) (Swept, error)
}

// Swept is what a sweep has removed.
type Swept struct {
	Expired int // files
	Orphans int // remains of uploads
}

// OrphanAge is how long an unfinished upload must have been at rest before a sweep takes it for abandoned. It is far above the
// time that an upload may take.
const OrphanAge = time.Hour

// fullRetryAfter is long: space is freed when files expire or an operator adds some.
const fullRetryAfter = 30 * time.Second

// NotFound says that there is no such file.
func NotFound() *apperr.Error {
	return apperr.FileNotFound.New()
}

// Full says that the store has no room left, and why it thinks so.
func Full(cause error) *apperr.Error {
	e := apperr.Away("file store", cause)
	e.Reason, e.RetryAfter = apperr.FileStoreFull.Reason, fullRetryAfter
	return e
}
