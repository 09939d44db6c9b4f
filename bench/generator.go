package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"
)

// connections is the generator's number of keep-alive connections, each with one request in flight.
const connections = 64

// turn is the result of one turn of a load.
type turn struct {
	requests int
	took     time.Duration
	p50, p99 time.Duration
	cpu      time.Duration // of the process under test
	engines  time.Duration // CPU used by NATS and the database
	peakRSS  int64
}

func (t turn) rate() float64 { return float64(t.requests) / t.took.Seconds() }

// load is a load, of which do sends request n and waits for its response.
type load struct {
	name    string
	process *process // under test; nil: its CPU and memory are not known
	callers int      // at once; 0: connections
	do      func(ctx context.Context, n int) error
}

// measure runs one turn of a load, and adds the CPU used by the process under test and by the servers.
func (d *deployment) measure(ctx context.Context, l load) turn {
	before := l.process.usage()
	engines := d.enginesCPU()
	t, err := l.run(ctx, size(d.bench, 4*time.Second, 300*time.Millisecond))
	if err != nil {
		d.check(fmt.Errorf("%s: %w", l.name, err))
	}
	t.engines = d.enginesCPU() - engines
	after := l.process.usage()
	t.cpu = after.cpu - before.cpu
	t.peakRSS = after.peakRSS
	return t
}

// enginesCPU returns the CPU that NATS and the database have used.
func (d *deployment) enginesCPU() time.Duration {
	used := d.engines.usage().cpu
	for _, s := range d.servers {
		used += s.usage().cpu
	}
	return used
}

// run applies the load with all callers until d has passed, each with one request after the other.
func (l load) run(ctx context.Context, d time.Duration) (turn, error) {
	callers := cmp.Or(l.callers, connections)
	latencies := make([][]time.Duration, callers)
	group, ctx := errgroup.WithContext(ctx)
	began := time.Now()
	for caller := range callers {
		group.Go(func() error {
			own := make([]time.Duration, 0, 1<<14)
			for n := caller; time.Since(began) < d; n += callers {
				sent := time.Now()
				if err := l.do(ctx, n); err != nil {
					return err
				}
				own = append(own, time.Since(sent))
			}
			latencies[caller] = own
			return nil
		})
	}
	err := group.Wait()
	took := time.Since(began)
	all := slices.Concat(latencies...)
	slices.Sort(all)
	return turn{requests: len(all), took: took, p50: quantile(all, 0.50), p99: quantile(all, 0.99)}, err
}

// request is a request of an HTTP load.
type request struct {
	method, path string
	token        string // of the visitor or of the company; empty: none
	body         string
}

// httpLoad is a load of requests to a service, in turn.
func (d *deployment) httpLoad(name string, s *service, status int, requests []request) load {
	return load{name: name, process: s.process, do: func(ctx context.Context, n int) error {
		return d.call(ctx, s.addr, requests[n%len(requests)], status)
	}}
}

// call sends a request; a response with another status than the expected one is an error.
func (d *deployment) call(ctx context.Context, addr string, r request, status int) error {
	req, err := http.NewRequestWithContext(ctx, r.method, "http://"+addr+r.path, strings.NewReader(r.body))
	if err != nil {
		return err
	}
	if r.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.token != "" {
		req.Header.Set("Authorization", "Bearer "+r.token) // of a visitor
		req.Header.Set("x-access-token", r.token)          // of a company
	}
	resp, err := d.transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != status {
		err = fmt.Errorf("%s %s: got status %d: %s", r.method, r.path, resp.StatusCode, answer)
	}
	return err
}

func newLoadTable(title string) *table {
	return newTable(title, "load", "req/s", "p50", "p99", "CPU s per 1,000", "engines, CPU s per 1,000", "peak RSS")
}

// addTurns adds the medians of a load's turns. An unknown value is zero and left empty.
func (t *table) addTurns(name string, turns ...turn) {
	column := func(format string, of func(turn) float64) string {
		values := make([]float64, len(turns))
		for i, turn := range turns {
			values[i] = of(turn)
		}
		value := median(values)
		if value == 0 {
			return ""
		}
		return fmt.Sprintf(format, value)
	}
	t.row(name,
		column("%.0f", turn.rate),
		column("%.2f ms", func(t turn) float64 { return milliseconds(t.p50) }),
		column("%.2f ms", func(t turn) float64 { return milliseconds(t.p99) }),
		column("%.3f", func(t turn) float64 { return perThousand(t.cpu, t.requests) }),
		column("%.3f", func(t turn) float64 { return perThousand(t.engines, t.requests) }),
		column("%.0f MiB", func(t turn) float64 { return float64(t.peakRSS) / (1 << 20) }))
}
