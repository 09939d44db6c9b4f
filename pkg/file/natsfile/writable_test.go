package natsfile

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus/bustest"
	"github.com/parley-chat/parley/pkg/file"
)

// silent is a JetStream that cannot write: it answers no publish.
type silent struct {
	jetstream.JetStream
	published int
	conn      *nats.Conn
}

func (s *silent) Conn() *nats.Conn { return s.conn }

// bucket can be purged.
type bucket struct{ jetstream.Stream }

func (s *silent) PublishMsg(context.Context, *nats.Msg, ...jetstream.PublishOpt) (*jetstream.PubAck, error) {
	s.published++
	return nil, context.DeadlineExceeded
}

func (bucket) Purge(context.Context, ...jetstream.StreamPurgeOpt) error { return nil }

// The first upload finds out that NATS cannot write; the next ones fail at once.
func TestNotWritable(t *testing.T) {
	t.Parallel()
	conn, err := nats.Connect(bustest.Start(t).URL())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js := &silent{conn: conn}
	s := New(js)
	s.stream = bucket{}
	for range 3 {
		_, err := s.Put(t.Context(), file.File{ID: "id"}, strings.NewReader("content"))
		coded, ok := errors.AsType[*apperr.Error](err)
		if !ok || coded.Code != apperr.Unavailable || coded.Reason != "STREAM_NOT_WRITABLE" {
			t.Errorf("got %v, want that the stream is not writable", err)
		}
	}
	if js.published != 1 {
		t.Errorf("got %d publishes, want 1", js.published)
	}
	away := New(js) // without a connection nothing is known of the stream
	away.stream = bucket{}
	conn.Close()
	for range 2 {
		if _, err := away.Put(t.Context(), file.File{ID: "id"}, strings.NewReader("content")); apperr.ReasonOf(err) != "SERVICE_UNAVAILABLE" {
			t.Errorf("without a connection: got %v, want that the service is unavailable", err)
		}
	}
}
