package ops

import (
	"context"
	"log/slog"
	"math"
	"runtime/debug"
	"testing"
	"testing/fstest"
)

func TestCgroupMemory(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		files map[string]string
		want  int64 // zero: no limit
	}{
		"v2, in a container":     {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "268435456\n"}, 256 << 20},
		"v2, the parent's":       {map[string]string{"proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/memory.max": "1000000\n", "sys/fs/cgroup/a/b/memory.max": "max\n"}, 1000000},
		"v2, unlimited":          {map[string]string{"proc/self/cgroup": "0::/\n", "sys/fs/cgroup/memory.max": "max\n"}, 0},
		"v1":                     {map[string]string{"proc/self/cgroup": "5:cpu,cpuacct:/x\n4:memory:/docker/1\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "500000\n"}, 500000},
		"v1, unlimited":          {map[string]string{"proc/self/cgroup": "4:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n"}, 0},
		"no cgroups":             {nil, 0},
		"what cannot be read":    {map[string]string{"proc/self/cgroup": "nonsense\n0::/\n", "sys/fs/cgroup/memory.max": "many\n"}, 0},
		"a path above the mount": {map[string]string{"proc/self/cgroup": "0::/../..\n", "sys/fs/cgroup/memory.max": "4096\n"}, 4096},
	} {
		root := fstest.MapFS{}
		for path, text := range test.files {
			root[path] = &fstest.MapFile{Data: []byte(text)}
		}
		if got, ok := cgroupMemory(root); ok != (test.want > 0) || ok && got != test.want {
			t.Errorf("%s: got %d, %v, want %d", name, got, ok, test.want)
		}
	}
}

func TestLimitMemoryUsesTheCgroupLimit(t *testing.T) {
	before := debug.SetMemoryLimit(-1)
	t.Cleanup(func() { debug.SetMemoryLimit(before) })
	root := fstest.MapFS{
		"proc/self/cgroup": {Data: []byte("0::/\n")}, "sys/fs/cgroup/memory.max": {Data: []byte("100000000000\n")},
	}
	log := slog.New(slog.DiscardHandler)
	t.Setenv("GOMEMLIMIT", "90GiB")
	limitMemory(context.Background(), root, log)
	if got := debug.SetMemoryLimit(-1); got != before {
		t.Errorf("with GOMEMLIMIT: got %d, want it unchanged", got)
	}
	t.Setenv("GOMEMLIMIT", "")
	limitMemory(context.Background(), root, log)
	if got := debug.SetMemoryLimit(-1); got != 90_000_000_000 || got == math.MaxInt64 {
		t.Errorf("got %d, want nine tenths of the cgroup's", got)
	}
}
