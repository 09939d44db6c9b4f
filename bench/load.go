package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/parley-chat/parley/bench/internal/rig"
)

// connections is the generator's number of keep-alive connections, each with one request in flight.
const connections = 64

// request is a request of a load.
type request struct {
	method, path string
	token        string // of the visitor or of the company; empty: none
	body         string
}

func (r request) build(ctx context.Context, addr string) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, r.method, "http://"+addr+r.path, strings.NewReader(r.body))
	if err != nil {
		return nil, err
	}
	if r.body != "" {
		req.Header.Set("Content-Type", "application/json")
	}
	if r.token != "" {
		req.Header.Set("Authorization", "Bearer "+r.token) // of a visitor
		req.Header.Set("x-access-token", r.token)          // of a company
	}
	return req, nil
}

// load is requests that are sent in turn, over all connections.
type load struct {
	addr     string
	requests []request
	status   int // expected status of each response
}

// result is the result of one turn of a load.
type result struct {
	requests int
	took     time.Duration
	p50, p99 time.Duration
	cpu      time.Duration // of the process under test
	engines  time.Duration // CPU used by NATS and the database
	peakRSS  int64
}

func (r result) rate() float64 { return float64(r.requests) / r.took.Seconds() }

// measured runs one turn of a load and adds the CPU used by the process under test and the servers.
func measured(ctx context.Context, l load, turn time.Duration, p, engines *rig.Process) (result, error) {
	before, enginesBefore := p.CPU(), engines.CPU()
	res, err := l.run(ctx, turn)
	res.cpu = p.CPU() - before
	res.engines = engines.CPU() - enginesBefore
	res.peakRSS = p.PeakRSS()
	return res, err
}

// run sends requests on all connections for a duration and returns the result. A response with another status, or a
// broken connection, ends the run with an error: figures with failures are not reported.
func (l load) run(ctx context.Context, d time.Duration) (result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	latencies := make([][]time.Duration, connections)
	errs := make([]error, connections)
	begin := time.Now()
	var wg sync.WaitGroup
	for i := range connections {
		wg.Go(func() {
			latencies[i], errs[i] = l.connection(ctx, i, begin.Add(d))
			if errs[i] != nil {
				cancel()
			}
		})
	}
	wg.Wait()
	took := time.Since(begin)
	if err := errors.Join(errs...); err != nil {
		return result{}, err
	}
	all := slices.Concat(latencies...)
	slices.Sort(all)
	return result{requests: len(all), took: took, p50: rig.Quantile(all, 0.50), p99: rig.Quantile(all, 0.99)}, nil
}

func (l load) connection(ctx context.Context, n int, deadline time.Time) ([]time.Duration, error) {
	transport := &http.Transport{MaxConnsPerHost: 1}
	defer transport.CloseIdleConnections()
	latencies := make([]time.Duration, 0, 1<<14)
	for i := 0; ; i++ {
		sent := time.Now()
		if !sent.Before(deadline) {
			return latencies, nil
		}
		if err := l.send(ctx, transport, l.requests[(n+i*connections)%len(l.requests)]); err != nil {
			return nil, err
		}
		latencies = append(latencies, time.Since(sent))
	}
}

func (l load) send(ctx context.Context, transport *http.Transport, r request) error {
	req, err := r.build(ctx, l.addr)
	if err != nil {
		return err
	}
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != l.status {
		err = fmt.Errorf("%s %s: got status %d: %s", r.method, r.path, resp.StatusCode, answer)
	}
	return err
}

func newTable(title string) *rig.Table {
	return rig.NewTable(title, "load", "req/s", "p50", "p99", "CPU s per 1,000", "engines, CPU s per 1,000", "peak RSS")
}

// addRow adds the medians of a load's turns. A value of zero, such as the latency of (b), is left empty.
func addRow(t *rig.Table, name string, turns ...result) {
	column := func(format string, of func(result) float64) string {
		values := make([]float64, len(turns))
		for i, turn := range turns {
			values[i] = of(turn)
		}
		value := rig.Median(values)
		if value == 0 {
			return ""
		}
		return fmt.Sprintf(format, value)
	}
	t.Row(name,
		column("%.0f", result.rate),
		column("%.2f ms", func(r result) float64 { return r.p50.Seconds() * 1000 }),
		column("%.2f ms", func(r result) float64 { return r.p99.Seconds() * 1000 }),
		column("%.3f", func(r result) float64 { return rig.PerThousand(r.cpu, r.requests) }),
		column("%.3f", func(r result) float64 { return rig.PerThousand(r.engines, r.requests) }),
		column("%.0f MiB", func(r result) float64 { return float64(r.peakRSS) / (1 << 20) }))
}
