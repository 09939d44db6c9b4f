package ops

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// dependencies are what a service needs, with what the last look at each found. They are safe for concurrent use.
type dependencies struct {
	checks   []Check
	registry *prometheus.Registry // has parley_dependency_up
	up       *prometheus.GaugeVec

	mu     sync.Mutex
	usable map[string]bool // by name: has been usable once
}

func newDependencies(service string, checks []Check) *dependencies {
	d := &dependencies{
		checks: checks, registry: prometheus.NewRegistry(), usable: map[string]bool{},
		up: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "parley_dependency_up", Help: "1 when the last look at the dependency found it usable, else 0.",
			ConstLabels: prometheus.Labels{"service": service},
		}, []string{"dependency"}),
	}
	d.registry.MustRegister(d.up)
	for _, c := range checks {
		d.up.WithLabelValues(c.Name) // 0 until the first look
	}
	return d
}

// watch checks the dependencies until ctx is done, so that the metric is current and readiness does not depend on requests.
func (d *dependencies) watch(ctx context.Context) {
	for {
		d.look(ctx)
		pause := watchEvery
		if !d.seen() {
			pause = watchFirst
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(pause):
		}
	}
}

// seen reports whether each required dependency has been usable once.
func (d *dependencies) seen() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, c := range d.checks {
		if !c.Optional && !d.usable[c.Name] {
			return false
		}
	}
	return true
}

// look asks all checks at once and waits for none longer than checkTimeout, also when a check does not heed its ctx. It returns what
// it found, by name.
func (d *dependencies) look(ctx context.Context) map[string]string {
	limited, cancel := context.WithTimeout(ctx, checkTimeout)
	defer cancel()
	var group sync.WaitGroup
	states := map[string]string{}
	for _, check := range d.checks {
		group.Go(func() {
			state := lookAt(limited, check)
			d.mu.Lock()
			defer d.mu.Unlock()
			states[check.Name] = state
			switch {
			case state == StatusOK:
				d.usable[check.Name] = true
				d.up.WithLabelValues(check.Name).Set(1)
			case ctx.Err() == nil: // else the check was cancelled, which says nothing about the dependency
				d.up.WithLabelValues(check.Name).Set(0)
			}
		})
	}
	group.Wait()
	return states
}

func lookAt(ctx context.Context, check Check) string {
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
