package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/proto-events/subject"
)

const (
	originsTimeout = 2 * time.Second
	originsGroup   = "widget-api" // queue group
)

// originsResponse is the response of a Widget API. An empty payload is an error.
type originsResponse struct {
	Found          bool     `json:"found"`
	AllowedOrigins []string `json:"allowedOrigins"`
}

// AllowedOrigins requests the allowed origins of an application from a Widget API; found is false if the
// application does not exist. It returns Unavailable if none responds.
func (b *Bus) AllowedOrigins(ctx context.Context, appID string) (origins []string, found bool, err error) {
	if !subject.Valid(appID) {
		return nil, false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, originsTimeout)
	defer cancel()
	m, err := b.conn.RequestWithContext(ctx, subject.OriginsRequest(appID), nil)
	if err != nil {
		return nil, false, apperr.Unreachable("the Widget API", fmt.Errorf("requesting allowed origins: %w", err))
	}
	var response originsResponse
	if len(m.Data) == 0 || json.Unmarshal(m.Data, &response) != nil {
		return nil, false, apperr.Unreachable("the Widget API", errors.New("it failed to return the allowed origins"))
	}
	return response.AllowedOrigins, response.Found, nil
}

// HandleOrigins responds to [Bus.AllowedOrigins] with the result of find until stop is called; stop waits for
// running calls. Callers receive errors other than NotFound without their text.
func (b *Bus) HandleOrigins(find func(ctx context.Context, appID string) ([]string, error)) (stop func(), err error) {
	a := &responder{respond: func(ctx context.Context, m *nats.Msg) []byte { return respondOrigins(ctx, m.Subject, find) }}
	return a.listen(b, subject.AllOriginRequests, originsGroup)
}

// responder handles requests concurrently, so that one that waits for MongoDB does not delay the others.
type responder struct {
	respond func(ctx context.Context, m *nats.Msg) []byte
	ctx     context.Context
	cancel  context.CancelFunc

	mu      sync.Mutex
	stopped bool
	running sync.WaitGroup
}

// listen subscribes to requests on the subjects of filter; each reaches one replica of the group.
func (a *responder) listen(b *Bus, filter, group string) (stop func(), err error) {
	a.ctx, a.cancel = context.WithCancel(b.ctx)
	sub, err := b.conn.QueueSubscribe(filter, group, a.handle)
	if err != nil {
		a.cancel()
		return nil, fmt.Errorf("subscribing to requests: %w", err)
	}
	return func() {
		_ = sub.Unsubscribe() // fails only if the connection is closed
		a.stop()
	}, nil
}

func (a *responder) handle(m *nats.Msg) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.stopped {
		a.running.Go(func() { _ = m.Respond(a.respond(a.ctx, m)) }) // the caller retries
	}
}

func (a *responder) stop() {
	a.mu.Lock()
	a.stopped = true
	a.mu.Unlock()
	a.cancel()
	a.running.Wait()
}

func respondOrigins(ctx context.Context, subj string, find func(context.Context, string) ([]string, error)) []byte {
	ctx, cancel := context.WithTimeout(ctx, originsTimeout)
	defer cancel()
	origins, err := find(ctx, strings.TrimPrefix(subj, subject.OriginsRequest("")))
	if err != nil && !apperr.Is(err, apperr.NotFound) {
		return nil
	}
	response, _ := json.Marshal(originsResponse{Found: err == nil, AllowedOrigins: origins}) // strings: always encodes
	return response
}
