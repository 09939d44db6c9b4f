package sqlite

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
)

// scanTimeout bounds a list, which may have to read a whole table.
const scanTimeout = time.Minute

// pool holds read-only connections. They see what was committed when their statement began and never wait for the
// writer.
type pool struct {
	open  func() (*conn, error)
	free  chan *conn    // nil: a connection that is not open yet
	scans chan struct{} // one for each running scan: half of the connections

	mu     sync.Mutex
	closed bool
}

func newPool(size int, open func() (*conn, error)) *pool {
	p := &pool{open: open, free: make(chan *conn, size), scans: make(chan struct{}, max(1, size/2))}
	for range size {
		p.free <- nil
	}
	return p
}

// acquire returns a connection; it waits at most operationTimeout for one.
func (p *pool) acquire(ctx context.Context) (*conn, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	select {
	case c, ok := <-p.free:
		return p.opened(c, ok)
	default:
	}
	timeout := time.NewTimer(operationTimeout)
	defer timeout.Stop()
	select {
	case c, ok := <-p.free:
		return p.opened(c, ok)
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-timeout.C:
		return nil, errTimeout
	}
}

func (p *pool) opened(c *conn, ok bool) (*conn, error) {
	if !ok {
		return nil, errClosed
	}
	if c != nil {
		return c, nil
	}
	c, err := p.open()
	if err != nil {
		p.release(nil, nil)
	}
	return c, err
}

// release returns a connection to the pool. After an error the next caller opens a new one.
func (p *pool) release(c *conn, err error) {
	if err != nil && c != nil {
		_ = c.Close() // nothing can be lost
		c = nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		if c != nil {
			_ = c.Close()
		}
		return
	}
	p.free <- c
}

// close closes the connections, those in use when they are released, for which it waits until ctx ends.
func (p *pool) close(ctx context.Context) error {
	var failed error
	for range cap(p.free) {
		select {
		case c, ok := <-p.free:
			if !ok {
				return nil // already closed
			}
			if c != nil {
				failed = errors.Join(failed, c.Close())
			}
		case <-ctx.Done():
			p.end()
			return errors.Join(failed, ctx.Err())
		}
	}
	p.end()
	return failed
}

func (p *pool) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return
	}
	p.closed = true
	close(p.free)
	for c := range p.free {
		if c != nil {
			_ = c.Close()
		}
	}
}

// read runs op on a read-only connection.
func read[V any](ctx context.Context, s *Store, act string, op func(*conn) (V, error)) (V, error) {
	var zero V
	c, err := s.readers.acquire(ctx)
	if err != nil {
		return zero, translate(ctx, act, err)
	}
	result, err := op(c)
	s.readers.release(c, engineError(err))
	if err != nil {
		return zero, translate(ctx, act, err)
	}
	return result, nil
}

// scan is read for long operations: it ends with ctx, and after scanTimeout. Scans take at most half of the
// connections, so that a single record never waits for lists.
func scan[V any](ctx context.Context, s *Store, act string, op func(*conn) (V, error)) (V, error) {
	bounded, cancel := context.WithTimeout(ctx, scanTimeout)
	defer cancel()
	select {
	case s.readers.scans <- struct{}{}:
		defer func() { <-s.readers.scans }()
	case <-bounded.Done():
		var zero V
		return zero, translate(ctx, act, bounded.Err())
	}
	return read(bounded, s, act, func(c *conn) (V, error) {
		c.SetInterrupt(bounded.Done())
		defer c.SetInterrupt(nil)
		return op(c)
	})
}

// one reads one row; without a row it returns missing.
func one[V any](
	ctx context.Context, s *Store, act, sql string, decode func(*row) V, missing apperr.Definition, args ...any,
) (V, error) {
	return read(ctx, s, act, func(c *conn) (v V, err error) {
		found, err := c.first(sql, func(r *row) { v = decode(r) }, args...)
		if err == nil && !found {
			err = missing.New()
		}
		return v, err
	})
}

// all reads a list.
func all[V any](ctx context.Context, s *Store, act, sql string, decode func(*row) V, args ...any) ([]V, error) {
	return scan(ctx, s, act, func(c *conn) ([]V, error) {
		found := []V{}
		err := c.query(sql, func(r *row) bool {
			found = append(found, decode(r))
			return true
		}, args...)
		return found, err
	})
}
