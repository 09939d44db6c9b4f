package sqlite

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// operationTimeout bounds the wait of an operation for the writer or for a connection.
	operationTimeout = 5 * time.Second
	// busyTimeout bounds each wait of SQLite for a lock held by another process. After it, the writer checks whether
	// any caller still waits.
	busyTimeout = 250 * time.Millisecond
	// maxGroup bounds the writes of one transaction, and so the latency of a commit.
	maxGroup = 256
)

var (
	errClosed  = errors.New("the store is closed")
	errTimeout = errors.New("no answer within " + operationTimeout.String())
)

// write runs op in the writer's next transaction and returns when it is durable.
//
// op may run twice, so it must have no side effects except its results. An error that op returns after a write rolls
// that write back.
func write[V any](ctx context.Context, s *Store, act string, op func(*conn) (V, error)) (V, error) {
	var zero, result V
	err := s.writer.do(ctx, func(c *conn) (err error) {
		result, err = op(c)
		return err
	})
	if err != nil { // the writer may still be using result
		return zero, translate(ctx, act, err)
	}
	return result, nil
}

// update is write for an operation without a result.
func update(ctx context.Context, s *Store, act string, op func(*conn) error) error {
	_, err := write(ctx, s, act, func(c *conn) (struct{}, error) { return struct{}{}, op(c) })
	return err
}

// writer is the only goroutine of the process that writes. All waiting writes go into one transaction, so that one
// fsync serves all of them.
type writer struct {
	open    func() (*conn, error)
	log     *slog.Logger
	jobs    chan *job
	closing chan struct{}
	ended   chan struct{}
	once    sync.Once

	conn    *conn // nil after an error that a new connection may fix
	failing bool  // the last transaction failed
}

// job is one queued write.
type job struct {
	op    func(*conn) error
	state atomic.Int32
	err   error         // valid after done is closed
	done  chan struct{} // closed when the transaction has ended
}

const (
	waiting int32 = iota
	running
	abandoned
)

func newWriter(c *conn, open func() (*conn, error), log *slog.Logger) *writer {
	w := &writer{
		open: open, log: log, conn: c,
		jobs: make(chan *job, maxGroup), closing: make(chan struct{}), ended: make(chan struct{}),
	}
	go w.run()
	return w
}

// do runs op on the writer. If ctx ends or the timeout expires before the job starts, the job is cancelled.
func (w *writer) do(ctx context.Context, op func(*conn) error) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	j := &job{op: op, done: make(chan struct{})}
	timeout := time.NewTimer(operationTimeout)
	defer timeout.Stop()
	select {
	case w.jobs <- j:
	case <-w.closing:
		return errClosed
	case <-ctx.Done():
		return ctx.Err()
	case <-timeout.C:
		return errTimeout
	}
	select {
	case <-j.done:
		return j.err
	case <-w.ended:
		return w.afterEnd(j)
	case <-ctx.Done():
		j.state.CompareAndSwap(waiting, abandoned)
		return ctx.Err()
	case <-timeout.C:
		j.state.CompareAndSwap(waiting, abandoned)
		return errTimeout
	}
}

// afterEnd returns the outcome of a job after the writer has ended: it was either the last one, or too late.
func (*writer) afterEnd(j *job) error {
	select {
	case <-j.done:
		return j.err
	default:
		return errClosed
	}
}

