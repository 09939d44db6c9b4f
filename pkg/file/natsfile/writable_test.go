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

// silent is a JetStream that cannot write: it never acknowledges a publish.
type silent struct {
	up        bool
	published int
}

// bucket supports purging.
type bucket struct{ jetstream.Stream }

func (bucket) Purge(context.Context, ...jetstream.StreamPurgeOpt) error { return nil }

func (*silent) Stream(context.Context, string) (jetstream.Stream, error) { return bucket{}, nil }

func (*silent) Sync(context.Context, string) error { return nil }

func (s *silent) Connection() (number uint64, up bool) { return 1, s.up }

func (s *silent) PublishRaw(context.Context, string, *nats.Msg) (*jetstream.PubAck, error) {
	s.published++
	return nil, context.DeadlineExceeded
}

// The first upload detects that NATS cannot write; the next ones fail immediately.
func TestNotWritable(t *testing.T) {
	t.Parallel()
	js := &silent{up: true}
	s := New(js)
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
	unavailable := New(&silent{}) // without a connection the state of the stream is unknown
	for range 2 {
		if _, err := unavailable.Put(t.Context(), file.File{ID: "id"}, strings.NewReader("content")); apperr.ReasonOf(err) != "SERVICE_UNAVAILABLE" {
			t.Errorf("without a connection: got %v, want that the service is unavailable", err)
		}
	}
}
