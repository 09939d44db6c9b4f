package panel

import (
	"fmt"
	"time"

	"github.com/parley-chat/parley/pkg/file"
	"github.com/parley-chat/parley/pkg/file/natsfile"
	"github.com/parley-chat/parley/pkg/file/s3file"
)

// The places where files can be kept.
const (
	fileStoreNATS = "nats"
	fileStoreS3   = "s3"
)

// FileConfig says where files are kept. It is the Widget API's, which serves them.
type FileConfig struct {
	FileStore         string        `env:"FILE_STORE" envDefault:"nats" doc:"where files are kept, as for the Widget API: nats or s3"`
	FileMaxBytes      int64         `env:"FILE_MAX_BYTES" envDefault:"26214400" doc:"bytes that an agent's file may have"`
	FileRetention     time.Duration `env:"FILE_RETENTION" envDefault:"2160h" doc:"how long a file is kept where its application does not say; 0: for ever"`
	S3Endpoint        string        `env:"S3_ENDPOINT" envDefault:"https://s3.amazonaws.com" doc:"http or https URL of FILE_STORE=s3"`
	S3Region          string        `env:"S3_REGION" envDefault:"us-east-1" doc:"region of the bucket"`
	S3Bucket          string        `env:"S3_BUCKET" doc:"the bucket of the Widget API"`
	S3AccessKeyID     string        `env:"S3_ACCESS_KEY_ID" doc:"key of the bucket; empty: the role of the machine"`
	S3SecretAccessKey string        `env:"S3_SECRET_ACCESS_KEY" doc:"secret of the key"`
}

// Validate says what is wrong with the block; see [config.Check].
func (c FileConfig) Validate() (problems []string) {
	if c.FileStore != "" && c.FileStore != fileStoreNATS && c.FileStore != fileStoreS3 {
		problems = append(problems, "FILE_STORE must be nats or s3")
	}
	if c.FileMaxBytes < 0 {
		problems = append(problems, "FILE_MAX_BYTES must not be negative")
	}
	if c.FileRetention < 0 {
		problems = append(problems, "FILE_RETENTION must not be negative")
	}
	if c.FileStore == fileStoreS3 && (c.S3Bucket == "" || !isBaseURL(c.S3Endpoint)) {
		problems = append(problems, "S3_BUCKET and S3_ENDPOINT, an http or https URL, are required with FILE_STORE=s3")
	}
	return problems
}

// openFiles opens the store that the configuration names. It needs no connection yet.
func (s *Service) openFiles() (err error) {
	if s.cfg.FileStore != fileStoreS3 {
		s.files, s.closeFiles = file.Store(natsfile.New(s.bus.JetStream())), func() {} // it lives on the bus
		return nil
	}
	store, err := s3file.New(s3file.Config{
		Endpoint: s.cfg.S3Endpoint, Region: s.cfg.S3Region, Bucket: s.cfg.S3Bucket,
		AccessKeyID: s.cfg.S3AccessKeyID, SecretAccessKey: s.cfg.S3SecretAccessKey,
	})
	if err != nil {
		return fmt.Errorf("S3_ENDPOINT: %w", err)
	}
	s.files, s.closeFiles = store, store.Close
	return nil
}
