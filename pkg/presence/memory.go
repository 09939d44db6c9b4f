package presence

import (
	"context"
	"sync"
	"time"
)

// Memory stores presence within one process.
type Memory struct {
	now func() time.Time

	mu      sync.Mutex
	entries map[string]entry
	swept   time.Time
}

type entry struct {
	holder string // empty: offline since seenAt
	seenAt time.Time
	until  time.Time
}

// NewMemory returns an empty store. now is the clock.
func NewMemory(now func() time.Time) *Memory {
	return &Memory{now: now, entries: make(map[string]entry), swept: now()}
}

// SetOnline implements [Store].
func (m *Memory) SetOnline(_ context.Context, holder string, keys ...string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := m.now()
	m.sweep(now)
	for _, key := range keys {
		m.entries[key] = entry{holder: holder, until: now.Add(TTL)}
	}
	return nil
}

// SetOffline implements [Store].
func (m *Memory) SetOffline(_ context.Context, holder string, at time.Time, keys ...string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, key := range keys {
		if e, ok := m.entries[key]; ok && e.holder != holder && e.until.After(m.now()) {
			continue
		}
		m.entries[key] = entry{seenAt: at, until: at.Add(SeenTTL)}
	}
	return nil
}

// States implements [Store].
func (m *Memory) States(_ context.Context, keys ...string) ([]State, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	states := make([]State, len(keys))
	for i, key := range keys {
		if e, ok := m.entries[key]; ok && e.until.After(m.now()) {
			states[i] = State{Online: e.holder != "", SeenAt: e.seenAt}
		}
	}
	return states, nil
}

// sweep removes expired entries, at most once per TTL.
func (m *Memory) sweep(now time.Time) {
	if now.Sub(m.swept) < TTL {
		return
	}
	m.swept = now
	for key, e := range m.entries {
		if !e.until.After(now) {
			delete(m.entries, key)
		}
	}
}
