package rpc

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/proto-events/subject"
)

// syncTimeout bounds one sync: publishers wait no longer.
const syncTimeout = 5 * time.Second

// syncAnswer has the form of an acknowledgement of JetStream, so that publishers wait for both in the same way.
type syncAnswer struct {
	Stream string              `json:"stream"`
	Error  *jetstream.APIError `json:"error,omitempty"`
}

// HandleSyncs calls sync for each request on [subject.Sync], until stop is called, and answers when it returns; stop
// waits for running calls. pkg/bus asks for a sync after the acknowledgement of its events. All processes that sync
// the streams of a server must answer alike: a request reaches one.
func (c *Conn) HandleSyncs(sync func(ctx context.Context, stream string) error) (stop func(), err error) {
	answer := func(ctx context.Context, subj string, _ []byte) (any, error) {
		stream := strings.TrimPrefix(subj, subject.Sync(""))
		a := syncAnswer{Stream: stream}
		if err := sync(ctx, stream); err != nil {
			a.Error = &jetstream.APIError{Code: http.StatusServiceUnavailable, Description: err.Error()}
		}
		return a, nil
	}
	return c.answer(subject.Sync("*"), "streamsync", syncTimeout, answer)
}
