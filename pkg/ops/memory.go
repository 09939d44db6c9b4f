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
	// memoryShare is how much of the cgroup's memory the Go runtime may take, in percent. The rest is for what it does not count.
	memoryShare = 90
	// maxCgroupLimit is above any real limit: cgroup v1 writes a number near the largest for "none".
	maxCgroupLimit = 1 << 60
)

// limitMemory makes the garbage collector keep the process below its cgroup's memory limit, so that a burst costs processor time and
// not the process. GOMEMLIMIT, when set, has the last word.
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

// cgroupMemory returns the lowest memory limit of the process's cgroup and of those above it, of cgroup v2 or v1; false where there
// is none. root is the file system.
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

// lowest reads a limit in a folder of the hierarchy and in those above it. A container often sees only the top one.
func lowest(root fs.FS, mount, group, file string) int64 {
	limit := int64(math.MaxInt64)
	for dir := path.Join("/", group); ; dir = path.Dir(dir) {
		text, err := fs.ReadFile(root, path.Join(mount, dir, file))
		if n, wrong := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64); err == nil && wrong == nil && n > 0 { // else "max"
			limit = min(limit, n)
		}
		if dir == "/" {
			return limit
		}
	}
}
