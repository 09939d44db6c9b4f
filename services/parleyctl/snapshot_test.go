package parleyctl_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/services/parleyctl"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/storetest"
	"github.com/parley-chat/parley/testkit/timetest"
)

type saved struct {
	Stream, Path string
	Messages     uint64
}

// A backup of a running deployment is restored into new engines: messages with their sequences, the
// consumers' positions, and the store.
func TestBackupAndRestore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.now = time.Now
	_, question, answer, company := w.conversation()
	w.publish(question, answer, company)
	got := make(chan bus.Delivery, 1)
	stop := w.consume(bus.Consumer{Stream: subject.Inbound, Durable: "recorder", Handle: func(_ context.Context, d bus.Delivery) error { got <- d; return nil }})
	<-got
	w.acked(subject.Inbound, "recorder", 1)
	stop()
	question.Message.ID = message(time.Now(), "after", false).ID
	w.publish(question)

	folder := t.TempDir()
	streams := decoded[[]saved](w.ctl("streams", "backup", "--to", folder, "-o", "json"))
	if len(streams) != len(subject.Streams())+1 {
		t.Errorf("got %+v, want all streams and the files", streams)
	}
	copied := filepath.Join(t.TempDir(), "parley.db")
	w.ctl("backup", "--to", copied).done()

	fresh := &world{t: t, natsURL: bustest.StartBare(t).URL(), now: time.Now}
	fresh.env = map[string]string{"NATS_URL": fresh.natsURL, "SQLITE_PATH": copied}
	if restored := decoded[[]saved](fresh.ctl("streams", "restore", "--from", folder, "-o", "json")); len(restored) != len(streams) {
		t.Errorf("got %+v, want what was saved", restored)
	}
	fresh.bus = bustest.Open(t, fresh.natsURL)
	fresh.store = storetest.OpenAt(t, copied)
	for _, kind := range store.Kinds() {
		if got, want := storetest.Records(t, fresh.store, kind), storetest.Records(t, w.store, kind); len(got) != len(want) {
			t.Errorf("%s: got %d records, want %d", kind, len(got), len(want))
		}
	}
	fresh.consume(bus.Consumer{Stream: subject.Inbound, Durable: "recorder", Handle: func(_ context.Context, d bus.Delivery) error { got <- d; return nil }})
	if d := <-got; d.Sequence != 2 || !strings.Contains(string(d.Data), question.Message.ID) {
		t.Errorf("got event %d, want the one after the last that was acknowledged", d.Sequence)
	}
	// Nothing is restored beside existing streams; the error names them, and what to do.
	w.must(fresh.bus.DeleteStream(t.Context(), subject.Sends))
	fresh.ctl("streams", "restore", "--from", folder).
		fails(parleyctl.ExitRefused, "INBOUND, REPLIES, OUTBOUND, STATUS, DEAD, REVOCATIONS, POSITIONS, PARTS, OBJ_FILES already exist")
	fresh.ctl("streams", "restore", "--from", folder).fails(parleyctl.ExitRefused, "--replace")
	if _, err := fresh.bus.Stream(t.Context(), subject.Sends); err == nil {
		t.Error("got SENDS restored, want nothing restored while others exist")
	}
	if again := decoded[[]saved](fresh.ctl("streams", "restore", "--from", folder, "--replace", "--yes", "-o", "json")); len(again) != len(streams) {
		t.Errorf("got %+v, want all streams replaced", again)
	}
	fresh.ctl("streams", "restore", "--from", folder, "--replace").fails(parleyctl.ExitUsage, "--yes")
	fresh.ctl("streams", "restore", "--from", streams[0].Path).fails(parleyctl.ExitUsage, "--from")
	fresh.ctl("streams", "restore", "--from", t.TempDir()).fails(parleyctl.ExitUsage, "no backup")
}

// Old backups are removed; an unfinished one does not count.
func TestBackupsAreKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	folder := t.TempDir()
	w.must(os.Mkdir(filepath.Join(folder, ".unfinished-20991231T000000Z"), 0o700))
	w.must(os.Mkdir(filepath.Join(folder, "mine"), 0o700))
	for day := range 3 {
		w.now = func() time.Time { return noon.AddDate(0, 0, day) }
		w.ctl("streams", "backup", "--to", folder, "--keep", "2").done()
	}
	entries, err := os.ReadDir(folder)
	w.must(err)
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	if got, want := strings.Join(names, " "), ".unfinished-20991231T000000Z 20261122T120000Z 20261123T120000Z mine"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	w.ctl("streams", "backup", "--to", folder).fails(parleyctl.ExitUsage, "exists")
	w.ctl("streams", "backup").fails(parleyctl.ExitUsage, "--to required")
	if info, err := os.Stat(filepath.Join(folder, "20261123T120000Z")); err != nil || info.Mode().Perm() != 0o700 {
		t.Errorf("got %v, %v, want a folder for its owner alone", info.Mode(), err)
	}
}

// acked waits until the server has a consumer's acknowledgements.
func (w *world) acked(stream, durable string, sequence uint64) {
	w.t.Helper()
	timetest.Until(w.t, durable+" is done", func() bool {
		groups, err := w.bus.Groups(w.t.Context(), stream)
		w.must(err)
		for _, g := range groups {
			if g.Name == durable && g.Total().AckFloor == sequence {
				return true
			}
		}
		return false
	})
}
