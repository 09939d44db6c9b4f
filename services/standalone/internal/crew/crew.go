// Package crew runs the long-lived parts of a process. Whoever ends by itself takes the whole crew down, and the order in
// which the rest stops is the caller's.
package crew

import (
	"context"
	"errors"
	"fmt"
)

// Crew is what runs together.
type Crew struct {
	ended   context.Context
	end     context.CancelCauseFunc
	members []*Member
}

// New returns a crew that is to end when ctx is done.
func New(ctx context.Context) *Crew {
	ended, end := context.WithCancelCause(ctx)
	return &Crew{ended: ended, end: end}
}

// Ended is done when the crew is to stop: its context has ended, or a member has.
func (c *Crew) Ended() context.Context { return c.ended }

// Member is one thing that runs until it is stopped.
type Member struct {
	cancel context.CancelFunc
	done   chan struct{}
	err    error // set before done is closed
}

// Start runs a member. Its context ends only with Stop, so that it outlives whoever depends on it.
func (c *Crew) Start(name string, run func(context.Context) error) *Member {
	ctx, cancel := context.WithCancel(context.WithoutCancel(c.ended))
	m := &Member{cancel: cancel, done: make(chan struct{})}
	c.members = append(c.members, m)
	go func() {
		defer close(m.done)
		if err := run(ctx); err != nil {
			m.err = fmt.Errorf("%s: %w", name, err)
		}
		if ctx.Err() == nil {
			c.end(fmt.Errorf("%s stopped by itself", name))
		}
	}()
	return m
}

// Stop stops members at the same time and returns when they have stopped. Stopping twice is harmless.
func Stop(members ...*Member) {
	for _, m := range members {
		m.cancel()
	}
	for _, m := range members {
		<-m.done
	}
}

// Close stops who still runs, the last that started first, and returns the errors of all.
func (c *Crew) Close() error {
	var errs []error
	for i := len(c.members) - 1; i >= 0; i-- {
		Stop(c.members[i])
		errs = append(errs, c.members[i].err)
	}
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if cause := context.Cause(c.ended); cause != nil && !errors.Is(cause, context.Canceled) {
		return cause
	}
	c.end(nil)
	return nil
}
