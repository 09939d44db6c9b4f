package s3file

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	"sync"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/parley-chat/parley/pkg/file"
)

const (
	partSize       = 5 << 20 // the minimum of S3, and the memory of an upload
	cleanUpTimeout = 10 * time.Second
)

var parts = sync.Pool{New: func() any { b := make([]byte, partSize); return &b }}

// Put implements [file.Store].
func (s *Store) Put(ctx context.Context, f file.File, content io.Reader) (_ file.File, err error) {
	buf := parts.Get().(*[]byte)
	defer parts.Put(buf)
	n, err := file.Fill(content, *buf)
	if err != nil && !file.Ended(err) {
		return file.File{}, fmt.Errorf("storing a file: %w", err)
	}
	u := &upload{store: s, key: key(f.ID), options: minio.PutObjectOptions{
		ContentType: f.ContentType, UserMetadata: map[string]string{keyApp: f.AppID, keyName: url.PathEscape(f.Name)},
		DisableContentSha256: true, // of the framing; see digest
	}}
	defer func() {
		if err != nil {
			u.undo(ctx)
		}
	}()
	if file.Ended(err) {
		err = u.whole(ctx, (*buf)[:n])
	} else {
		err = u.inParts(ctx, *buf, content)
	}
	f.Size, f.StoredAt = u.size, time.Now().UTC()
	return f, err
}

// upload is one file being stored in the bucket.
type upload struct {
	store   *Store
	key     string
	options minio.PutObjectOptions
	id      string // of the multipart upload; empty: not started
	parts   []minio.CompletePart
	size    int64
}

func (u *upload) whole(ctx context.Context, content []byte) error {
	u.size = int64(len(content))
	_, err := u.store.core.PutObject(
		ctx, u.store.bucket, u.key, bytes.NewReader(content), u.size, "", digest(content), u.options,
	)
	return failure(ctx, err)
}

// inParts sends buf, which is full, and the rest; it reuses buf for every part.
func (u *upload) inParts(ctx context.Context, buf []byte, rest io.Reader) (err error) {
	if u.id, err = u.store.core.NewMultipartUpload(ctx, u.store.bucket, u.key, u.options); err != nil {
		return failure(ctx, err)
	}
	n, ended := len(buf), false
	for n > 0 {
		if err := u.part(ctx, buf[:n]); err != nil {
			return err
		}
		if ended {
			break
		}
		n, err = file.Fill(rest, buf)
		if err != nil && !file.Ended(err) {
			return fmt.Errorf("storing a file: %w", err)
		}
		ended = file.Ended(err)
	}
	_, err = u.store.core.CompleteMultipartUpload(ctx, u.store.bucket, u.key, u.id, u.parts, u.options)
	return failure(ctx, err)
}

func (u *upload) part(ctx context.Context, content []byte) error {
	number := len(u.parts) + 1
	p, err := u.store.core.PutObjectPart(
		ctx,
		u.store.bucket,
		u.key,
		u.id,
		number,
		bytes.NewReader(
			content,
		),
		int64(len(content)),
		minio.PutObjectPartOptions{Sha256Hex: digest(content), DisableContentSha256: true},
	)
	if err != nil {
		return failure(ctx, err)
	}
	u.parts = append(u.parts, minio.CompletePart{PartNumber: number, ETag: p.ETag})
	u.size += int64(len(content))
	return nil
}

// digest returns the content hash that a request's signature covers. Computing it up front avoids the chunked framing
// (aws-chunked), which not every server supports.
func digest(content []byte) string {
	sum := sha256.Sum256(content)
	return hex.EncodeToString(sum[:])
}

// failure distinguishes errors of the sender from errors of the store.
func failure(ctx context.Context, err error) error {
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return fmt.Errorf("storing a file: %w", ctx.Err())
	}
	return coded("storing a file", err)
}

// undo removes what has been sent, even if the sender has disconnected. If that fails too, a sweep removes it.
func (u *upload) undo(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), cleanUpTimeout)
	defer cancel()
	if u.id != "" {
		_ = u.store.core.AbortMultipartUpload(ctx, u.store.bucket, u.key, u.id)
	}
	// a failed request may have succeeded on the server
	_ = u.store.core.RemoveObject(ctx, u.store.bucket, u.key, minio.RemoveObjectOptions{})
}
