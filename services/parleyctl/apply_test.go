package parleyctl_test

import (
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/services/parleyctl"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/nettest"
)

type appliedStream struct {
	Stream, State string
	Drift         []bus.FieldDiff
}

// bareWorld is a NATS server without streams, and no store.
func bareWorld(t *testing.T) *world {
	w := &world{t: t, natsURL: bustest.StartBare(t).URL(), now: time.Now}
	w.env = map[string]string{"NATS_URL": w.natsURL, "STREAM_MAX_BYTES": "1048576", "FILE_STORE_MAX_BYTES": "2097152"}
	w.bus = bustest.OpenConfig(t, bus.Config{URL: w.natsURL, Observe: true})
	return w
}

func TestStreamsApply(t *testing.T) {
	t.Parallel()
	w := bareWorld(t)
	states := func(r result) (got string) {
		for _, s := range decoded[[]appliedStream](r) {
			got += s.Stream + " " + s.State + "\n"
		}
		return got
	}
	all := func(state string) (want string) {
		for _, s := range subject.Streams() {
			want += s.Name + " " + state + "\n"
		}
		return want + "OBJ_FILES " + state + "\n"
	}
	dry := w.ctl("streams", "apply", "--dry-run", "-o", "json")
	if dry.code != parleyctl.ExitDrift || !strings.Contains(dry.errors, "differ from their declaration") {
		t.Errorf("dry run: got code %d, %q, want %d", dry.code, dry.errors, parleyctl.ExitDrift)
	}
	dry.code = parleyctl.ExitOK
	if got, want := states(dry), all("missing"); got != want {
		t.Errorf("dry run: got\n%swant\n%s", got, want)
	}
	if got, want := states(w.ctl("streams", "apply", "-o", "json")), all("created"); got != want {
		t.Errorf("first: got\n%swant\n%s", got, want)
	}
	if got, want := states(w.ctl("streams", "apply", "-o", "json")), all("as declared"); got != want {
		t.Errorf("second: got\n%swant\n%s", got, want)
	}
	w.ctl("streams", "apply", "--dry-run").done()

	replies, err := w.bus.Stream(t.Context(), subject.Replies)
	w.must(err)
	bent := replies.CachedInfo().Config
	bent.RePublish = &jetstream.RePublish{Source: ">", Destination: "spy.>"}
	_, err = bustest.JetStream(t, w.natsURL).UpdateStream(t.Context(), bent)
	w.must(err)
	dry = w.ctl("streams", "apply", "--dry-run")
	if dry.code != parleyctl.ExitDrift || !strings.Contains(dry.out, `republish {"src":"\u003e","dest":"spy.\u003e"} -> unset`) {
		t.Errorf("bent: got code %d\n%s", dry.code, dry.out)
	}
	if out := w.ctl("streams", "apply").done(); !strings.Contains(out, "updated") {
		t.Errorf("bent: got\n%swant REPLIES updated", out)
	}
	w.ctl("streams", "apply", "--dry-run").done()

	w.env["STREAM_REPLICAS"] = "2"
	w.ctl("streams", "apply").fails(parleyctl.ExitUsage, "STREAM_REPLICAS must be 1 or 3")
}

// A job may start before NATS does.
func TestStreamsApplyWaits(t *testing.T) {
	t.Parallel()
	e := &world{t: t, now: time.Now, env: map[string]string{"NATS_URL": "nats://" + nettest.Addr(t)}}
	e.ctl("streams", "apply", "--wait", "300ms").fails(parleyctl.ExitUnavailable, "NATS does not answer")
}
