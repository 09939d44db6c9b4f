package attachment

import (
	"time"

	"github.com/parley-chat/parley/pkg/config"
)

// storeTime is the store's time in addition to that of the upload.
const storeTime = 30 * time.Second

// Bounds returns the settings of a deployment; the caller adds the dependencies.
func Bounds(files config.Files, uploads config.Uploads) Config {
	return Config{
		Quota: Quota{
			Visitor:     uploads.QuotaVisitor,
			Application: uploads.QuotaApplication,
			Company:     uploads.QuotaCompany,
		},
		AtOnce: AtOnce{
			All: uploads.MaxUploads, Sender: uploads.MaxUploadsVisitor, Site: uploads.MaxUploadsSite,
			Application: uploads.MaxUploadsApp, Company: uploads.MaxUploadsCompany,
		},
		Retention: files.FileRetention,
		Timeout:   uploads.UploadTimeout + storeTime,
	}
}
