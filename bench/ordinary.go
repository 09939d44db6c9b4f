package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"
)

// ordinaryConnection is connection with Go's HTTP client: a typical caller, which uses about as much CPU as a bare Echo
// server. Both halves and POST /message/send have the same caller.
func (l load) ordinaryConnection(ctx context.Context, n int, deadline time.Time) ([]time.Duration, error) {
	transport := &http.Transport{MaxConnsPerHost: 1}
	defer transport.CloseIdleConnections()
	latencies := make([]time.Duration, 0, 1<<14)
	for i := 0; ; i++ {
		sent := time.Now()
		if !sent.Before(deadline) {
			return latencies, nil
		}
		if err := l.ordinaryRequest(ctx, transport, l.requests[(n+i*connections)%len(l.requests)]); err != nil {
			return nil, err
		}
		latencies = append(latencies, time.Since(sent))
	}
}

func (l load) ordinaryRequest(ctx context.Context, transport *http.Transport, wire []byte) error {
	parsed, err := http.ReadRequest(bufio.NewReaderSize(bytes.NewReader(wire), len(wire)))
	if err != nil {
		return err
	}
	body, err := io.ReadAll(parsed.Body)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, parsed.Method, "http://"+l.addr+parsed.RequestURI, bytes.NewReader(body))
	if err != nil {
		return err
	}
	req.Header = parsed.Header
	resp, err := transport.RoundTrip(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != l.status {
		err = fmt.Errorf("got status %d: %s", resp.StatusCode, answer)
	}
	return err
}
