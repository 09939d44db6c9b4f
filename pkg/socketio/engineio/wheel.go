package engineio

// Timers of sessions: session_timer.go schedules them, server.go runs the wheel. A time.Timer for each session
// would cost more memory than the rest of an idle session.

import (
	"sync"
	"time"
)

// wheelSlots is the number of slots. Entries of a slot differ by full turns.
const wheelSlots = 256

// wheel is the timer wheel of a server: a ring of slots, each a list of the sessions that are due when the
// hand passes. Setting a timer changes a few pointers and allocates nothing.
type wheel struct {
	tick  time.Duration
	start time.Time

	mu    sync.Mutex // guards the fields below and the wheelEntry of all sessions
	slots [wheelSlots]*Session
	hand  int64 // the last tick that was processed
}

// wheelEntry is the part of a session that the wheel owns, guarded by wheel.mu.
type wheelEntry struct {
	next, prev *Session
	due        int64 // in ticks; 0: not scheduled
}

// newWheel returns a wheel whose hand moves once a tick while it runs.
func newWheel(tick time.Duration) *wheel {
	return &wheel{tick: tick, start: time.Now()}
}

// now returns the time since the wheel's start.
func (w *wheel) now() time.Duration { return time.Since(w.start) }

// schedule sets or resets the timer of s.
func (w *wheel) schedule(s *Session, at time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unlink(s)
	due := int64((at + w.tick - 1) / w.tick)
	s.timer.due = max(due, w.hand+1)
	w.link(s)
}

// remove cancels the timer of a session.
func (w *wheel) remove(s *Session) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.unlink(s)
}

// link adds a session to the slot of its due time. Callers must hold mu.
func (w *wheel) link(s *Session) {
	slot := &w.slots[s.timer.due%wheelSlots]
	s.timer.next = *slot
	if s.timer.next != nil {
		s.timer.next.timer.prev = s
	}
	*slot = s
}

// unlink removes a session from its slot, if it is in one. Callers must hold mu.
func (w *wheel) unlink(s *Session) {
	t := &s.timer
	if t.due == 0 {
		return
	}
	if t.prev != nil {
		t.prev.timer.next = t.next
	} else {
		w.slots[t.due%wheelSlots] = t.next
	}
	if t.next != nil {
		t.next.timer.prev = t.prev
	}
	*t = wheelEntry{}
}

// run turns the wheel until done is closed.
func (w *wheel) run(done <-chan struct{}) {
	ticker := time.NewTicker(w.tick)
	defer ticker.Stop()
	var due []*Session
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
		}
		due = w.advance(due[:0])
		for i, s := range due {
			s.onTimer()
			due[i] = nil
		}
	}
}

// advance moves the hand to now and appends the sessions that are due.
func (w *wheel) advance(due []*Session) []*Session {
	w.mu.Lock()
	defer w.mu.Unlock()
	for now := int64(w.now() / w.tick); w.hand < now; {
		w.hand++
		for s := w.slots[w.hand%wheelSlots]; s != nil; {
			next := s.timer.next
			if s.timer.due <= w.hand {
				w.unlink(s)
				due = append(due, s)
			}
			s = next
		}
	}
	return due
}
