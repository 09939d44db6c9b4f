package atomicfile

import (
	"context"
	"log/slog"
	"time"
)

// WatchInterval is how often a key file is read again. The file is small.
const WatchInterval = 2 * time.Second

// Watch calls reload every [WatchInterval] and, after each change, changed, which may be nil. It returns nil
// when ctx is done. An error of reload is logged once with the file's path; the caller keeps its current
// keys.
func Watch(
	ctx context.Context,
	log *slog.Logger,
	path string,
	reload func() (changed bool, err error),
	changed func(),
) error {
	ticker := time.NewTicker(WatchInterval)
	defer ticker.Stop()
	failed := ""
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-ticker.C:
		}
		reloaded, err := reload()
		switch {
		case err != nil && err.Error() != failed:
			failed = err.Error()
			log.Error("key file not reloaded, keeping the current keys", "file", path, "error", failed)
		case err == nil:
			failed = ""
		}
		if !reloaded {
			continue
		}
		log.Info("key file reloaded", "file", path)
		if changed != nil {
			changed()
		}
	}
}
