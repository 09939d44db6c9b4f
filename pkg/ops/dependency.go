package ops

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// dependencies holds a service's dependencies and their last check results. It is safe for concurrent use.
type dependencies struct {
	checks   []Check
	registry *prometheus.Registry // has parley_dependency_up
	up       *prometheus.GaugeVec

	mu     sync.Mutex
	usable map[string]bool // by name: has been usable at least once
}

func newDependencies(service string, checks []Check) *dependencies {
	d := &dependencies{
		checks: checks, registry: prometheus.NewRegistry(), usable: map[string]bool{},
		up: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "parley_dependency_up", Help: "1 if the last check found the dependency usable, else 0.",
			ConstLabels: prometheus.Labels{"service": service},
		}, []string{"dependency"}),
	}
	d.registry.MustRegister(d.up)
	for _, c := range checks {
		d.up.WithLabelValues(c.Name) // 0 until the first check
	}
	return d
}

// watch checks the dependencies until ctx is done, so that the metric is current and readiness does not depend on
// requests.
func (d *dependencies) watch(ctx context.Context) {
	for {
		d.runAll(ctx)
		pause := watchInterval
		if !d.allSeen() {
			pause = watchFirst
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// allSeen reports whether each required dependency has been usable at least once.
func (d *dependencies) allSeen() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.checks {
		if !c.Optional && !d.usable[c.Name] {
			return false
		}
	}
	return true
}

// runAll runs all checks concurrently and waits at most checkTimeout, even if a check ignores its ctx. It returns the
// results by name.
func (d *dependencies) runAll(ctx context.Context) map[string]string {
	limited, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	var group sync.WaitGroup
	states := map[string]string{}
	for _, check := range d.checks {
		group.Go(func() {
			state := runCheck(limited, check)
			d.mu.Lock()
			defer d.mu.Unlock()
			states[check.Name] = state
			switch {
			case state == StatusOK:
				d.usable[check.Name] = true
				d.up.WithLabelValues(check.Name).Set(1)
			case ctx.Err() == nil: // otherwise the check was cancelled, which is no evidence about the dependency
				d.up.WithLabelValues(check.Name).Set(0)
			}
		})
	}
	group.Wait()
	return states
}

func runCheck(ctx context.Context, check Check) string {
	result := make(chan error, 1)
	go func() { result <- callRecovered(ctx, check) }()
	select {
	case err := <-result:
		if err != nil {
			return err.Error()
		}
		return StatusOK
	case <-ctx.Done():
		return "no answer in time"
	}
}

func callRecovered(ctx context.Context, check Check) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("panic: %v", v)
		}
	}()
	return check.Check(ctx)
}
