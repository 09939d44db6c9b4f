package bus

// The contexts of requests to the JetStream API, which end with the connection.

import (
	"context"
	"sync"
	"time"
)

// connState cancels requests when the connection is lost. The server never answers a request that was in
// flight then, and nats.go would wait for the request's deadline.
type connState struct {
	parent context.Context
	mu     sync.Mutex // guards ctx and cancel
	ctx    context.Context
	cancel context.CancelFunc
}

func newConnState(parent context.Context) *connState {
	s := &connState{parent: parent}
	s.ctx, s.cancel = context.WithCancel(parent)
	return s
}

// disconnected cancels the requests over the lost connection.
func (s *connState) disconnected() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancel()
	s.ctx, s.cancel = context.WithCancel(s.parent)
}

// request returns a context for one request. It ends with ctx, after limit, or when the connection is lost.
func (s *connState) request(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	s.mu.Lock()
	current := s.ctx
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, limit)
	stop := context.AfterFunc(current, cancel)
	return ctx, func() { stop(); cancel() }
}
