package httpapi_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/httpapi"
	"github.com/parley-chat/parley/testkit/logtest"
	"github.com/parley-chat/parley/testkit/timetest"
)

// served is a server that runs until its test stops it.
type served struct {
	url  string
	addr string
	stop context.CancelFunc
	done chan error
	log  *logtest.Buffer
}

func serve(t *testing.T, h http.Handler, grace time.Duration) *served {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	s := &served{addr: ln.Addr().String(), stop: cancel, done: make(chan error, 1), log: &logtest.Buffer{}}
	s.url = "http://" + s.addr
	go func() { s.done <- httpapi.Serve(ctx, ln, h, slog.New(slog.NewJSONHandler(s.log, nil)), grace) }()
	return s
}

func (s *served) end(t *testing.T) error {
	t.Helper()
	select {
	case err := <-s.done:
		return err
	case <-time.After(10 * time.Second):
		t.Fatal("Serve did not return")
		return nil
	}
}

func TestServeFinishesRequestsInFlight(t *testing.T) {
	t.Parallel()
	entered, release := make(chan struct{}), make(chan struct{})
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		close(entered)
		<-release
		if err := r.Context().Err(); err != nil {
			t.Errorf("context of a request in flight: got %v, want it not to end with the server", err)
		}
		_, _ = io.WriteString(w, "done")
	}), 5*time.Second)
	answer := make(chan string, 1)
	go func() {
		resp, err := http.Get(s.url)
		if err != nil {
			answer <- err.Error()
			return
		}
		defer func() { _ = resp.Body.Close() }()
		body, _ := io.ReadAll(resp.Body)
		answer <- fmt.Sprint(string(body), " ", resp.Close)
	}()
	<-entered
	s.stop()
	awaitRefused(t, s.addr)
	select {
	case err := <-s.done:
		t.Fatalf("Serve: returned %v while a request was in flight", err)
	default:
	}
	close(release)
	if got := <-answer; got != "done false" && got != "done true" {
		t.Errorf("answer: got %q, want done", got)
	}
	if err := s.end(t); err != nil {
		t.Errorf("Serve: got %v, want nil", err)
	}
	if lines := s.log.Records(t); len(lines) != 0 {
		t.Errorf("log: got %v, want nothing", lines)
	}
}

// awaitRefused waits until connections are refused.
func awaitRefused(t *testing.T, addr string) {
	t.Helper()
	timetest.Until(t, "the server refuses connections", func() bool {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
}

func TestServeAbortsRequestsAfterGrace(t *testing.T) {
	t.Parallel()
	entered, release := make(chan struct{}), make(chan struct{})
	s := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		close(entered)
		<-release
	}), 50*time.Millisecond)
	failed := make(chan error, 1)
	go func() {
		resp, err := http.Get(s.url)
		if err == nil {
			_ = resp.Body.Close()
		}
		failed <- err
	}()
	<-entered
	s.stop()
	if err := s.end(t); err != nil {
		t.Errorf("Serve: got %v, want nil", err)
	}
	if err := <-failed; err == nil {
		t.Error("request that outlives grace: got an answer, want it aborted")
	}
	if lines := s.log.Records(t); len(lines) != 1 || lines[0]["level"] != "WARN" {
		t.Errorf("log: got %v, want one warning", lines)
	}
	close(release)
}

func TestStopUnderLoadLosesNoRequest(t *testing.T) {
	t.Parallel()
	var handled atomic.Int64
	s := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		handled.Add(1)
		_, _ = io.WriteString(w, "ok")
	}), 5*time.Second)
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	client := &http.Client{Transport: transport}
	var answered atomic.Int64
	var clients sync.WaitGroup
	for range 16 {
		clients.Go(func() {
			for {
				// The client does not retry a POST whose body cannot be replayed.
				req, _ := http.NewRequest(http.MethodPost, s.url, io.MultiReader(strings.NewReader("body")))
				resp, err := client.Do(req)
				if err != nil {
					if !errors.Is(err, syscall.ECONNREFUSED) {
						t.Errorf("request during the stop: got %v, want an answer or a refused connection", err)
					}
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				_ = resp.Body.Close()
				if answered.Add(1) == 500 {
					s.stop()
				}
			}
		})
	}
	clients.Wait()
	transport.CloseIdleConnections()
	if err := s.end(t); err != nil {
		t.Errorf("Serve: got %v, want nil", err)
	}
	if handled.Load() != answered.Load() {
		t.Errorf("handled %d requests and answered %d, want the same", handled.Load(), answered.Load())
	}
}

func TestServeClosesKeepAliveConnectionsOnStop(t *testing.T) {
	t.Parallel()
	s := serve(t, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), 5*time.Second)
	idle, err := net.Dial("tcp", s.addr)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = idle.Close() }()
	reader := bufio.NewReader(idle)
	send := func(text string) {
		t.Helper()
		if _, err := io.WriteString(idle, text); err != nil {
			t.Fatal(err)
		}
	}
	receive := func() *http.Response {
		t.Helper()
		resp, err := http.ReadResponse(reader, nil)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		return resp
	}
	send("GET / HTTP/1.1\r\nHost: x\r\n\r\n")
	if receive().Close {
		t.Error("before the stop: got Connection: close, want keep-alive")
	}
	send("GET / HTTP/1.1\r\n") // in transit when the stop begins
	s.stop()
	awaitRefused(t, s.addr)
	send("Host: x\r\n\r\n")
	if !receive().Close {
		t.Error("after the stop: got keep-alive, want Connection: close")
	}
	if err := s.end(t); err != nil {
		t.Errorf("Serve: got %v, want nil", err)
	}
}

func TestServeReportsABrokenListener(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = ln.Close()
	if err := httpapi.Serve(t.Context(), ln, http.NotFoundHandler(), slog.New(slog.DiscardHandler), time.Second); err == nil {
		t.Error("closed listener: got nil, want an error")
	}
}
