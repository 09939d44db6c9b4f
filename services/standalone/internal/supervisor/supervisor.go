// Package supervisor runs the long-lived components of a process. A component that ends by itself stops all
// of them; the caller decides the order in which the rest stops.
package supervisor

import (
	"context"
	"errors"
	"fmt"
)

// Supervisor runs members together.
type Supervisor struct {
	ended   context.Context
	end     context.CancelCauseFunc
	members []*Member
}

// New returns a supervisor whose members end when ctx is done.
func New(ctx context.Context) *Supervisor {
	ended, end := context.WithCancelCause(ctx)
	return &Supervisor{ended: ended, end: end}
}

// Ended returns a context that is done when all members must stop: the parent context or a member has ended.
func (s *Supervisor) Ended() context.Context { return s.ended }

// Member is a component that runs until it is stopped.
type Member struct {
	cancel context.CancelFunc
	done   chan struct{}
	err    error // set before done is closed
}

// Start runs a member. Its context ends only with Stop, so that it outlives the members that depend on it.
func (s *Supervisor) Start(name string, run func(context.Context) error) *Member {
	ctx, cancel := context.WithCancel(context.WithoutCancel(s.ended))
	m := &Member{cancel: cancel, done: make(chan struct{})}
	s.members = append(s.members, m)
	go func() {
		defer close(m.done)
		if err := run(ctx); err != nil {
			m.err = fmt.Errorf("%s: %w", name, err)
		}
		if ctx.Err() == nil {
			s.end(fmt.Errorf("%s stopped by itself", name))
		}
	}()
	return m
}

// Stop stops members concurrently and returns when they have stopped. It may be called repeatedly.
func Stop(members ...*Member) {
	for _, m := range members {
		m.cancel()
	}
	for _, m := range members {
		<-m.done
	}
}

// Close stops the running members in the opposite order of their start, and returns the errors of all.
func (s *Supervisor) Close() error {
	var errs []error
	for i := len(s.members) - 1; i >= 0; i-- {
		Stop(s.members[i])
		errs = append(errs, s.members[i].err)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if cause := context.Cause(s.ended); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	s.end(nil)
	return nil
}
