package e2e

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/parley-chat/parley/testkit/needs"
	"github.com/parley-chat/parley/testkit/nemesis"
)

const (
	// betweenOutages is the time from one outage to the next: elections take 4 to 9 seconds each on an idle machine.
	betweenOutages = 25 * time.Second
	serverAway     = time.Second
	// serverLate is how much longer a server stays away that comes back late.
	serverLate = 15 * time.Second
)

// TestServicesThroughClusterOutages is a run of TestNemesis in which only the servers of a cluster fail, several at
// once: they are killed, or lose power. testkit/nemesis has what must hold, and no stream may lose what it had
// acknowledged. SEED selects the outages and the servers.
func TestServicesThroughClusterOutages(t *testing.T) {
	needs.FUSE(t)
	needs.Packages(t)
	needs.Program(t, "redis-server")
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	seed := setting(t, "SEED", uint64(time.Now().UnixNano()))
	chance := rand.New(rand.NewPCG(seed, 0))
	var faults nemesis.Timetable
	at := 5 * time.Second
	for _, n := range chance.Perm(len(outages))[:1+rounds()] {
		t.Log(outages[n].name)
		faults = append(faults, outages[n].faults(at, chance)...)
		at += betweenOutages
	}
	r := nemesisRun{seed: seed, duration: at, faults: &faults}
	r.start = func(t *testing.T, w *nemesisWorld) {
		startCluster(t, w)
		t.Cleanup(func() {
			if n := w.restarts.Load(); n > 0 {
				t.Errorf("%d processes have noticed that a stream lost messages, want none", n)
			}
		})
	}
	r.once(t, "services")
}

// faults returns an outage at a time, of servers that chance selects.
func (o outage) faults(at time.Duration, chance *rand.Rand) (all nemesis.Timetable) {
	for n, server := range chance.Perm(3)[:o.killed] {
		f := nemesis.Fault{Kind: nemesis.Kill, Target: fmt.Sprintf("nats-%d", server+1), At: at, For: serverAway}
		if n < o.cut {
			f.Kind = nemesis.Power
			f.Target += "-disk"
		}
		if n >= o.killed-o.late {
			f.For += serverLate
		}
		all = append(all, f)
	}
	return all
}
