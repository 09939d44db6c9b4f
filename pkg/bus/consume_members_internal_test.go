package bus

import (
	"testing"
	"time"
)

// A replica without heartbeats is removed, but not by a process that stood still itself: it has not read them yet.
func TestMembersExpire(t *testing.T) {
	t.Parallel()
	now := time.Now()
	m := newMembers(nil, "STREAM", "tester")
	m.expire(now)
	m.receive(memberState{ID: "other"}, now)
	check := func(what string, want int) {
		t.Helper()
		if got := len(m.active()); got != want {
			t.Errorf("%s: got %d replicas, want %d", what, got, want)
		}
	}
	now = now.Add(2 * memberTimeout)
	m.expire(now)
	check("after a stop of this process", 2)
	for range 4 {
		now = now.Add(memberHeartbeat)
		m.expire(now)
		check("before the timeout", 2)
	}
	now = now.Add(memberHeartbeat)
	m.expire(now)
	check("after the timeout", 1)
}
