// Package backend opens the configured file store.
package backend

import (
	"fmt"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/file"
	"github.com/parley-chat/parley/pkg/file/natsfile"
	"github.com/parley-chat/parley/pkg/file/s3file"
)

// Open opens the store. With NATS, closing b also closes the store. Open needs no connection.
func Open(cfg config.Files, b *bus.Bus) (s file.Store, closer func(), err error) {
	if cfg.FileStore != config.FileStoreS3 {
		return natsfile.New(b), func() {}, nil
	}
	bucket, err := s3file.New(s3file.Config{
		Endpoint:        cfg.S3Endpoint,
		Region:          cfg.S3Region,
		Bucket:          cfg.S3Bucket,
		AccessKeyID:     cfg.S3AccessKeyID,
		SecretAccessKey: cfg.S3SecretAccessKey,
	})
	if err != nil {
		return nil, nil, fmt.Errorf("S3_ENDPOINT: %w", err)
	}
	return bucket, bucket.Close, nil
}