// close stops the writer after all waiting jobs, or when ctx ends.
func (w *writer) close(ctx context.Context) error {
	w.once.Do(func() { close(w.closing) })
	select {
	case <-w.ended:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (w *writer) run() {
	defer close(w.ended)
	defer w.disconnect()
	for {
		select {
		case j := <-w.jobs:
			w.serve(w.collect(j))
		case <-w.closing:
			for {
				select {
				case j := <-w.jobs:
					w.serve(w.collect(j))
				default:
					return
				}
			}
		}
	}
}

// collect adds all waiting jobs to the first one.
func (w *writer) collect(first *job) []*job {
	group := []*job{first}
	for len(group) < maxGroup {
		select {
		case j := <-w.jobs:
			group = append(group, j)
		default:
			return group
		}
	}
	return group
}

// serve runs a group in one transaction and completes its jobs.
func (w *writer) serve(group []*job) {
	err := w.begin(group)
	if err == nil {
		err = w.commit(
			slices.DeleteFunc(slices.Clone(group), func(j *job) bool { return !j.state.CompareAndSwap(waiting, running) }),
		)
	}
	w.recordOutcome(err)
	for _, j := range group {
		if err != nil {
			j.err = err
		}
		close(j.done)
	}
}

// begin starts a transaction. While another process holds the lock it retries for as long as a caller waits.
func (w *writer) begin(group []*job) error {
	if w.conn == nil {
		c, err := w.open()
		if err != nil {
			return err
		}
		w.conn = c
	}
	for {
		_, err := w.conn.exec("BEGIN IMMEDIATE")
		if !isBusy(err) || w.isClosing() || !hasWaiting(group) {
			return err
		}
	}
}

func hasWaiting(group []*job) bool {
	return slices.ContainsFunc(group, func(j *job) bool { return j.state.Load() == waiting })
}

func (w *writer) isClosing() bool {
	select {
	case <-w.closing:
		return true
	default:
		return false
	}
}

// commit runs the jobs and commits the transaction. If a job fails after a write, which is rare, all jobs run again,
// each in a savepoint, so that only failed jobs are rolled back.
func (w *writer) commit(jobs []*job) error {
	spoiled := w.apply(jobs)
	if spoiled && w.conn.AutocommitEnabled() { // SQLite has rolled back
		return errors.Join(errs(jobs)...)
	}
	if spoiled {
		if _, err := w.conn.exec("ROLLBACK"); err != nil {
			return err
		}
		if _, err := w.conn.exec("BEGIN IMMEDIATE"); err != nil {
			return err
		}
		if err := w.applyEach(jobs); err != nil {
			return err
		}
	}
	_, err := w.conn.exec("COMMIT")
	return err
}

// apply runs the jobs in order. It stops and returns true if a job fails after a write.
func (w *writer) apply(jobs []*job) (spoiled bool) {
	for _, j := range jobs {
		w.conn.wrote = false
		if j.err = j.op(w.conn); j.err != nil && w.conn.wrote {
			return true
		}
	}
	return false
}

// applyEach runs each job in a savepoint. An error fails the whole transaction.
func (w *writer) applyEach(jobs []*job) error {
	for _, j := range jobs {
		if _, err := w.conn.exec("SAVEPOINT job"); err != nil {
			return err
		}
		j.err = j.op(w.conn)
		if w.conn.AutocommitEnabled() {
			return j.err
		}
		if j.err != nil {
			if _, err := w.conn.exec("ROLLBACK TO job"); err != nil {
				return err
			}
		}
		if _, err := w.conn.exec("RELEASE job"); err != nil {
			return err
		}
	}
	return nil
}

func errs(jobs []*job) (all []error) {
	for _, j := range jobs {
		all = append(all, j.err)
	}
	return all
}

// recordOutcome logs the first failed transaction and the first successful one after failures. After an error other
// than busy, the next transaction uses a new connection, in case the old one is in a bad state.
func (w *writer) recordOutcome(err error) {
	if err != nil && w.conn != nil {
		if !w.conn.AutocommitEnabled() {
			_, _ = w.conn.exec("ROLLBACK") // closing the connection does the same
		}
		if !isBusy(err) {
			w.disconnect()
		}
	}
	if failing := err != nil; failing != w.failing {
		w.failing = failing
		if failing {
			w.log.LogAttrs(context.Background(), slog.LevelError, "writing to SQLite failed", slog.String("error", err.Error()))
		} else {
			w.log.LogAttrs(context.Background(), slog.LevelInfo, "writing to SQLite succeeds again")
		}
	}
}

func (w *writer) disconnect() {
	if w.conn == nil {
		return
	}
	if err := w.conn.Close(); err != nil {
		w.log.LogAttrs(
			context.Background(), slog.LevelWarn, "closing SQLite's writer failed",
			slog.String("error", err.Error()),
		)
	}
	w.conn = nil
}
