package bus

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"
)

// eachOf runs the tasks of a batch one by one.
func eachOf(run func(*task) (again bool, after time.Duration)) func([]*task, []tryResult) {
	return func(tasks []*task, results []tryResult) {
		for i, t := range tasks {
			results[i].again, results[i].after = run(t)
		}
	}
}

// newTestPartition returns a partition without a group, for the queue only.
func newTestPartition() *partition {
	return newPartition(context.Background(), nil, durable{}, nil, nil)
}

// released releases the partition, waits for running tasks, and returns the others.
func released(q *keyedQueue, p *partition) []*task {
	left := q.release(p)
	<-p.idle
	return append(left, p.unfinished...)
}

// However often tasks fail, the tasks of a key finish in the order of add, one at a time.
func TestQueueKeepsTheOrderOfAKey(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		keys := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "a2", "b", "c"}), 0, 40).Draw(t, "keys")
		failures := rapid.SliceOfN(rapid.IntRange(0, 2), len(keys), len(keys)).Draw(t, "failures")
		workers := rapid.IntRange(1, 5).Draw(t, "workers")

		var mu sync.Mutex
		running := make(map[string]bool)
		want, got := make(map[string][]uint64), make(map[string][]uint64)
		var done sync.WaitGroup
		done.Add(len(keys))
		r := newTestPartition()
		limited := rapid.Bool().Draw(t, "limited")
		most := 1
		if !limited {
			most = rapid.IntRange(1, 5).Draw(t, "most")
		}
		l := newKeyedQueue(workers, most, limited, eachOf(func(x *task) (bool, time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			if running[x.key] {
				t.Errorf("two concurrent tasks of %s", x.key)
			}
			running[x.key] = true
			mu.Unlock()
			mu.Lock()
			running[x.key] = false
			x.tries++
			if x.tries <= failures[x.delivery.Sequence] {
				return true, time.Microsecond
			}
			got[x.key] = append(got[x.key], x.delivery.Sequence)
			done.Done()
			return false, 0
		}))
		for i, key := range keys {
			want[key] = append(want[key], uint64(i))
			l.add(&task{partition: r, key: key, of: shareKey{tenant: key[:1]}, delivery: Delivery{Sequence: uint64(i)}})
		}
		done.Wait()
		if left := released(l, r); len(left) != 0 {
			t.Errorf("got %d tasks left, want none", len(left))
		}
		for key := range want {
			if !slices.Equal(got[key], want[key]) {
				t.Errorf("key %s: got %v, want %v", key, got[key], want[key])
			}
		}
	})
}

func TestQueueWaitingKeyDoesNotBlockOthers(t *testing.T) {
	t.Parallel()
	ran, r := make(chan string, 10), newTestPartition()
	l := newKeyedQueue(1, 2, false, eachOf(func(x *task) (bool, time.Duration) {
		ran <- x.key
		return x.key == "stuck", time.Hour
	}))
	for _, key := range []string{"stuck", "stuck", "free", "free"} {
		l.add(&task{partition: r, key: key})
	}
	for _, want := range []string{"stuck", "free", "free"} {
		if got := <-ran; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if left := released(l, r); len(left) != 2 {
		t.Errorf("got %d tasks left, want the two of the stuck key", len(left))
	}
}

func TestQueueReleaseWaitsForRunningTasks(t *testing.T) {
	t.Parallel()
	started, finish, r := make(chan struct{}), make(chan struct{}), newTestPartition()
	l := newKeyedQueue(2, 1, false, eachOf(func(*task) (bool, time.Duration) {
		close(started)
		<-finish
		return false, 0
	}))
	l.add(&task{partition: r, key: "a"})
	l.add(&task{partition: r, key: "a"})
	<-started
	stopped := make(chan []*task)
	go func() { stopped <- released(l, r) }()
	select {
	case <-stopped:
		t.Fatal("stop returned while a task ran")
	case <-time.After(20 * time.Millisecond): // the absence of an event cannot be awaited
	}
	close(finish)
	if left := <-stopped; len(left) != 1 {
		t.Errorf("got %d tasks left, want 1", len(left))
	}
}

// The parts of a tenant divide what it may get, so that a tenant with many parts gets no more than others.
func TestPartsShareTheirTenantsWorkers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		running, end := make(map[shareKey]int), make(chan struct{})
		q, p := newKeyedQueue(64, 1, true, eachOf(func(x *task) (bool, time.Duration) {
			mu.Lock()
			running[x.of]++
			mu.Unlock()
			<-end
			return false, 0
		})), newTestPartition()
		for _, step := range []struct {
			of   shareKey
			want int
		}{
			{shareKey{"a", "1"}, 16}, // half of its tenant's half
			{shareKey{"a", "2"}, 8},
			{shareKey{"b", "1"}, 10}, // a quarter of the 40 that are left
		} {
			for n := range 100 {
				q.add(&task{partition: p, of: step.of, key: step.of.tenant + step.of.part + strconv.Itoa(n)})
			}
			synctest.Wait()
			mu.Lock()
			if got := running[step.of]; got != step.want {
				t.Errorf("%v: got %d running tasks, want %d", step.of, got, step.want)
			}
			mu.Unlock()
		}
		close(end)
	})
}

// Tenants whose tasks take all that they may leave workers for the next tenant, and get those of a tenant that
// has ended. A task that waits for its share delays no other tenant.
func TestTenantsShareTheWorkers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const workers = 60
		var mu sync.Mutex
		running := make(map[string]int)
		ends := map[string]chan struct{}{"a": make(chan struct{}), "b": make(chan struct{}), "c": make(chan struct{})}
		count := func(tenant string, n int) {
			mu.Lock()
			defer mu.Unlock()
			running[tenant] += n
		}
		q, p := newKeyedQueue(workers, 1, true, eachOf(func(x *task) (bool, time.Duration) {
			count(x.of.tenant, 1)
			<-ends[x.of.tenant]
			count(x.of.tenant, -1)
			return false, 0
		})), newTestPartition()
		want := func(what string, want map[string]int) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if !maps.Equal(running, want) {
				t.Errorf("%s: got %v running tasks, want %v", what, running, want)
			}
		}
		const each = 100
		added := 0
		add := func(tenant string) {
			for range each {
				added++
				q.add(&task{partition: p, of: shareKey{tenant: tenant}, key: strconv.Itoa(added)})
			}
		}
		add("a")
		want("one tenant", map[string]int{"a": 30})
		add("b")
		want("two tenants", map[string]int{"a": 30, "b": 15})
		add("c")
		want("three tenants", map[string]int{"a": 30, "b": 15, "c": 8})
		for range 30 {
			ends["a"] <- struct{}{}
			synctest.Wait()
		}
		for tenant, n := range running {
			if n < 15 || n > 16 {
				t.Errorf("as the tasks of the first end: got %d running tasks of %s, want 15, or 16 in turn", n, tenant)
			}
		}
		for range each - 30 {
			ends["a"] <- struct{}{}
			synctest.Wait()
		}
		want("after the first", map[string]int{"a": 0, "b": 20, "c": 20})
		close(ends["b"])
		close(ends["c"])
		want("at the end", map[string]int{"a": 0, "b": 0, "c": 0})
		left := len(q.byKey) + len(q.shares.byKey) + len(q.shares.tenants) + len(q.shares.turns)
		if left != 0 || q.workers != 0 || q.running != 0 {
			t.Errorf("got %+v at the end, want an empty queue", q)
		}
	})
}
