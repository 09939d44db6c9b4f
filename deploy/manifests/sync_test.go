package manifests

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/proto-events/subject"
)

// syncSubject is the prefix of the requests for a sync of a stream.
const syncSubject = "parley.sync."

// answerSyncs answers requests for syncs as the user of `parleyctl streams sync`. An empty message is what most APIs of
// JetStream take for a request.
func answerSyncs(t *testing.T, s *server.Server) {
	t.Helper()
	conn := natsConn(t, s, "syncer")
	if _, err := conn.QueueSubscribe(syncSubject+"*", "streamsync", func(m *nats.Msg) { _ = m.Respond(nil) }); err != nil {
		t.Fatal(err)
	}
	if err := conn.FlushTimeout(patience); err != nil {
		t.Fatal(err)
	}
}

// syncedStreams returns the streams that are synced: the loss of the end of PARTS or POSITIONS loses no message.
func syncedStreams() []string {
	names := []string{bus.FilesStream}
	for _, stream := range subject.Streams() {
		if stream.Name != subject.Parts && stream.Name != subject.Positions {
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
			_, err := conn.Request(syncSubject+stream, nil, wait)
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
	for _, pattern := range []string{">", "chat.>", "parley.>", "$JS.>", "_INBOX.>", "_INBOX.parleyctl.>", syncSubject + "*"} {
		if _, err := syncer.ChanSubscribe(pattern, heard); err != nil {
			t.Fatal(err)
		}
	}
	if err := syncer.FlushTimeout(patience); err != nil {
		t.Fatal(err)
	}
	const last = syncSubject + subject.Sends
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
	i.request(syncSubject+subject.Inbound, "$JS.API.STREAM.DELETE.INBOUND", nil)
	i.untouched("the answer to a request for a sync")
}
