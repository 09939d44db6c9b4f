package natsfile

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/file"
)

// silent is a JetStream that cannot write: it answers no publish.
type silent struct {
	jetstream.JetStream
	published int
}

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
	js := &silent{}
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
}
