package widgetapi

import (
	"time"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/file"
	"github.com/parley-chat/parley/proto-events/subject"
	api "github.com/parley-chat/parley/services/widget-api/internal/http"
)

// defaultFileSweep is how long an expired file may stay stored.
const defaultFileSweep = 10 * time.Minute

// storeTime is the store's time in addition to that of the upload.
const storeTime = 30 * time.Second

// FileConfig configures the storage and the limits of visitors' files.
type FileConfig struct {
	config.Files

	PublicURL         string        `env:"PUBLIC_URL" doc:"URL at which browsers reach the Widget API, part of the URLs of files, such as https://chat.example.com; required unless HTTP_ADDR is a loopback address, which uses the address of each upload"`
	MaxUploads        int           `env:"MAX_UPLOADS" envDefault:"64" doc:"files that are taken in at once; more are refused (503)"`
	MaxUploadsVisitor int           `env:"MAX_UPLOADS_VISITOR" envDefault:"2" doc:"of these, one visitor's; more are refused (429); 0: no limit"`
	MaxUploadsAddress int           `env:"MAX_UPLOADS_ADDRESS" envDefault:"8" doc:"of these, those from one address (an IPv6 /64); more are refused (429); 0: no limit"`
	MaxUploadsApp     int           `env:"MAX_UPLOADS_APPLICATION" envDefault:"16" doc:"of these, those of one application's visitors; more are refused (429); 0: no limit"`
	QuotaVisitor      int64         `env:"FILE_QUOTA_VISITOR" envDefault:"104857600" doc:"bytes of files that are kept of one visitor; more are refused (413); 0: no limit"`
	QuotaApplication  int64         `env:"FILE_QUOTA_APPLICATION" envDefault:"1073741824" doc:"bytes of files that are kept of one application; more are refused (413); 0: no limit"`
	UploadTimeout     time.Duration `env:"UPLOAD_TIMEOUT" envDefault:"10m" doc:"timeout of an upload; a client must also send at least 4 KiB a second"`
}

// Validate returns the errors of the block.
func (c FileConfig) Validate() []string {
	var problems []string
	need := func(ok bool, problem string) {
		if !ok {
			problems = append(problems, problem)
		}
	}
	need(c.PublicURL == "" || config.BaseURL(c.PublicURL), "PUBLIC_URL must be an http or https URL without a query")
	need(c.MaxUploads > 0, "MAX_UPLOADS must be positive")
	need(c.MaxUploadsVisitor >= 0, "MAX_UPLOADS_VISITOR must not be negative")
	need(c.MaxUploadsAddress >= 0, "MAX_UPLOADS_ADDRESS must not be negative")
	need(c.MaxUploadsApp >= 0, "MAX_UPLOADS_APPLICATION must not be negative")
	need(c.QuotaVisitor >= 0, "FILE_QUOTA_VISITOR must not be negative")
	need(c.QuotaApplication >= 0, "FILE_QUOTA_APPLICATION must not be negative")
	// A sweep treats uploads that are idle for file.OrphanAge as abandoned.
	need(c.UploadTimeout > 0 && c.UploadTimeout <= file.OrphanAge/2, "UPLOAD_TIMEOUT must be positive and at most "+(file.OrphanAge/2).String())
	return problems
}

// streams lists the streams that the service uses.
func (s *Service) streams() []string {
	used := []string{subject.Inbound, subject.Replies, subject.Status}
	if s.cfg.FileStore == config.FileStoreNATS {
		used = append(used, bus.FilesStream)
	}
	return used
}

func (c FileConfig) uploads() api.Uploads {
	return api.Uploads{
		MaxBytes: c.FileMaxBytes, MaxAtOnce: c.MaxUploads, Timeout: c.UploadTimeout,
		MaxOfVisitor: c.MaxUploadsVisitor, MaxOfAddress: c.MaxUploadsAddress, MaxOfApplication: c.MaxUploadsApp,
	}
}
