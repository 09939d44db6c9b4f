package parleyctl_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/embedded"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/services/parleyctl"
	"github.com/parley-chat/parley/testkit/bustest"
)

type verified struct {
	Stream  string
	Read    int
	Dropped int `json:"droppedBytes"`
	Damaged []struct {
		FirstSequence, LastSequence uint64
		StoredAfter, StoredBefore   time.Time
	}
}

// A damaged message is named with its sequence and its time. A file that NATS has cut off is told by doctor too.
func TestStreamsVerify(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	w := &world{t: t, now: time.Now, env: map[string]string{}}
	stop := w.startIn(dir)
	bustest.DeclareSmall(t, w.natsURL)
	js := bustest.JetStream(t, w.natsURL)
	for n := range 9 {
		_, err := js.Publish(t.Context(), "chat.in.visitor.app.user", fmt.Appendf(nil, "question <%d>", n+1))
		if err != nil {
			t.Fatal(err)
		}
	}
	w.ctl("streams", "verify").done()

	stop()
	bustest.Damage(t, dir, subject.Inbound, "question <4>")
	bustest.Damage(t, dir, subject.Inbound, "question <5>")
	stop = w.startIn(dir)
	table := w.ctl("streams", "verify")
	row := regexp.MustCompile(`(?m)^INBOUND +parley +7 +0 B +4-5 +20\S+Z +20\S+Z$`)
	const told = "2 messages cannot be read: docs/runbook.md#damaged-messages"
	if table.code != parleyctl.ExitFailed || !row.MatchString(table.out) || !strings.Contains(table.errors, told) {
		t.Errorf("got code %d, %s and %s, want the messages 4-5 and the runbook", table.code, table.out, table.errors)
	}
	found := w.verified("inbound")
	if len(found) != 1 || len(found[0].Damaged) != 1 || found[0].Stream != subject.Inbound || found[0].Read != 7 {
		t.Fatalf("got %+v, want one range of INBOUND and 7 messages", found)
	}
	d := found[0].Damaged[0]
	if d.FirstSequence != 4 || d.LastSequence != 5 || d.StoredAfter.IsZero() || d.StoredBefore.Before(d.StoredAfter) {
		t.Errorf("got %+v, want the messages 4 to 5 and the times around", d)
	}
	w.ctl("streams", "verify", "REPLIES", "OBJ_FILES").done()
	w.ctl("streams", "verify", "CHATS").fails(parleyctl.ExitUsage, "OBJ_FILES")
	w.ctl("streams", "verify", "--rate", "-1").fails(parleyctl.ExitUsage, "--rate")

	stop()
	w.must(os.Remove(filepath.Join(bustest.Messages(dir, subject.Inbound), "index.db")))
	w.startIn(dir)
	if found := w.verified("inbound"); len(found) != 1 || found[0].Read != 3 || found[0].Dropped == 0 {
		t.Errorf("got %+v, want 3 messages and dropped bytes", found)
	}
	w.diagnoses(w.doctor(), "files of INBOUND", "warning", "dropped")
}

// startIn starts NATS in a directory and returns a function that stops it.
func (w *world) startIn(dir string) (stop func()) {
	w.t.Helper()
	n, err := embedded.StartNATS(embedded.NATSConfig{Dir: dir})
	w.must(err)
	w.t.Cleanup(n.Stop)
	w.natsURL = n.URL()
	w.env["NATS_URL"] = w.natsURL
	return n.Stop
}

// verified returns what the command finds damaged in a stream.
func (w *world) verified(stream string) []verified {
	w.t.Helper()
	r := w.ctl("streams", "verify", stream, "-o", "json")
	if r.code != parleyctl.ExitFailed {
		w.t.Errorf("%s: got code %d, want %d", stream, r.code, parleyctl.ExitFailed)
	}
	r.code = parleyctl.ExitOK
	return decoded[[]verified](r)
}
