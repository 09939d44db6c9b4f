package bus

import (
	"slices"
	"testing"
	"time"
)

// A group sheds after it has been full for a while, and from then on at once, until it has been calm for as long.
func TestPressure(t *testing.T) {
	t.Parallel()
	var p pressure
	start := time.Now()
	for _, step := range []struct {
		after time.Duration
		full  bool
		shed  bool
	}{
		{0, true, false},
		{shedAfter - 1, true, false},
		{shedAfter, true, true},
		{shedAfter + 1*time.Second, false, false},
		{shedAfter + 2*time.Second, true, true}, // full again too soon
		{shedAfter + 3*time.Second, false, false},
		{2*shedAfter + 3*time.Second, false, false}, // calm
		{2*shedAfter + 4*time.Second, true, false},
	} {
		if got := p.observe(step.full, start.Add(step.after)); got != step.shed {
			t.Errorf("after %v: got shed %v, want %v", step.after, got, step.shed)
		}
	}
}

// What a tenant may keep is at most what is free then.
func TestFairLevel(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		held []int64
		want int64
	}{
		"one":                {[]int64{120}, 50},
		"two":                {[]int64{60, 60}, 33},
		"a large, a small":   {[]int64{90, 20}, 40},
		"within their parts": {[]int64{30, 20}, 50},
		"many":               {slices.Repeat([]int64{10}, 16), 4},
		"none":               {nil, 100},
	} {
		held := map[*tenant]int64{}
		for _, weight := range test.held {
			held[new(tenant)] = weight
		}
		if got := fairLevel(held, 100); got != test.want {
			t.Errorf("%s: got %d, want %d", name, got, test.want)
		}
	}
}

// The largest part of the largest tenant loses the last tasks of its longest key; what others hold stays.
func TestShed(t *testing.T) {
	t.Parallel()
	q := newKeyedQueue(0, 1, true, nil) // nothing runs
	p := &partition{idle: make(chan struct{})}
	add := func(tenant, part, key string, n int) {
		for range n {
			q.add(&task{partition: p, of: shareKey{tenant, part}, key: key, delivery: Delivery{Sequence: uint64(len(q.byKey))}})
		}
	}
	add("large", "first", "a", 8)
	add("large", "second", "b", 2)
	add("small", "", "c", 2)
	if got := q.shed(12, 12*taskBytes); got["large"] != 5 || len(got) != 1 {
		t.Errorf("got %v given up, want 5 of the large tenant", got)
	}
	left := map[string]int{}
	for key, k := range q.byKey {
		left[key.key] = len(k.tasks)
	}
	if left["a"] != 3 || left["b"] != 2 || left["c"] != 2 {
		t.Errorf("got %v left, want 3 of a, 2 of b and 2 of c", left)
	}
	if got := q.shed(12, 12*taskBytes); got != nil {
		t.Errorf("while some are being given up: got %v, want none", got)
	}
}

// A tenant whose tasks all wait for a retry, each in a key of its own, gives up as many as one whose tasks have not
// been tried.
func TestShedEndsTheWaitForARetry(t *testing.T) {
	t.Parallel()
	q := newKeyedQueue(0, 1, true, nil)
	p := &partition{idle: make(chan struct{})}
	for n := range 12 {
		key := string(rune('a' + n))
		q.add(&task{partition: p, of: shareKey{tenant: "failing"}, key: key, delivery: Delivery{Sequence: uint64(n)}})
		q.mu.Lock()
		k := q.byKey[queueKey{p, key}]
		q.shares.drop(func(ready *taskQueue) bool { return ready == k })
		q.wait(k, time.Hour)
		q.mu.Unlock()
	}
	if got := q.shed(12, 12*taskBytes); got["failing"] != 6 {
		t.Errorf("got %v given up, want 6: the tenant keeps as many as are free", got)
	}
	waiting, leaving := 0, 0
	for key, k := range q.byKey {
		if k.share.tenant.name == shedTenant {
			leaving++
		} else if k.timer != nil {
			waiting++
			q.retryNow(k.tasks[0])
		}
		if k.timer != nil {
			t.Errorf("%s: the wait goes on", key.key)
		}
	}
	if waiting != 6 || leaving != 6 {
		t.Errorf("got %d that wait and %d that leave, want 6 and 6", waiting, leaving)
	}
}
