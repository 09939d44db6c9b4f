package ops

import (
	"os"
	"runtime/debug"
)

// apiGCPercent lets the heap of an API, which keeps next to nothing between two requests, grow to a few times of what is live.
// Its live heap is a few megabytes, so that costs little memory and spares most collections.
const apiGCPercent = 800

// CollectSeldom tunes the garbage collector of a process that answers many short requests. GOGC, when set, has the last word.
func CollectSeldom() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(apiGCPercent)
	}
}
