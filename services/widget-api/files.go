package widgetapi

import (
	"time"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/proto-events/subject"
)

// defaultFileSweep is how long an expired file may stay stored.
const defaultFileSweep = 10 * time.Minute

// FileConfig configures the storage and the limits of visitors' files.
type FileConfig struct {
	config.Files
	config.Uploads

	PublicURL string `env:"PUBLIC_URL" valid:"baseurl" doc:"URL at which browsers reach the Widget API, part of the URLs of files, such as https://chat.example.com; required unless HTTP_ADDR is a loopback address, which uses the address of each upload"`
}

// streams lists the streams that the service uses.
func (s *Service) streams() []string {
	used := []string{subject.Inbound, subject.Replies, subject.Status}
	if s.cfg.FileStore == config.FileStoreNATS {
		used = append(used, bus.FilesStream)
	}
	return used
}
