package s3file

import (
	"context"
	"strings"
	"time"

	"github.com/minio/minio-go/v7"

	"github.com/parley-chat/parley/pkg/file"
)

// Sweep implements [file.Store].
func (s *Store) Sweep(ctx context.Context, now time.Time) (file.Swept, error) {
	var swept file.Swept
	var err error
	if swept.Expired, err = s.sweepExpired(ctx, now); err != nil {
		return swept, err
	}
	swept.Orphans, err = s.sweepUploads(ctx, now)
	return swept, err
}

// sweepExpired reads the listing, which is sorted by expiry, up to the first file that has not expired.
func (s *Store) sweepExpired(ctx context.Context, now time.Time) (removed int, err error) {
	ctx, cancel := context.WithCancel(ctx) // ends the listing
	defer cancel()
	for object := range s.core.ListObjectsIter(ctx, s.bucket, minio.ListObjectsOptions{Prefix: prefix, Recursive: true}) {
		if object.Err != nil {
			return removed, coded("listing the files", object.Err)
		}
		id := strings.TrimPrefix(object.Key, prefix)
		if !file.ValidID(id) {
			continue
		}
		if !file.Expired(id, now) {
			break
		}
		if err := s.Delete(ctx, id); err != nil {
			return removed, err
		}
		removed++
	}
	return removed, nil
}

// sweepUploads aborts abandoned multipart uploads.
func (s *Store) sweepUploads(ctx context.Context, now time.Time) (removed int, err error) {
	ctx, cancel := context.WithCancel(ctx) // ends the listing
	defer cancel()
	for upload := range s.core.ListIncompleteUploads(ctx, s.bucket, prefix, true) {
		if minio.ToErrorResponse(upload.Err).Code == minio.NoSuchUpload {
			return removed, nil // some servers respond like this if there are none
		}
		if upload.Err != nil {
			return removed, coded("listing the unfinished uploads", upload.Err)
		}
		if now.Sub(upload.Initiated) < file.OrphanAge {
			continue
		}
		if err := s.core.AbortMultipartUpload(ctx, s.bucket, upload.Key, upload.UploadID); err != nil {
			return removed, coded("ending an unfinished upload", err)
		}
		removed++
	}
	return removed, nil
}
