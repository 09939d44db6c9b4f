package ops

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

const (
	// mostGCPercent is the GC percentage of a process with a small live heap, and leastGCPercent, Go's default, that of
	// one with a large heap.
	mostGCPercent, leastGCPercent = 800, 100
	// cheapGarbage is about the garbage between two collections that a process may have whatever its live heap is, in
	// bytes. (The runtime adds its percentage of stacks and globals.)
	cheapGarbage = 64 << 20
)

// CollectSeldom tunes the garbage collector for a process that serves many short requests: its live heap is a few
// megabytes, so to let it grow to several times that size costs little memory and saves most collections. When requests
// keep much, such as histories for slow readers, the percentage falls after each collection, so that the garbage does
// not become a multiple of it. An explicit GOGC takes precedence.
func CollectSeldom() {
	if os.Getenv("GOGC") != "" {
		return
	}
	debug.SetGCPercent(mostGCPercent)
	tuneAtCollection(mostGCPercent)
}

// tuneAtCollection sets the percentage after the next collection and, from then on, after each one. percent is the one
// in force.
func tuneAtCollection(percent int) {
	type unreachable struct{ _ *int } // a pointer, so that it is not allocated together with others
	runtime.AddCleanup(new(unreachable), func(percent int) {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		next := gcPercent(live[0].Value.Uint64())
		if next != percent { // to set it stops the world
			debug.SetGCPercent(next)
		}
		tuneAtCollection(next)
	}, percent)
}

// gcPercent returns the percentage for a live heap, in bytes.
func gcPercent(live uint64) int {
	percent := cheapGarbage * 100 / max(live, 1)
	const step = 50 // a small change is not worth a stop of the world
	return int(min(max(percent/step*step, leastGCPercent), mostGCPercent))
}
