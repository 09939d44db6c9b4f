package parleyctl_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/inspect"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/services/parleyctl"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/nettest"
	"github.com/parley-chat/parley/testkit/redistest"
	"github.com/parley-chat/parley/testkit/storetest"
)

type finding struct{ Check, State, Detail, Do string }

// doctor returns the findings by check, and verifies that the exit code agrees.
func (w *world) doctor(args ...string) map[string]finding {
	w.t.Helper()
	r := w.ctl(append([]string{"doctor", "-o", "json"}, args...)...)
	code := r.code
	r.code = parleyctl.ExitOK
	found := make(map[string]finding)
	wrong := false
	for _, f := range decoded[[]finding](r) {
		found[f.Check] = f
		wrong = wrong || f.State == "wrong"
		if (f.State == "wrong" || f.State == "warning") != (f.Do != "") {
			w.t.Errorf("got %+v, want what to do where something is not right", f)
		}
	}
	if wrong != (code == parleyctl.ExitFailed) || !wrong && code != parleyctl.ExitOK {
		w.t.Errorf("got code %d, something wrong: %v", code, wrong)
	}
	return found
}

func (w *world) diagnoses(found map[string]finding, check, state, text string) {
	w.t.Helper()
	if f := found[check]; f.State != state || !strings.Contains(f.Detail+" | "+f.Do, text) {
		w.t.Errorf("%s: got %+v, want %s and %q", check, f, state, text)
	}
}

func TestDoctorOfAHealthyDeployment(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.now = time.Now
	redis, err := redistest.Start("127.0.0.1:0")
	w.must(err)
	t.Cleanup(redis.Stop)
	keys := filepath.Join(t.TempDir(), "keys.json")
	w.env["REDIS_URL"], w.env["VISITOR_KEYS_FILE"], w.env["TRUSTED_PROXIES"] = redis.URL(), keys, "10.244.0.0/16"
	w.ctl("keys", "generate").done()
	stop := w.consume(bus.Consumer{Stream: subject.Inbound, Durable: "recorder", Handle: handled})
	_, question, _, _ := w.conversation()
	w.publish(question)
	w.acked(subject.Inbound, "recorder", 1)
	running := map[string]func(){}
	for _, name := range []string{"client-api", "widget-api", "socket-gateway", "processor"} {
		running[name] = w.serve(name, map[string]string{"nats": "ok", "store": "ok"})
	}
	found := w.doctor()
	w.diagnoses(found, "consumers of REPLIES", "warning", "socket-gateway")
	for _, check := range []string{
		"nats", "jetstream", "jetstream write", "clock", "channels", "stream INBOUND", "stream OBJ_FILES", "consumer INBOUND/recorder",
		"store", "store write", "redis", "keys", "trusted proxies",
	} {
		w.diagnoses(found, check, "ok", "")
	}
	w.diagnoses(found, "store space", found["store space"].State, "free of") // this machine's disk may be nearly full
	for name := range running {
		w.diagnoses(found, "service "+name, "ok", "nats, store")
	}
	w.diagnoses(found, "service panel", "warning", "start panel")
	for name := range bustest.JetStream(t, w.natsURL).StreamNames(t.Context()).Name() {
		if name != bus.FilesStream && !slices.Contains(inspect.StreamNames(), name) {
			t.Errorf("got the stream %s, want none left by doctor", name)
		}
	}
	if files := storetest.Records(t, w.store, "files"); len(files) > 0 {
		t.Errorf("got the records %v, want none left by doctor", files)
	}
	stop()

	// And of a deployment with faults.
	w.must(os.Chmod(keys, 0o644))
	w.now = func() time.Time { return time.Now().Add(time.Minute) }
	w.env["STREAM_MAX_BYTES"], w.env["VISITOR_TOKEN_TTL"], w.env["TRUSTED_PROXIES"] = "1000", "24h", "10.244.0.0/16,192.168.0.0/16"
	w.publish(question)
	w.must(bustest.JetStream(t, w.natsURL).DeleteStream(t.Context(), subject.Status))
	w.must(bustest.JetStream(t, w.natsURL).DeleteConsumer(t.Context(), subject.Inbound, w.consumerOf(subject.Inbound, "recorder", 1)))
	_, err = bustest.JetStream(t, w.natsURL).Publish(t.Context(), "chat.dead.INBOUND.bot", []byte("{}"))
	w.must(err)
	redis.Stop()
	running["processor"]()
	running["widget-api"]()
	w.serve("widget-api", map[string]string{"nats": "stream INBOUND does not acknowledge", "store": "ok"})
	secure := httptest.NewUnstartedServer(http.NotFoundHandler())
	// the log reports that it is not trusted
	secure.Config.ErrorLog = slog.NewLogLogger(slog.DiscardHandler, slog.LevelInfo)
	secure.StartTLS()
	t.Cleanup(secure.Close)
	found = w.doctor("--url", secure.URL)
	w.diagnoses(found, "keys", "warning", "chmod")
	w.diagnoses(found, "service processor", "wrong", "start processor")
	w.diagnoses(found, "service widget-api", "wrong", "nats: stream INBOUND does not acknowledge")
	w.diagnoses(found, "clock", "warning", "NTP")
	w.diagnoses(found, "stream STATUS", "wrong", "streams apply")
	w.diagnoses(found, "consumer INBOUND/recorder", "wrong", "no consumer for the partitions 1")
	w.diagnoses(found, "stream INBOUND", "warning", "max_bytes")
	w.diagnoses(found, "stream REVOCATIONS", "warning", "max_age")
	w.diagnoses(found, "trusted proxies", "warning", "192.168.0.0/16 is a whole private network")
	w.diagnoses(found, "redis", "wrong", "does not answer")
	w.diagnoses(found, "certificate of "+secure.URL, "wrong", "renew")
	delete(w.env, "STREAM_MAX_BYTES")
	found = w.doctor()
	w.diagnoses(found, "stream INBOUND", "ok", "")
	w.diagnoses(found, "stream DEAD", "warning", "dead list")
}

