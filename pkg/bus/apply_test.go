package bus_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/testkit/bustest"
)

func fields(c bus.StreamChange) []string {
	var names []string
	for _, d := range c.Drift {
		names = append(names, d.Field)
	}
	return names
}

func changed(t *testing.T, changes []bus.StreamChange, err error) (names []string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range changes {
		if !c.None() {
			names = append(names, c.Stream)
		}
	}
	return names
}

// The first apply creates all streams, the second changes nothing, and other streams of the account are not touched.
func TestApplyCreatesMissingStreams(t *testing.T) {
	t.Parallel()
	b := bustest.OpenConfig(t, bus.Config{URL: bustest.StartBare(t).URL(), Observe: true})
	js := b.JetStream()
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "OTHER", Subjects: []string{"other"}}); err != nil {
		t.Fatal(err)
	}
	settings := bus.StreamSettings{MaxAge: time.Hour, MaxBytes: 1 << 20, FilesMaxBytes: 2 << 20}
	changes, err := b.CompareStreams(t.Context(), settings)
	if got := changed(t, changes, err); len(got) != len(settings.Streams()) || !changes[0].Missing {
		t.Errorf("before: got %v, want every stream missing", changes)
	}
	changes, err = b.ApplyStreams(t.Context(), settings)
	changed(t, changes, err)
	changes, err = b.ApplyStreams(t.Context(), settings)
	if got := changed(t, changes, err); got != nil {
		t.Errorf("second apply: got %+v, want no change", changes)
	}
	files, err := js.Stream(t.Context(), bus.FilesStream)
	if err != nil || files.CachedInfo().Config.MaxBytes != 2<<20 {
		t.Errorf("got %+v, %v, want the object store", files, err)
	}
	if _, err := js.ObjectStore(t.Context(), "FILES"); err != nil {
		t.Errorf("opening the object store with nats.go: %v", err)
	}
	if _, err := js.Stream(t.Context(), "OTHER"); err != nil {
		t.Errorf("stream of another application: got %v, want it unchanged", err)
	}
}

// Each drift is reported by field and corrected by the next apply.
func TestApplyFindsEveryDrift(t *testing.T) {
	t.Parallel()
	b := bustest.OpenConfig(t, bus.Config{URL: bustest.StartBare(t).URL(), Observe: true})
	js := b.JetStream()
	if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "ELSEWHERE"}); err != nil {
		t.Fatal(err)
	}
	settings := bus.StreamSettings{MaxAge: time.Hour, MaxBytes: 1 << 20}
	if _, err := b.ApplyStreams(t.Context(), settings); err != nil {
		t.Fatal(err)
	}
	for field, bend := range map[string]func(*jetstream.StreamConfig){
		"subjects":             func(c *jetstream.StreamConfig) { c.Subjects = append(slices.Clone(c.Subjects), "more") },
		"discard":              func(c *jetstream.StreamConfig) { c.Discard = jetstream.DiscardOld },
		"max_age":              func(c *jetstream.StreamConfig) { c.MaxAge = 2 * time.Hour },
		"max_bytes":            func(c *jetstream.StreamConfig) { c.MaxBytes = 1 << 21 },
		"max_msgs":             func(c *jetstream.StreamConfig) { c.MaxMsgs = 5 },
		"max_msgs_per_subject": func(c *jetstream.StreamConfig) { c.MaxMsgsPerSubject = 1 },
		"max_msg_size":         func(c *jetstream.StreamConfig) { c.MaxMsgSize = 10 },
		"duplicate_window":     func(c *jetstream.StreamConfig) { c.Duplicates = time.Second },
		"republish":            func(c *jetstream.StreamConfig) { c.RePublish = &jetstream.RePublish{Source: ">", Destination: "spy.>"} },
		"sources":              func(c *jetstream.StreamConfig) { c.Sources = []*jetstream.StreamSource{{Name: "ELSEWHERE"}} },
		"subject_transform": func(c *jetstream.StreamConfig) {
			c.SubjectTransform = &jetstream.SubjectTransformConfig{Source: "chat.reply.*.*", Destination: "chat.reply.x.$1.$2"}
		},
		"allow_rollup_hdrs": func(c *jetstream.StreamConfig) { c.AllowRollup = true },
		"allow_direct":      func(c *jetstream.StreamConfig) { c.AllowDirect = false },
		"no_ack":            func(c *jetstream.StreamConfig) { c.NoAck = true },
		"metadata":          func(c *jetstream.StreamConfig) { c.Metadata = map[string]string{"a": "b"} },
		"compression":       func(c *jetstream.StreamConfig) { c.Compression = jetstream.S2Compression },
	} {
		stream, err := js.Stream(t.Context(), subject.Replies)
		if err != nil {
			t.Fatal(err)
		}
		bent := stream.CachedInfo().Config
		bend(&bent)
		if _, err := js.UpdateStream(t.Context(), bent); err != nil {
			t.Fatalf("%s: %v", field, err)
		}
		changes, err := b.CompareStreams(t.Context(), settings)
		if got := changed(t, changes, err); !slices.Equal(got, []string{subject.Replies}) || !slices.Equal(fields(changes[2]), []string{field}) {
			t.Errorf("%s: got %+v, want only this drift of REPLIES", field, changes)
		}
		if _, err := b.ApplyStreams(t.Context(), settings); err != nil {
			t.Errorf("%s: applying: %v", field, err)
		}
		changes, err = b.CompareStreams(t.Context(), settings)
		if got := changed(t, changes, err); got != nil {
			t.Errorf("%s: got %+v left, want none", field, changes)
		}
	}
}

// A change that the server rejects is reported with the stream's name.
func TestApplyReportsARejectedChange(t *testing.T) {
	t.Parallel()
	b := bustest.OpenConfig(t, bus.Config{URL: bustest.StartBare(t).URL(), Observe: true})
	settings := bus.StreamSettings{MaxAge: time.Hour, MaxBytes: 1 << 20}
	memory := settings.Streams()[0]
	memory.Storage = jetstream.MemoryStorage
	if _, err := b.JetStream().CreateStream(t.Context(), memory); err != nil {
		t.Fatal(err)
	}
	_, err := b.ApplyStreams(t.Context(), settings)
	if !apperr.Is(err, apperr.Conflict) || !strings.Contains(err.Error(), "INBOUND") {
		t.Errorf("got %v, want a rejection that names INBOUND", err)
	}
}
