package widgetapi

import (
	"cmp"
	"fmt"
	"net/url"
	"time"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/file"
	"github.com/parley-chat/parley/pkg/file/natsfile"
	"github.com/parley-chat/parley/pkg/file/s3file"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/services/widget-api/internal/attachment"
	api "github.com/parley-chat/parley/services/widget-api/internal/http"
)

// The places where files can be kept.
const (
	FileStoreNATS = "nats"
	FileStoreS3   = "s3"
)

// defaultFileSweep is how long the bytes of a file may outlive it.
const defaultFileSweep = 10 * time.Minute

// storeTime is what a store gets beside the time that an upload may take.
const storeTime = 30 * time.Second

// FileConfig says where the files of visitors are kept, and what may be sent.
type FileConfig struct {
	PublicURL         string        `env:"PUBLIC_URL" doc:"address under which browsers reach the Widget API, which stands in the addresses of files, such as https://chat.example.com; required unless HTTP_ADDR is a loopback address, where it is the one that each upload was sent to"`
	FileStore         string        `env:"FILE_STORE" envDefault:"nats" doc:"where visitors' files are kept: nats (the JetStream object store, bucket FILES) or s3"`
	FileMaxBytes      int64         `env:"FILE_MAX_BYTES" envDefault:"26214400" doc:"bytes that a visitor's file may have"`
	FileRetention     time.Duration `env:"FILE_RETENTION" envDefault:"2160h" doc:"how long a file is kept where its application does not say; 0: for ever"`
	MaxUploads        int           `env:"MAX_UPLOADS" envDefault:"64" doc:"files that are taken in at once; more are refused (503)"`
	MaxUploadsVisitor int           `env:"MAX_UPLOADS_VISITOR" envDefault:"2" doc:"of these, one visitor's; more are refused (429); 0: no limit"`
	MaxUploadsAddress int           `env:"MAX_UPLOADS_ADDRESS" envDefault:"8" doc:"of these, those from one address (an IPv6 /64); more are refused (429); 0: no limit"`
	MaxUploadsApp     int           `env:"MAX_UPLOADS_APPLICATION" envDefault:"16" doc:"of these, those of one application's visitors; more are refused (429); 0: no limit"`
	QuotaVisitor      int64         `env:"FILE_QUOTA_VISITOR" envDefault:"104857600" doc:"bytes of files that are kept of one visitor; more are refused (413); 0: no limit"`
	QuotaApplication  int64         `env:"FILE_QUOTA_APPLICATION" envDefault:"1073741824" doc:"bytes of files that are kept of one application; more are refused (413); 0: no limit"`
	UploadTimeout     time.Duration `env:"UPLOAD_TIMEOUT" envDefault:"10m" doc:"how long an upload may take; beside that a client must send 4 KiB a second"`

	S3Endpoint        string `env:"S3_ENDPOINT" envDefault:"https://s3.amazonaws.com" doc:"http or https URL of FILE_STORE=s3"`
	S3Region          string `env:"S3_REGION" envDefault:"us-east-1" doc:"region of the bucket"`
	S3Bucket          string `env:"S3_BUCKET" doc:"the bucket, which must be there; its files/ is ours"`
	S3AccessKeyID     string `env:"S3_ACCESS_KEY_ID" doc:"key of the bucket; empty: the role of the machine"`
	S3SecretAccessKey string `env:"S3_SECRET_ACCESS_KEY" doc:"secret of the key"`
}

// Validate says what is wrong with the block.
func (c FileConfig) Validate() []string {
	var problems []string
	need := func(ok bool, problem string) {
		if !ok {
			problems = append(problems, problem)
		}
	}
	need(c.PublicURL == "" || isBaseURL(c.PublicURL), "PUBLIC_URL must be an http or https URL without a query")
	need(c.FileStore == FileStoreNATS || c.FileStore == FileStoreS3, "FILE_STORE must be nats or s3")
	need(c.FileMaxBytes > 0, "FILE_MAX_BYTES must be positive")
	need(c.FileRetention >= 0, "FILE_RETENTION must not be negative")
	need(c.MaxUploads > 0, "MAX_UPLOADS must be positive")
	need(c.MaxUploadsVisitor >= 0, "MAX_UPLOADS_VISITOR must not be negative")
	need(c.MaxUploadsAddress >= 0, "MAX_UPLOADS_ADDRESS must not be negative")
	need(c.MaxUploadsApp >= 0, "MAX_UPLOADS_APPLICATION must not be negative")
	need(c.QuotaVisitor >= 0, "FILE_QUOTA_VISITOR must not be negative")
	need(c.QuotaApplication >= 0, "FILE_QUOTA_APPLICATION must not be negative")
	// A sweep takes what has been at rest for file.OrphanAge for abandoned.
	need(c.UploadTimeout > 0 && c.UploadTimeout <= file.OrphanAge/2, "UPLOAD_TIMEOUT must be positive and at most "+(file.OrphanAge/2).String())
	if c.FileStore == FileStoreS3 {
		need(c.S3Bucket != "", "S3_BUCKET is required with FILE_STORE=s3")
		need(isBaseURL(c.S3Endpoint), "S3_ENDPOINT must be an http or https URL")
		need((c.S3AccessKeyID == "") == (c.S3SecretAccessKey == ""), "S3_SECRET_ACCESS_KEY goes with S3_ACCESS_KEY_ID")
	}
	return problems
}

func isBaseURL(s string) bool {
	u, err := url.Parse(s)
	return err == nil && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.RawQuery == "" && u.Fragment == "" && u.User == nil
}

// streams are those that the service uses.
func (s *Service) streams() []string {
	used := []string{subject.Inbound, subject.Replies, subject.Status}
	if s.cfg.FileStore == FileStoreNATS {
		used = append(used, bus.FilesStream)
	}
	return used
}

// openAttachments opens the store that the configuration names. The store needs no connection yet.
func (s *Service) openAttachments() error {
	store, err := s.fileStore()
	if err != nil {
		return err
	}
	s.files = attachment.New(attachment.Config{
		Store: store, Records: s.store, Quota: attachment.Quota{Visitor: s.cfg.QuotaVisitor, Application: s.cfg.QuotaApplication}, Retention: s.cfg.FileRetention, Timeout: s.cfg.UploadTimeout + storeTime,
		Sweep: cmp.Or(s.cfg.FileSweep, defaultFileSweep), Logger: s.cfg.Logger, Now: s.cfg.Now,
	})
	return nil
}

func (s *Service) fileStore() (file.Store, error) {
	if s.cfg.FileStore == FileStoreNATS {
		s.closeFiles = func() {} // it lives on the bus
		return natsfile.New(s.bus.JetStream()), nil
	}
	store, err := s3file.New(s3file.Config{
		Endpoint: s.cfg.S3Endpoint, Region: s.cfg.S3Region, Bucket: s.cfg.S3Bucket,
		AccessKeyID: s.cfg.S3AccessKeyID, SecretAccessKey: s.cfg.S3SecretAccessKey,
	})
	if err != nil {
		return nil, fmt.Errorf("S3_ENDPOINT: %w", err)
	}
	s.closeFiles = store.Close
	return store, nil
}

func (c FileConfig) uploads() api.Uploads {
	return api.Uploads{
		MaxBytes: c.FileMaxBytes, MaxAtOnce: c.MaxUploads, Timeout: c.UploadTimeout,
		MaxOfVisitor: c.MaxUploadsVisitor, MaxOfAddress: c.MaxUploadsAddress, MaxOfApplication: c.MaxUploadsApp,
	}
}
