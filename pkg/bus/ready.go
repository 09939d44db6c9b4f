package bus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/proto-events/subject"
)

// readyTimeout is longer than the checks of a service may take.
const readyTimeout = 5 * time.Second

// Dependencies requests the state of each dependency of a service, by name, from one of its replicas: "ok" or
// the error. NotFound: no replica runs.
func (b *Bus) Dependencies(ctx context.Context, service string) (states map[string]string, err error) {
	ctx, cancel := context.WithTimeout(ctx, readyTimeout)
	defer cancel()
	m, err := b.conn.RequestWithContext(ctx, subject.Ready(service), nil)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return nil, apperr.New(apperr.NotFound, "SERVICE_NOT_RUNNING", "No "+service+" runs").Wrap(err)
	case err != nil:
		return nil, apperr.Unreachable(service, err)
	}
	if err := json.Unmarshal(m.Data, &states); err != nil {
		return nil, fmt.Errorf("decoding the state of %s: %w", service, err)
	}
	return states, nil
}

// HandleDependencies responds to [Bus.Dependencies] for this service with the result of check, until stop is
// called; stop waits for running calls.
func (b *Bus) HandleDependencies(check func(ctx context.Context) map[string]string) (stop func(), err error) {
	a := &responder{respond: func(ctx context.Context, _ *nats.Msg) []byte {
		states, _ := json.Marshal(check(ctx)) // strings: always encodes
		return states
	}}
	return a.listen(b, subject.Ready(b.cfg.Name), b.cfg.Name)
}
