package parleyctl_test

import (
	"os"
	"testing"
	"time"

	"github.com/parley-chat/parley/testkit/fulldisk"
)

func TestDoctorOnAFullDisk(t *testing.T) {
	t.Parallel()
	fulldisk.Run(t, func(t *testing.T) {
		w := newWorld(t)
		w.now = time.Now
		file, err := os.Stat(w.env["SQLITE_PATH"])
		w.must(err)
		w.diagnoses(w.doctor(), "jetstream write", "ok", "")
		restore := fulldisk.Limit(t, min(uint64(file.Size()), 32<<10))
		found := w.doctor()
		w.diagnoses(found, "nats", "ok", "")
		w.diagnoses(found, "store", "ok", "")
		w.diagnoses(found, "jetstream write", "wrong", "free disk space")
		w.diagnoses(found, "store write", "wrong", "free disk space")
		restore()
		w.diagnoses(w.doctor(), "store write", "ok", "")
	})
}
