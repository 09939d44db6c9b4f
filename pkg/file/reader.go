package file

import (
	"context"
	"errors"
	"fmt"
	"io"
)

// Reader is an [io.ReadSeeker] of a file, for serving ranges: seeking is free, and only the parts that are read are
// requested from the store. It is not safe for concurrent use.
type Reader struct {
	ctx     context.Context
	content Content
	size    int64
	offset  int64
	open    io.ReadCloser // reads at offset; nil: not requested yet
	err     error
}

// NewReader returns a reader at the beginning of a file. ctx bounds the reading. Close it.
func NewReader(ctx context.Context, f File, content Content) *Reader {
	return &Reader{ctx: ctx, content: content, size: f.Size}
}

// Read implements [io.Reader].
func (r *Reader) Read(p []byte) (int, error) {
	if r.offset >= r.size {
		return 0, io.EOF
	}
	if r.open == nil {
		if r.open, r.err = r.content.From(r.ctx, r.offset); r.err != nil {
			r.open = nil
			return 0, r.err
		}
	}
	n, err := r.open.Read(p)
	r.offset += int64(n)
	if Ended(err) && r.offset < r.size {
		err = fmt.Errorf("a file of %d bytes ends at %d: %w", r.size, r.offset, io.ErrUnexpectedEOF)
	}
	if err != nil && !Ended(err) {
		r.err = err
	}
	return n, err
}

// Seek implements [io.Seeker].
func (r *Reader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += r.offset
	case io.SeekEnd:
		offset += r.size
	}
	if offset < 0 {
		return 0, errors.New("seeking before the beginning of a file")
	}
	if offset != r.offset {
		_ = r.Close()
		r.offset = offset
	}
	return offset, nil
}

// Err returns the error of a failed read, since some functions that copy from the reader drop it.
func (r *Reader) Err() error { return r.err }

// Close closes the current content; a later Read reopens it.
func (r *Reader) Close() error {
	if r.open == nil {
		return nil
	}
	open := r.open
	r.open = nil
	return open.Close()
}

// Ended reports whether err is a plain io.EOF, the regular end of a reader. A wrapped io.EOF means that something else
// ended early.
func Ended(err error) bool {
	return err == io.EOF //nolint:errorlint // see above
}

// Fill reads until buf is full or the reader ends, which it reports as io.EOF. Unlike io.ReadFull it returns the
// reader's own error, so that truncated content is not mistaken for short content.
func Fill(r io.Reader, buf []byte) (n int, err error) {
	for n < len(buf) && err == nil {
		var m int
		m, err = r.Read(buf[n:])
		n += m
	}
	return n, err
}
