package bus

import (
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// eachOf runs the tasks of a batch one by one.
func eachOf(run func(*task) (again bool, after time.Duration)) func([]*task, []outcome) {
	return func(tasks []*task, outcomes []outcome) {
		for i, t := range tasks {
			outcomes[i].again, outcomes[i].after = run(t)
		}
	}
}

// newTestPartition returns a partition without a group, for the queue only.
func newTestPartition() *partition { return newPartition(nil, slot{}, nil, nil) }

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
		keys := rapid.SliceOfN(rapid.SampledFrom([]string{"a", "b", "c", "d"}), 0, 40).Draw(t, "keys")
		failures := rapid.SliceOfN(rapid.IntRange(0, 2), len(keys), len(keys)).Draw(t, "failures")
		workers := rapid.IntRange(1, 5).Draw(t, "workers")

		var mu sync.Mutex
		running := make(map[string]bool)
		want, got := make(map[string][]uint64), make(map[string][]uint64)
		var done sync.WaitGroup
		done.Add(len(keys))
		r := newTestPartition()
		most := rapid.IntRange(1, 5).Draw(t, "most")
		l := newKeyedQueue(workers, most, eachOf(func(x *task) (bool, time.Duration) {
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
			l.add(&task{partition: r, key: key, delivery: Delivery{Sequence: uint64(i)}})
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
	l := newKeyedQueue(1, 2, eachOf(func(x *task) (bool, time.Duration) {
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
	l := newKeyedQueue(2, 1, eachOf(func(*task) (bool, time.Duration) {
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
