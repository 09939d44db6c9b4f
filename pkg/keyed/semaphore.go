// Package keyed has a semaphore for each key, such as a visitor, a user, an address or an application.
package keyed

import (
	"context"
	"math"
	"sync"

	"golang.org/x/sync/semaphore"
)

// Semaphore limits the callers of each key. It is safe for concurrent use.
type Semaphore struct {
	slots   int64
	mu      sync.Mutex
	entries map[string]*entry
}

type entry struct {
	slots *semaphore.Weighted
	users int // holding a slot or waiting for one
}

// NewSemaphore returns a semaphore with that many slots for each key. Zero means unlimited.
func NewSemaphore(slots int) *Semaphore {
	s := &Semaphore{slots: int64(slots), entries: make(map[string]*entry)}
	if slots == 0 {
		s.slots = math.MaxInt64
	}
	return s
}

// TryAcquire takes a slot of the key, which release returns. It reports false if all are taken.
func (s *Semaphore) TryAcquire(key string) (release func(), ok bool) {
	e := s.enter(key)
	if !e.slots.TryAcquire(1) {
		s.leave(key, e)
		return nil, false
	}
	return s.release(key, e), true
}

// Acquire waits for a slot of the key, which release returns. If ctx ends first, it returns its error.
func (s *Semaphore) Acquire(ctx context.Context, key string) (release func(), err error) {
	e := s.enter(key)
	if err := e.slots.Acquire(ctx, 1); err != nil {
		s.leave(key, e)
		return nil, err
	}
	return s.release(key, e), nil
}

func (s *Semaphore) enter(key string) *entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.entries[key]
	if e == nil {
		e = &entry{slots: semaphore.NewWeighted(s.slots)}
		s.entries[key] = e
	}
	e.users++
	return e
}

func (s *Semaphore) release(key string, e *entry) func() {
	return func() {
		e.slots.Release(1)
		s.leave(key, e)
	}
}

func (s *Semaphore) leave(key string, e *entry) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e.users--; e.users == 0 {
		delete(s.entries, key)
	}
}
