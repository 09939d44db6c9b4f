package ops

import (
	"os"
	"os/exec"
	"runtime"
	"runtime/metrics"
	"testing"
)

func TestGCPercentFallsWithTheLiveHeap(t *testing.T) {
	for live, want := range map[uint64]int{0: 800, 4 << 20: 800, 8 << 20: 800, 16 << 20: 400, 32 << 20: 200, 64 << 20: 100, 1 << 30: 100} {
		if got := gcPercent(live); got != want {
			t.Errorf("%d MiB: got %d, want %d", live>>20, got, want)
		}
	}
}

// TestCollectSeldomBoundsGarbage keeps 64 MiB in a process of its own: the percentage holds for the whole process.
func TestCollectSeldomBoundsGarbage(t *testing.T) {
	if os.Getenv("PARLEY_COLLECT_SELDOM") == "" {
		again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCollectSeldomBoundsGarbage$")
		again.Env = append(os.Environ(), "PARLEY_COLLECT_SELDOM=1", "GOGC=")
		if text, err := again.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
		return
	}
	CollectSeldom()
	kept := make([][]byte, 64)
	for n := range kept {
		kept[n] = make([]byte, 1<<20)
	}
	goal := []metrics.Sample{{Name: "/gc/heap/goal:bytes"}, {Name: "/gc/gogc:percent"}}
	for range 10 { // a collection finds the sentinel of the one before
		runtime.GC()
	}
	for range 1000 {
		metrics.Read(goal)
		if goal[1].Value.Uint64() == leastGCPercent {
			break
		}
		runtime.Gosched()
		runtime.GC()
	}
	if bytes := goal[0].Value.Uint64(); bytes > 3*64<<20 {
		t.Errorf("got a heap goal of %d MiB, want at most 192", bytes>>20)
	}
	runtime.KeepAlive(kept)
}
