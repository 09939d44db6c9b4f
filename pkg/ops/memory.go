package ops

import (
	"context"
	"io/fs"
	"log/slog"
	"math"
	"os"
	"path"
	"runtime/debug"
	"strconv"
	"strings"
)

const (
	// memoryShare is the share of the cgroup's memory limit for the Go runtime, in percent. The rest is for memory
	// outside it.
	memoryShare = 90
	// maxCgroupLimit is above any real limit: cgroup v1 reports a number near the maximum for "none".
	maxCgroupLimit = 1 << 60
)

// limitMemory sets the Go memory limit below the process's cgroup limit, so that a burst costs CPU time instead of an
// OOM kill. An explicit GOMEMLIMIT takes precedence.
func limitMemory(ctx context.Context, root fs.FS, log *slog.Logger) {
	if os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	limit, ok := cgroupMemory(root)
	if !ok {
		return
	}
	debug.SetMemoryLimit(limit / 100 * memoryShare)
	log.InfoContext(ctx, "memory limit set from the cgroup", "cgroupBytes", limit, "limitBytes", limit/100*memoryShare)
}

// cgroupMemory returns the lowest memory limit of the process's cgroup and its ancestors, of cgroup v2 or v1; false if
// there is none. root is the file system.
func cgroupMemory(root fs.FS) (limit int64, ok bool) {
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0, false
	}
	limit = math.MaxInt64
	for line := range strings.Lines(string(text)) {
		parts := strings.SplitN(strings.TrimSpace(line), ":", 3) // hierarchy:controllers:path
		switch {
		case len(parts) != 3:
		case parts[1] == "": // v2
			limit = min(limit, lowest(root, "sys/fs/cgroup", parts[2], "memory.max"))
		case parts[1] == "memory":
			limit = min(limit, lowest(root, "sys/fs/cgroup/memory", parts[2], "memory.limit_in_bytes"))
		}
	}
	return limit, limit < maxCgroupLimit
}

// lowest reads the limit in a directory of the hierarchy and in its ancestors. A container often sees only the top one.
func lowest(root fs.FS, mount, group, file string) int64 {
	limit := int64(math.MaxInt64)
	for dir := path.Join("/", group); ; dir = path.Dir(dir) {
		text, err := fs.ReadFile(root, path.Join(mount, dir, file))
		n, wrong := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
		if err == nil && wrong == nil && n > 0 { // otherwise "max"
			limit = min(limit, n)
		}
		if dir == "/" {
			return limit
		}
	}
}
