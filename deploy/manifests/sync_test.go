package manifests

import (
	"context"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/streamsync"
	"github.com/parley-chat/parley/proto-events/subject"
)

// answerSyncs answers requests for syncs as the user of `parleyctl streams sync`. An empty message is what most APIs of
// JetStream take for a request.
func answerSyncs(t *testing.T, s *server.Server) {
	t.Helper()
	conn := natsConn(t, s, "syncer")
	if _, err := conn.QueueSubscribe(subject.Sync("*"), "streamsync", func(m *nats.Msg) { _ = m.Respond(nil) }); err != nil {
		t.Fatal(err)
	}
	if err := conn.FlushTimeout(patience); err != nil {
		t.Fatal(err)
	}
}

// A service publishes with the streams' real sync, each connected as its own user.
func TestPublishWithSharedSync(t *testing.T) {
	t.Parallel()
	s := startParleyNATS(t)
	applyStreams(t, s)
	syncer := streamsync.New(filepath.Dir(s.JetStreamConfig().StoreDir))
	t.Cleanup(syncer.Close)
	synced := make(chan string, 10)
	stop, err := openBus(t, s, "syncer", []string{}...).RPC().HandleSyncs(func(ctx context.Context, stream string) error {
		synced <- stream
		return syncer.Sync(ctx, stream)
	})
	if err != nil {
		t.Fatal(err)
	}
	defer stop()
	if err := openBus(t, s, "client-api", subject.Sends).Publish(t.Context(), event.Derived(), companyMessage(uuid.NewString())); err != nil {
		t.Fatal(err)
	}
	select {
	case stream := <-synced:
		if stream != subject.Sends {
			t.Errorf("got a sync of %s, want %s", stream, subject.Sends)
		}
	default:
		t.Error("the event was accepted without a sync")
	}
}

// syncedStreams returns the streams that are synced: the loss of the end of PARTS loses no message. Of POSITIONS only the
// records of lost messages are synced.
func syncedStreams() []string {
	names := []string{bus.FilesStream}
	for _, stream := range subject.Streams() {
		if stream.Name != subject.Parts {
			names = append(names, stream.Name)
		}
	}
	return names
}

// writtenStreams returns the streams that a service's account may write to.
func writtenStreams(requests []string) []string {
	var names []string
	for _, subj := range requests {
		name := subject.StreamOf(subj)
		if strings.HasPrefix(subj, "$O.FILES.") {
			name = bus.FilesStream
		}
		if slices.Contains(syncedStreams(), name) && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Each user gets the syncer's answer for the streams that it may write to, and for no other: a service without it could
// not publish, and one with more could make the syncer work for others.
func TestWritersMayRequestSyncs(t *testing.T) {
	t.Parallel()
	s := startParleyNATS(t)
	answerSyncs(t, s)
	may := map[string][]string{"panel": syncedStreams(), "operator": syncedStreams()}
	for user, requests := range requestsOf(t) {
		may[user] = writtenStreams(requests)
		if len(may[user]) == 0 {
			t.Errorf("got no stream that %s writes to", user)
		}
	}
	for _, user := range natsUsers() {
		conn := natsConn(t, s, user)
		for _, stream := range syncedStreams() {
			wait := patience
			if !slices.Contains(may[user], stream) {
				wait = 100 * time.Millisecond // the server does not reply to rejected requests
			}
			_, err := conn.Request(subject.Sync(stream), nil, wait)
			if want := slices.Contains(may[user], stream); (err == nil) != want {
				t.Errorf("%s requests a sync of %s: got %v, want an answer: %v", user, stream, err, want)
			}
		}
	}
}

// The syncer receives requests for syncs and nothing else.
func TestSyncerHearsRequestsOnly(t *testing.T) {
	t.Parallel()
	s := startParleyNATS(t)
	syncer, operator := natsConn(t, s, "syncer"), natsConn(t, s, "operator")
	heard := make(chan *nats.Msg, 100)
	for _, pattern := range []string{">", "chat.>", "parley.>", "$JS.>", "_INBOX.>", "_INBOX.parleyctl.>", subject.Sync("*")} {
		if _, err := syncer.ChanSubscribe(pattern, heard); err != nil {
			t.Fatal(err)
		}
	}
	if err := syncer.FlushTimeout(patience); err != nil {
		t.Fatal(err)
	}
	last := subject.Sync(subject.Sends)
	for _, subj := range []string{"chat.reply.a.v", "parley.revocation.a.v", "parley.position.REPLIES.a.1", "_INBOX.parleyctl.a", last} {
		if err := operator.Publish(subj, nil); err != nil {
			t.Fatal(err)
		}
	}
	select {
	case m := <-heard: // in the order of one connection's messages
		if m.Subject != last {
			t.Errorf("the syncer hears %s, want requests for syncs only", m.Subject)
		}
	case <-time.After(patience):
		t.Error("the syncer hears nothing, want the request for a sync")
	}
}

// The panel is in the account of the streams, where an API's subject as the reply subject of a request would make the
// syncer call that API.
func TestSyncerAnswersInboxesOnly(t *testing.T) {
	t.Parallel()
	s := startParleyNATS(t)
	operator := applyStreams(t, s)
	answerSyncs(t, s)
	if _, err := operator.Publish(t.Context(), "chat.in.visitor.message.a.v", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	i := intruder{t, "panel", natsConn(t, s, "panel"), operator}
	i.request(subject.Sync(subject.Inbound), "$JS.API.STREAM.DELETE.INBOUND", nil)
	i.untouched("the answer to a request for a sync")
}