// serve answers doctor as a running service does.
func (w *world) serve(name string, states map[string]string) (stop func()) {
	w.t.Helper()
	b := bustest.OpenConfig(w.t, bus.Config{URL: w.natsURL, Name: name, Streams: []string{}})
	stop, err := b.RPC().HandleDependencies(name, func(context.Context) map[string]string { return states })
	w.must(err)
	return stop
}

// consumerOf returns the server's name of a group's consumer for one partition.
func (w *world) consumerOf(stream, group string, partition int) string {
	w.t.Helper()
	s, err := w.bus.Stream(w.t.Context(), stream)
	w.must(err)
	suffix := fmt.Sprintf("-%d", partition)
	for name := range s.ConsumerNames(w.t.Context()).Name() {
		if strings.HasPrefix(name, group) && strings.HasSuffix(name, suffix) {
			return name
		}
	}
	w.t.Fatalf("no consumer of %s for partition %d", group, partition)
	return ""
}

func TestDoctorWithoutEngines(t *testing.T) {
	t.Parallel()
	w := &world{t: t, now: time.Now}
	w.env = map[string]string{"NATS_URL": "nats://operator:secret@" + nettest.Addr(t), "SQLITE_PATH": filepath.Join(t.TempDir(), "none.db")}
	found := w.doctor()
	w.diagnoses(found, "nats", "wrong", "does not answer")
	w.diagnoses(found, "store", "wrong", "SQLITE_PATH")
	w.diagnoses(found, "redis", "skipped", "REDIS_URL")
	if strings.Contains(found["nats"].Detail, "secret") {
		t.Errorf("got %q, want no password", found["nats"].Detail)
	}
	if _, err := os.Stat(w.env["SQLITE_PATH"]); err == nil {
		t.Error("got a database that was not there, want nothing changed")
	}
	delete(w.env, "NATS_URL")
	w.env["NATS_URL"] = bustest.StartBare(t).URL()
	w.diagnoses(w.doctor(), "stream INBOUND", "wrong", "missing")
}

// Messages that no channel connector takes are found after an hour.
func TestDoctorFindsWhatWaitsForChannels(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.publish(event.OutboundMessage{
		CompanyID: "acme", Channel: chat.ChannelPhone, ChatID: "chat", ChatUserID: "visitor",
		Message: chat.Message{
			ID: chat.NewID(), CreatedAt: time.Now(), Type: chat.Text, Data: json.RawMessage(`{"text":"Hello"}`),
		},
	})
	w.diagnoses(w.doctor(), "channels", "ok", "")
	w.now = func() time.Time { return time.Now().Add(2 * time.Hour) }
	w.diagnoses(w.doctor(), "channels", "wrong", "of acme to the channel phone")
}
