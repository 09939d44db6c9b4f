package bus_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/embedded"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/needs"
	"github.com/parley-chat/parley/testkit/timetest"
)

// rotting is a NATS server whose files the test damages.
type rotting struct {
	t    *testing.T
	dir  string
	nats *embedded.NATS
	bus  *bus.Bus
}

// duplicates is the shortest duplicate window that nats-server allows.
const duplicates = 100 * time.Millisecond

func startRotting(t *testing.T) *rotting {
	t.Helper()
	r := &rotting{t: t, dir: t.TempDir()}
	r.start()
	r.connect()
	// Streams of this size have files of 32 KB.
	bustest.Declare(t, r.nats.URL(), bus.StreamSettings{Partitions: 1, MaxBytes: 100_000, FilesMaxBytes: 1 << 20})
	// When the server starts, it reads the messages of the duplicate window, and has them in memory for some seconds.
	js := bustest.JetStream(t, r.nats.URL())
	inbound, err := js.Stream(t.Context(), subject.Inbound)
	if err != nil {
		t.Fatal(err)
	}
	config := inbound.CachedInfo().Config
	config.Duplicates = duplicates
	if _, err := js.UpdateStream(t.Context(), config); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rotting) start() {
	r.t.Helper()
	n, err := embedded.StartNATS(embedded.NATSConfig{Dir: r.dir})
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(n.Stop)
	r.nats = n
}

// connect opens the bus, which reads some of the messages.
func (r *rotting) connect() {
	r.t.Helper()
	r.bus = bustest.OpenConfig(r.t, bus.Config{URL: r.nats.URL(), Observe: true})
}

func (r *rotting) stop() {
	r.bus.Close()
	r.nats.Stop()
	time.Sleep(duplicates) // the next start reads no message of the duplicate window
}

// publish stores texts in a stream; the subject has a %d for their number.
func (r *rotting) publish(subjects string, texts ...string) {
	r.t.Helper()
	js := bustest.JetStream(r.t, r.nats.URL())
	for n, text := range texts {
		if _, err := js.Publish(r.t.Context(), fmt.Sprintf(subjects, n+1), []byte(text)); err != nil {
			r.t.Fatal(err)
		}
	}
}

func (r *rotting) damage(stream, text string) {
	r.t.Helper()
	bustest.Damage(r.t, r.dir, stream, text)
}

// verify returns the result for a stream with one copy.
func (r *rotting) verify(stream string) bus.Verification {
	r.t.Helper()
	found, err := r.bus.Verify(r.t.Context(), stream, 0)
	if err != nil || len(found) != 1 {
		r.t.Fatalf("%s: got %v and %v, want one result", stream, found, err)
	}
	return found[0]
}

// names returns what is damaged, in short.
func names(v bus.Verification) string {
	var all []string
	for _, d := range v.Damaged {
		if d.Subject != "" {
			all = append(all, d.Subject)
			continue
		}
		all = append(all, fmt.Sprintf("%d-%d", d.First, d.Last))
	}
	return strings.Join(all, " ")
}

// question is the payload of a message, of a kilobyte.
func question(sequence uint64) string {
	return fmt.Sprintf("question <%d>%s", sequence, strings.Repeat(".", 1000))
}

func questions(n uint64) (texts []string) {
	for i := range n {
		texts = append(texts, question(i+1))
	}
	return texts
}

