package bus

import (
	"context"
	"sync"
	"time"
)

// connState is the current connection. A request that is in flight when the connection breaks is never answered, and nats.go waits until
// its deadline; with a context of the connState it ends at once.
type connState struct {
	parent context.Context
	mu     sync.Mutex
	ctx    context.Context
	cancel context.CancelFunc
}

func newConnState(parent context.Context) *connState {
	l := &connState{parent: parent}
	l.ctx, l.cancel = context.WithCancel(parent)
	return l
}

// disconnected cancels the requests over the lost connection.
func (l *connState) disconnected() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cancel()
	l.ctx, l.cancel = context.WithCancel(l.parent)
}

// request is a context for one request: it ends with ctx, after limit, or with the connection.
func (l *connState) request(ctx context.Context, limit time.Duration) (context.Context, context.CancelFunc) {
	l.mu.Lock()
	present := l.ctx
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, limit)
	stop := context.AfterFunc(present, cancel)
	return ctx, func() { stop(); cancel() }
}
