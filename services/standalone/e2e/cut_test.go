package e2e

import (
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/parley-chat/parley/testkit/needs"
	"github.com/parley-chat/parley/testkit/nemesis"
)

// TestPowerCut cuts the power under load, again and again: of a whole machine, of its streams or its store alone, and
// of nats-server while the services keep running. testkit/nemesis has what must hold.
//
// CUTS sets the number of cuts (the long form has 200), which the worlds share, SEED what people do, RENAME the file
// system's way, and STREAM_SYNC what the streams promise: with none the test must fail.
func TestPowerCut(t *testing.T) {
	needs.FUSE(t)
	needs.Packages(t)
	starts := map[string]func(*testing.T, *nemesisWorld){"nats-server alone": startServices}
	for _, disk := range standaloneDisks {
		starts[disk.name] = disk.start
	}
	otherwise := 2 * len(starts)
	if longForm() {
		otherwise = 200
	}
	cuts := int(setting(t, "CUTS", uint64(otherwise)))
	seed := setting(t, "SEED", uint64(time.Now().UnixNano()))
	// All at once, also on few processors: most of the time passes while an interrupted request keeps its lease.
	var worlds sync.WaitGroup
	for name, start := range starts {
		faults, duration := powerCuts(max(1, cuts/len(starts)))
		r := nemesisRun{seed: seed, duration: duration, faults: &faults, start: start}
		worlds.Go(func() { r.once(t, name) })
	}
	worlds.Wait()
}

// powerCuts returns a timetable of n cuts, and how long it takes.
func powerCuts(n int) (faults nemesis.Timetable, duration time.Duration) {
	const power, dark = 6 * time.Second, time.Second
	for range n {
		duration += power
		faults = append(faults, nemesis.Fault{Kind: nemesis.Power, Target: targetDisk, At: duration, For: dark})
	}
	return faults, duration + power
}

// setting returns a number from the environment.
func setting(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	check(t, err)
	return n
}

// transports are the ways of the official client: only WebSocket, only long polling, and its default, which upgrades.
func transports() [][]string {
	return [][]string{{"websocket"}, {"polling"}, {"polling", "websocket"}}
}
