package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/parley-chat/parley/bench/internal/rig"
)

// connections is the generator's number of keep-alive connections, each with one request in flight.
const connections = 64

// load is one kind of request. Request i of a connection is requests[(connection+i) % len(requests)], including its
// header.
type load struct {
	addr     string
	requests [][]byte
	status   int  // expected status of each response
	lean     bool // use the minimal client instead of Go's HTTP client
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

// perThousand returns CPU seconds per 1,000 requests.
func perThousand(cpu time.Duration, r result) float64 {
	return cpu.Seconds() * 1000 / float64(r.requests)
}

// run sends requests on all connections for a duration and returns the result. A response with another status, or a
// broken connection, ends the run with an error: figures with failures are not reported.
func (l load) run(ctx context.Context, d time.Duration) (result, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	latencies := make([][]time.Duration, connections)
	errs := make([]error, connections)
	begin := time.Now()
	deadline := begin.Add(d)
	var wg sync.WaitGroup
	for i := range connections {
		wg.Go(func() {
			latencies[i], errs[i] = l.connection(ctx, i, deadline)
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
	if !l.lean {
		return l.ordinaryConnection(ctx, n, deadline)
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", l.addr)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	latencies := make([]time.Duration, 0, 1<<14)
	r := bufio.NewReaderSize(conn, 1<<16)
	for i := 0; ; i++ {
		sent := time.Now()
		if !sent.Before(deadline) {
			return latencies, nil
		}
		if _, err := conn.Write(l.requests[(n+i*connections)%len(l.requests)]); err != nil {
			return nil, err
		}
		status, body, err := readAnswer(r)
		if err != nil {
			return nil, err
		}
		if status != l.status {
			return nil, fmt.Errorf("got status %d: %s", status, body)
		}
		latencies = append(latencies, time.Since(sent))
	}
}

// readAnswer reads one HTTP/1.1 response with minimal work: the generator shares the cores with the process under test.
// It returns the body only with an error status.
func readAnswer(r *bufio.Reader) (status int, body string, err error) {
	line, err := r.ReadSlice('\n')
	if err != nil {
		return 0, "", err
	}
	if len(line) < len("HTTP/1.1 200") {
		return 0, "", fmt.Errorf("no status line: %q", line)
	}
	if status, err = strconv.Atoi(string(line[9:12])); err != nil {
		return 0, "", err
	}
	length, chunked := 0, false
	for {
		line, err = r.ReadSlice('\n')
		if err != nil {
			return 0, "", err
		}
		if len(line) <= 2 {
			break
		}
		name, value, _ := strings.Cut(string(line), ":")
		switch {
		case strings.EqualFold(name, "Content-Length"):
			if length, err = strconv.Atoi(strings.TrimSpace(value)); err != nil {
				return 0, "", err
			}
		case strings.EqualFold(name, "Transfer-Encoding"):
			chunked = true
		}
	}
	if chunked {
		return status, "", discardChunks(r)
	}
	if status >= 400 {
		b := make([]byte, length)
		_, err = io.ReadFull(r, b)
		return status, string(b), err
	}
	_, err = r.Discard(length)
	return status, "", err
}

func discardChunks(r *bufio.Reader) error {
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return err
		}
		n, err := strconv.ParseInt(strings.TrimSpace(string(line)), 16, 32)
		if err != nil {
			return err
		}
		if _, err := r.Discard(int(n) + 2); err != nil {
			return err
		}
		if n == 0 {
			return nil
		}
	}
}

// request encodes a request in its wire format.
func request(method, addr, path, header, body string) []byte {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s HTTP/1.1\r\nHost: %s\r\n", method, path, addr)
	b.WriteString(header)
	if body != "" {
		fmt.Fprintf(&b, "Content-Type: application/json\r\nContent-Length: %d\r\n", len(body))
	}
	b.WriteString("\r\n")
	b.WriteString(body)
	return []byte(b.String())
}
