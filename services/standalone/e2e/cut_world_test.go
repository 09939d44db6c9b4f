package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/parley-chat/parley/testkit/nettest"
)

// cutWorld is a Parley with a disk that forgets, its visitors and its agents.
type cutWorld struct {
	place
	t    *testing.T // of all cuts
	disk *cuttable

	units     []*unit // what loses power with the disk, in the order of starting
	continues bool    // the services keep running, and so do the clients' connections

	company, widget, panel *api

	stays           []*member
	present, absent *agent // absent is not connected when the power fails

	texts atomic.Int64 // makes each text unique
	tally tally
}

// cutVariant says what loses power.
type cutVariant struct {
	name  string
	start func(t *testing.T) *cutWorld
}

func cutVariants() []cutVariant {
	return []cutVariant{
		{"the machine", func(t *testing.T) *cutWorld { return standaloneOn(t, "", "") }},
		{"the streams", func(t *testing.T) *cutWorld { return standaloneOn(t, "nats", "") }},
		{"SQLite", func(t *testing.T) *cutWorld { return standaloneOn(t, "", "nats") }},
		{"nats-server alone", natsServerOn},
	}
}

// standaloneOn starts a standalone of which a part of the data folder, or all of it, is on the disk that forgets. The
// part named spared is on another disk.
func standaloneOn(t *testing.T, part, spared string) *cutWorld {
	t.Helper()
	w := &cutWorld{t: t}
	dir := filepath.Join(t.TempDir(), "data")
	w.disk = newCuttable(t, filepath.Join(dir, part))
	if spared != "" {
		check(t, os.Symlink(t.TempDir(), filepath.Join(dir, spared)))
	}
	var env []string // clients come back to the same addresses
	for _, name := range []string{"PARLEY_CLIENT_ADDR", "PARLEY_WIDGET_ADDR", "PARLEY_PANEL_ADDR"} {
		env = append(env, name+"="+nettest.Addr(t))
	}
	if sync := os.Getenv("STREAM_SYNC"); sync != "" {
		env = append(env, "STREAM_SYNC="+sync)
	}
	path := program(t, "standalone")
	w.add(t, "standalone", func() (*child, error) {
		s, err := startStandalone(path, dir, env...)
		if err != nil {
			return nil, err
		}
		if w.AppID == "" { // the first start; the addresses stay
			w.place = s.place
		}
		return s.child, nil
	})
	w.open(t)
	return w
}

// natsServerOn starts a deployment whose nats-server, with the syncer beside it, loses power while the services live.
func natsServerOn(t *testing.T) *cutWorld {
	t.Helper()
	f := newDeployment(t, 1)
	f.add(t, "panel")
	f.streams = []string{"STREAM_PARTITIONS=4"} // fewer consumers: the server starts faster
	w := &cutWorld{t: t, continues: true}
	w.disk = newCuttable(t, filepath.Join(f.dir, "nats"))
	f.start(t, "seed")
	_, err := f.run["seed"].stop()
	check(t, err)
	for _, name := range []string{"nats", "nats-sync"} {
		path, settings, args := f.command(t, name)
		w.add(t, name, func() (*child, error) { return spawn(name, settings, path, args...) })
		if name == "nats" {
			f.applyStreams(t)
		}
	}
	f.start(t, "redis")
	for _, name := range f.services { // supervised: a service ends when a stream has lost messages
		path, settings, args := f.command(t, name)
		supervise(t, name, &w.tally.restarts, func() (*child, error) { return spawn(name, settings, path, args...) })
	}
	f.awaitReady(t, http.StatusOK, f.services...)
	w.place = f.place
	w.PanelURL = "http://" + f.addr["panel"]
	w.open(t)
	return w
}

// add starts a process that loses power with the disk.
func (w *cutWorld) add(t *testing.T, name string, start func() (*child, error)) {
	t.Helper()
	w.units = append(w.units, supervise(t, name, &w.tally.restarts, start))
}

// open opens the APIs.
func (w *cutWorld) open(t *testing.T) {
	t.Helper()
	w.company, w.widget, w.panel = w.clientAPI(t), w.widgetAPI(t), newAPI(t, w.PanelURL)
}

// cut cuts the power. With a seed the kernel had written some of the files.
func (w *cutWorld) cut(t *testing.T, seed string) {
	t.Helper()
	for _, u := range w.units {
		check(t, u.kill())
	}
	w.disk.cut(t, seed)
}

// restore brings the power back.
func (w *cutWorld) restore(t *testing.T) {
	t.Helper()
	for _, u := range w.units {
		check(t, u.run())
	}
}

// unit is a process that is started again when it ends by itself, as systemd does. It begins with supervise, and ends
// with the test.
type unit struct {
	name     string
	start    func() (*child, error)
	restarts *atomic.Int64

	mu    sync.Mutex // guards the rest; held while the process starts
	child *child
	off   bool
	ends  []string // how it has ended by itself
}

// supervise starts a process. That it ends by itself fails the test, unless it has read what a stream has lost:
// consumers read a message before it is on the disk, and so before its publisher hears that it is accepted. restarts
// counts that.
func supervise(t *testing.T, name string, restarts *atomic.Int64, start func() (*child, error)) *unit {
	t.Helper()
	u := &unit{name: name, start: start, restarts: restarts}
	check(t, u.run())
	t.Cleanup(func() {
		check(t, u.kill())
		for _, end := range u.takeEnds() {
			t.Errorf("%s ended by itself: %s", name, end)
		}
		if t.Failed() {
			t.Logf("%s wrote:\n%s", name, u.child.stderr)
		}
	})
	return u
}

func (u *unit) run() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.off = false
	return u.runLocked()
}

func (u *unit) runLocked() error {
	c, err := u.start()
	if err != nil {
		return err
	}
	u.child = c
	go func() {
		<-c.ended
		u.runAgain(c)
	}()
	return nil
}

// runAgain starts the process again, unless its power is off.
func (u *unit) runAgain(ended *child) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.off || u.child != ended {
		return
	}
	if last := lastLine(ended.stderr.String()); strings.Contains(last, "has lost its messages") {
		u.restarts.Add(1)
	} else {
		u.ends = append(u.ends, fmt.Sprintf("code %d: %s", ended.code(), last))
	}
	if err := u.runLocked(); err != nil {
		u.ends = append(u.ends, err.Error())
	}
}

// takeEnds returns how the process has ended by itself, each end once.
func (u *unit) takeEnds() []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	ends := u.ends
	u.ends = nil
	return ends
}

// kill ends the process at once.
func (u *unit) kill() error {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.off = true
	return u.child.kill()
}

// stop ends the process as an orchestrator does, and returns its exit code.
func (u *unit) stop() (int, error) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.off = true
	return u.child.stop()
}

// signal sends a signal to the process.
func (u *unit) signal(s os.Signal) error {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.child.cmd.Process.Signal(s)
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return slices.Concat([]string{""}, lines)[len(lines)]
}
