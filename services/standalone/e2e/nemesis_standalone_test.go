package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/parley-chat/parley/testkit/nemesis"
	"github.com/parley-chat/parley/testkit/nettest"
)

// standaloneDisk is a single process, with a part of its data on a disk that loses power.
type standaloneDisk struct {
	name   string
	part   string // a folder of the data; empty: all of it
	spared string // a folder of the data that is on another disk
}

// standaloneDisks are all such disks.
var standaloneDisks = []standaloneDisk{
	{name: "the machine"},
	{name: "the streams", part: "nats"},
	{name: "SQLite", spared: "nats"},
}

// start starts the single process of `make run`.
func (on standaloneDisk) start(t *testing.T, w *nemesisWorld) {
	t.Helper()
	const name = "standalone"
	t.Logf("one process; disks that forget: %v, of %s", mayCut(), on.name)
	dir := filepath.Join(w.dir, name)
	of := machine{processes: []string{name}}
	if mayCut() {
		of.disks = append(of.disks, newCuttable(t, filepath.Join(dir, on.part)))
		w.machines[targetDisk], w.disks[targetDisk] = of, of
	}
	check(t, os.MkdirAll(dir, 0o700))
	if on.spared != "" {
		check(t, os.Symlink(t.TempDir(), filepath.Join(dir, on.spared)))
	}
	w.services = []string{name}
	w.ops[name] = nettest.Addr(t)
	w.setClock(t, name, 0)
	settings := []string{
		"PARLEY_CLIENT_ADDR=" + w.addr["client-api"],
		"PARLEY_WIDGET_ADDR=" + w.addr["widget-api"],
		"PARLEY_PANEL_ADDR=" + w.addr["panel"],
		"PARLEY_NATS_ADDR=" + w.addr["nats"],
		"PARLEY_OPS_ADDR=" + w.ops[name],
		"NEMESIS_CLOCK=" + w.clock(name),
		"WEBHOOK_TIMEOUT=2s",
		"BOT_FAILURE_TEXT=" + nemesis.FailureText,
		"LIMITS=none",
	}
	if sync := os.Getenv("STREAM_SYNC"); sync != "" {
		settings = append(settings, "STREAM_SYNC="+sync)
	}
	programs, err := nemesisBin()
	check(t, err)
	w.supervise(t, name, func() (*child, error) {
		s, err := startStandalone(filepath.Join(programs, name), dir, settings...)
		if err != nil {
			return nil, err
		}
		if w.AppID == "" { // the first start; the addresses stay
			w.place = s.place
		}
		return s.child, nil
	})
	w.linkClients(t, []string{"widget-api"}, "client-api", "panel", "widget-api")
}
