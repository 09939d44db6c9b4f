package parleyctl_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/nats-io/nats-server/v2/server"
)

// Doctor names what an accepted event survives, and what must be done if nothing keeps the promise.
func TestDoctorNamesTheDurability(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const check = "durability"
	w.diagnoses(w.doctor(), check, "ok", "accepted events are on the disk")

	w.env["STREAM_SYNC"] = "none"
	w.ctl("streams", "apply").done()
	w.diagnoses(w.doctor(), check, "warning", "perhaps not on its disk | STREAM_SYNC=auto")

	w.env["STREAM_SYNC"] = "server"
	w.ctl("streams", "apply").done()
	w.diagnoses(w.doctor(), check, "warning", "which was not checked | pass --monitor")
	lazy, always := monitored(t, false), monitored(t, true)
	w.diagnoses(w.doctor("--monitor", always), check, "ok", "on the disk")
	w.diagnoses(w.doctor("--monitor", always+","+lazy), check, "wrong", "sync_interval: always")
	three := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"config": {"sync_always": true}, "meta_cluster": {"cluster_size": 3}}`)
	}))
	t.Cleanup(three.Close)
	w.diagnoses(w.doctor("--monitor", three.URL), check, "warning", "1 of 3 were checked | pass --monitor")
	w.diagnoses(w.doctor("--monitor", "http://127.0.0.1:1"), check, "wrong", "correct --monitor")
}

// monitored starts a NATS server and returns the URL of its monitoring port.
func monitored(t *testing.T, syncAlways bool) string {
	t.Helper()
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, HTTPHost: "127.0.0.1", HTTPPort: -1, NoLog: true, NoSigs: true,
		JetStream: true, StoreDir: t.TempDir(), SyncAlways: syncAlways,
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(patience) {
		t.Fatal("the server did not start")
	}
	return "http://" + s.MonitorAddr().String()
}
