package bus

import (
	"slices"
	"sync"
	"testing"
	"time"

	"pgregory.net/rapid"
)

// eachOf runs tasks that are taken together one by one.
func eachOf(run func(*task) (again bool, after time.Duration)) func([]*task, []verdict) {
	return func(tasks []*task, verdicts []verdict) {
		for i, t := range tasks {
			verdicts[i].again, verdicts[i].after = run(t)
		}
	}
}

// Whatever fails how often, each key's tasks end in the order in which they were added, and no two run at once.
func TestLanesKeepTheOrderOfAKey(t *testing.T) {
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
		most := rapid.IntRange(1, 5).Draw(t, "most")
		l := startLanes(workers, most, eachOf(func(x *task) (bool, time.Duration) {
			mu.Lock()
			defer mu.Unlock()
			if running[x.key] {
				t.Errorf("two tasks of %s at once", x.key)
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
			l.add(&task{key: key, delivery: Delivery{Sequence: uint64(i)}})
		}
		done.Wait()
		if left := l.stop(); len(left) != 0 {
			t.Errorf("got %d tasks left, want none", len(left))
		}
		for key := range want {
			if !slices.Equal(got[key], want[key]) {
				t.Errorf("key %s: got %v, want %v", key, got[key], want[key])
			}
		}
	})
}

func TestLanesParkedKeyHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	ran := make(chan string, 10)
	l := startLanes(1, 2, eachOf(func(x *task) (bool, time.Duration) {
		ran <- x.key
		return x.key == "stuck", time.Hour
	}))
	for _, key := range []string{"stuck", "stuck", "free", "free"} {
		l.add(&task{key: key})
	}
	for _, want := range []string{"stuck", "free", "free"} {
		if got := <-ran; got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	if left := l.stop(); len(left) != 2 {
		t.Errorf("got %d tasks left, want the two of the stuck key", len(left))
	}
}

func TestLanesStopWaitsForWhatRuns(t *testing.T) {
	t.Parallel()
	started, finish := make(chan struct{}), make(chan struct{})
	l := startLanes(2, 1, eachOf(func(*task) (bool, time.Duration) {
		close(started)
		<-finish
		return false, 0
	}))
	l.add(&task{key: "a"})
	l.add(&task{key: "a"})
	<-started
	stopped := make(chan []*task)
	go func() { stopped <- l.stop() }()
	select {
	case <-stopped:
		t.Fatal("stop returned while a task ran")
	case <-time.After(20 * time.Millisecond): // there is no event for what must not happen
	}
	close(finish)
	if left := <-stopped; len(left) != 1 {
		t.Errorf("got %d tasks left, want 1", len(left))
	}
}
