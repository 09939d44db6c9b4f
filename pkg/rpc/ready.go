package rpc

import (
	"context"
	"errors"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/proto-events/subject"
)

// readyTimeout is longer than the checks of a service may take.
const readyTimeout = 5 * time.Second

// Dependencies requests the state of each dependency of a service, by name, from one of its replicas: "ok" or
// the error. NotFound: no replica runs.
func (c *Conn) Dependencies(ctx context.Context, service string) (states map[string]string, err error) {
	states, err = Ask[map[string]string](ctx, c, Question{
		Subject: subject.Ready(service),
		Service: service,
		Timeout: readyTimeout,
	})
	if errors.Is(err, nats.ErrNoResponders) {
		return nil, apperr.New(apperr.NotFound, "SERVICE_NOT_RUNNING", "No "+service+" runs").Wrap(err)
	}
	return states, err
}

// HandleDependencies responds to [Conn.Dependencies] for a service with the result of check, until stop is
// called; stop waits for running calls.
func (c *Conn) HandleDependencies(
	service string, check func(ctx context.Context) map[string]string,
) (stop func(), err error) {
	answer := func(ctx context.Context, _ string, _ []byte) (any, error) { return check(ctx), nil }
	return c.answer(subject.Ready(service), service, readyTimeout, answer)
}
