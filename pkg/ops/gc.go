package ops

import (
	"os"
	"runtime/debug"
)

// apiGCPercent lets the heap of an API, which keeps next to nothing between two requests, grow to a few times of what is live.
// Its live heap is a few megabytes, so that costs little memory and spares most collections.
const apiGCPercent = 800

// engineGCPercent is for engines, whose live heap is larger and whose garbage is more.
const engineGCPercent = 300

// CollectSeldom tunes the garbage collector of a process that answers many short requests. GOGC, when set, has the last word.
func CollectSeldom() { collectAt(apiGCPercent) }

// CollectLess tunes the garbage collector of a process that runs embedded engines. GOGC, when set, has the last word.
func CollectLess() { collectAt(engineGCPercent) }

func collectAt(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}
