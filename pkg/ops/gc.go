package ops

import (
	"os"
	"runtime/debug"
)

// apiGCPercent lets the heap of an API, which keeps almost nothing between requests, grow to several times its live
// size. The live heap is a few megabytes, so this costs little memory and saves most collections.
const apiGCPercent = 800

// CollectSeldom tunes the garbage collector for a process that serves many short requests. An explicit GOGC takes
// precedence.
func CollectSeldom() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(apiGCPercent)
	}
}