// Messages that are damaged on the disk, while the server is stopped and while it runs, are named exactly and never
// served. Consumers get all others. A backup leaves the damaged ones out, and its restore keeps the rest as it was.
func TestVerifyNamesDamagedMessages(t *testing.T) {
	t.Parallel()
	r := startRotting(t)
	r.publish("chat.in.visitor.app.%d", questions(60)...)
	inbound, err := r.bus.Stream(t.Context(), subject.Inbound)
	if err != nil {
		t.Fatal(err)
	}
	if err := inbound.DeleteMsg(t.Context(), 20); err != nil {
		t.Fatal(err)
	}
	r.publish("parley.revocation.company.%d", "revoked one", "revoked two", "revoked three")
	files, err := bustest.JetStream(t, r.nats.URL()).ObjectStore(t.Context(), "FILES")
	if err != nil {
		t.Fatal(err)
	}
	content := strings.Repeat("x", 128<<10) + "second chunk"
	if _, err := files.PutString(t.Context(), "file", content); err != nil {
		t.Fatal(err)
	}
	if got := names(r.verify(subject.Inbound)); got != "" {
		t.Fatalf("got %s damaged, want nothing", got)
	}

	r.stop()
	r.damage(subject.Inbound, "question <10>")
	r.damage(subject.Inbound, "question <11>")
	r.damage(subject.Inbound, "question <60>")
	r.damage(subject.Revocations, "revoked two")
	r.damage(bus.FilesStream, "second chunk")
	r.start()
	r.damage(subject.Inbound, "question <25>") // its file was not read since the start
	r.connect()

	v := r.verify(subject.Inbound)
	if got := names(v); got != "10-11 25-25 60-60" || v.Read != 55 || v.Dropped != 0 {
		t.Errorf("got %s damaged, %d read and %d bytes dropped, want 10-11 25-25 60-60, 55 and 0", got, v.Read, v.Dropped)
	}
	before, err := r.bus.Get(t.Context(), subject.Inbound, 9)
	if err != nil || len(v.Damaged) < 3 ||
		!v.Damaged[0].After.Equal(before.Time) || !v.Damaged[0].Before.After(before.Time) ||
		!v.Damaged[2].Before.IsZero() {
		t.Errorf("got the times %+v, want those of the messages around: %v and %v", v.Damaged, before.Time, err)
	}
	if got := names(r.verify(subject.Revocations)); got != "parley.revocation.company.2" {
		t.Errorf("got %q damaged, want the second revocation", got)
	}
	if got := names(r.verify(bus.FilesStream)); got != "2-2" {
		t.Errorf("got %q damaged, want the second chunk of the file", got)
	}

	damaged := []uint64{10, 11, 20, 25, 60}
	r.serves(damaged, 60)
	var copied bytes.Buffer
	snapshot, err := r.bus.SaveStream(t.Context(), subject.Inbound, &copied)
	if err != nil {
		t.Fatal(err)
	}
	if err := r.bus.DeleteStream(t.Context(), subject.Inbound); err != nil {
		t.Fatal(err)
	}
	if err := r.bus.RestoreStream(t.Context(), subject.Inbound, snapshot, 0, &copied); err != nil {
		t.Fatal(err)
	}
	if v := r.verify(subject.Inbound); len(v.Damaged) > 0 || v.Read != 55 {
		t.Errorf("got %s damaged and %d read, want the 55 readable messages restored", names(v), v.Read)
	}
	groups, err := r.bus.Groups(t.Context(), subject.Inbound)
	if err != nil || len(groups) != 1 || groups[0].Total().Pending != 0 {
		t.Errorf("got the consumers %+v and %v, want the one that has read everything", groups, err)
	}
	r.serves(damaged, 60)
}

// serves expects that consumers and direct reads get the messages up to last but these.
func (r *rotting) serves(without []uint64, last uint64) {
	r.t.Helper()
	var want, read, direct []uint64
	for n := uint64(1); n <= last; n++ {
		if !slices.Contains(without, n) {
			want = append(want, n)
		}
	}
	r.consumes(want)
	for d, err := range r.bus.Read(r.t.Context(), bus.Range{Stream: subject.Inbound}) {
		if err != nil {
			r.t.Fatal(err)
		}
		read = append(read, r.whole(d))
	}
	for d, err := range r.bus.After(r.t.Context(), subject.Inbound, ">", 0) {
		if err != nil {
			r.t.Fatal(err)
		}
		direct = append(direct, r.whole(d))
	}
	if !slices.Equal(read, want) || !slices.Equal(direct, want) {
		r.t.Errorf("got %v by a reader and %v by direct gets, want all but %v", read, direct, without)
	}
	for _, n := range without {
		if d, err := r.bus.Get(r.t.Context(), subject.Inbound, n); !apperr.Is(err, apperr.NotFound) {
			r.t.Errorf("message %d: got %s and %v, want NotFound", n, d.Data, err)
		}
	}
}

// consumes expects that a durable consumer handles these messages, unless it has before.
func (r *rotting) consumes(want []uint64) {
	r.t.Helper()
	groups, err := r.bus.Groups(r.t.Context(), subject.Inbound)
	if err != nil {
		r.t.Fatal(err)
	}
	if len(groups) > 0 {
		return
	}
	handled := make(chan uint64, len(want)+1)
	c := consume(r.t, r.bus, bus.Consumer{Stream: subject.Inbound, Handle: func(_ context.Context, d bus.Delivery) error {
		handled <- r.whole(d)
		return nil
	}})
	var got []uint64
	for range want {
		got = append(got, receive(r.t, "a delivery", handled))
	}
	c.end()
	slices.Sort(got)
	if !slices.Equal(got, want) {
		r.t.Errorf("got %v consumed, want %v", got, want)
	}
}

// whole returns the sequence of a message, whose payload must be as it was published.
func (r *rotting) whole(d bus.Delivery) uint64 {
	if string(d.Data) != question(d.Sequence) {
		r.t.Errorf("got the payload %q of message %d, want what was published", d.Data, d.Sequence)
	}
	return d.Sequence
}

// Without its index, which a power cut leaves older than the messages, nats-server cuts a damaged file off at the
// damage when it starts. It tells how much for as long as it runs.
func TestVerifyTellsWhatTheServerDropped(t *testing.T) {
	t.Parallel()
	r := startRotting(t)
	r.publish("chat.in.visitor.app.%d", questions(60)...)
	r.stop()
	r.damage(subject.Inbound, "question <50>")
	if err := os.Remove(filepath.Join(bustest.Messages(r.dir, subject.Inbound), "index.db")); err != nil {
		t.Fatal(err)
	}
	r.start()
	r.connect()
	if v := r.verify(subject.Inbound); v.Dropped == 0 || v.Read != 49 {
		t.Errorf("got %+v, want 49 messages read, and dropped bytes", v)
	}
}

// What is published and removed during a verification is not damaged.
func TestVerifyWhileTheStreamChanges(t *testing.T) {
	t.Parallel()
	r := startRotting(t)
	r.publish("chat.in.visitor.app.%d", questions(50)...)
	inbound, err := r.bus.Stream(t.Context(), subject.Inbound)
	if err != nil {
		t.Fatal(err)
	}
	stop, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		js := bustest.JetStream(t, r.nats.URL())
		for n := uint64(2); n <= 40; n++ {
			select {
			case <-stop:
				return
			default:
			}
			_, err := js.Publish(t.Context(), "chat.in.visitor.app.1", []byte("one more"))
			err = errors.Join(
				err,
				inbound.DeleteMsg(t.Context(), n),
				inbound.Purge(t.Context(), jetstream.WithPurgeSequence(n/2)),
			)
			if err != nil {
				t.Error(err)
				return
			}
		}
	}()
	for range 10 {
		if v := r.verify(subject.Inbound); len(v.Damaged) > 0 {
			t.Errorf("got %s damaged, want nothing", names(v))
		}
	}
	close(stop)
	<-ended
}

func TestVerifyOfAMissingStream(t *testing.T) {
	t.Parallel()
	b := bustest.OpenConfig(t, bus.Config{URL: bustest.StartBare(t).URL(), Observe: true})
	if _, err := b.Verify(t.Context(), subject.Inbound, 0); !apperr.Is(err, apperr.NotFound) {
		t.Errorf("got %v, want NotFound", err)
	}
}

// With three servers, a verification reads the copy of each and names the server whose copy is damaged.
func TestVerifyNamesTheServer(t *testing.T) {
	needs.Long(t)
	t.Parallel()
	servers := startCluster(t)
	js := bustest.JetStream(t, servers[0].ClientURL())
	settings := bus.StreamSettings{Sync: bus.SyncNone, MaxBytes: 100_000, Partitions: 1, Replicas: 3}
	config := settings.Streams()[slices.IndexFunc(settings.Streams(), func(c jetstream.StreamConfig) bool {
		return c.Name == subject.Inbound
	})]
	timetest.Until(t, "the cluster creates the stream", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := js.CreateStream(ctx, config)
		return err == nil
	})
	for _, text := range questions(60) {
		if _, err := js.Publish(t.Context(), "chat.in.visitor.app.user", []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	b := bustest.OpenConfig(t, bus.Config{URL: servers[0].ClientURL(), Observe: true})
	verify := func() map[string]string {
		found, err := b.Verify(t.Context(), subject.Inbound, 0)
		if err != nil { // the stream has no leader yet
			return nil
		}
		damaged := make(map[string]string)
		for _, v := range found {
			damaged[v.Server] = names(v)
		}
		return damaged
	}
	want := map[string]string{"nats-0": "", "nats-1": "", "nats-2": ""}
	timetest.Until(t, "all servers have all messages", func() bool { return maps.Equal(verify(), want) })
	bustest.Damage(t, filepath.Dir(servers[1].JetStreamConfig().StoreDir), subject.Inbound, "question <10>")
	want["nats-1"] = "10-10"
	// The server may have the file in memory for some seconds.
	timetest.Until(t, "the damage is found", func() bool { return maps.Equal(verify(), want) })
}
