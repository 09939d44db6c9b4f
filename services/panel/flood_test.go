package panel_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/chat"
)

// resident returns the memory of a process in bytes.
func resident(t *testing.T, pid int) int {
	t.Helper()
	status, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "status"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	kilobytes, err := strconv.Atoi(strings.Fields(rest)[0])
	if err != nil {
		t.Fatal(err)
	}
	return kilobytes << 10
}

// TestAbuseByEventStreams has one agent with a thousand event streams, each of which has missed everything
// and comes back as the app does. They get 429, take few consumers and little memory, and another tenant's
// events arrive as before.
func TestAbuseByEventStreams(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("the memory of a process is read from /proc")
	}
	t.Parallel()
	long := os.Getenv("PARLEY_FAULTS") == "long"
	streams, lasts := 100, time.Second
	if long {
		streams, lasts = 1000, 20*time.Second
	}
	const ofCompany, catchingUp, mostMemory = 4, 4, 64 << 20
	w := newWorld(t, unlimited)
	base, pid, _ := w.child()
	agent, victim := w.session(w.acme.users[account.Agent]), w.session(w.other.users[account.Agent])
	agent.base, victim.base = base, base
	for range 20 {
		w.visitorWrites(w.acme, "missed")
	}
	events, _ := victim.events("/api/events", "")
	w.next(events, "ready")
	before, memory := w.latency(w.other, events, lasts), resident(t, pid)

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var flooding sync.WaitGroup
	var refused atomic.Int64
	for range streams {
		flooding.Go(func() { agent.comeBack(ctx, &refused) })
	}
	during := w.latency(w.other, events, lasts)
	consumers, more := w.consumers(), resident(t, pid)-memory
	stop()
	flooding.Wait()
	t.Logf("p99 of another tenant's events: %s before, %s during %d streams of one agent; %d consumers, %d MB more, %d times 429",
		before, during, streams, consumers, more>>20, refused.Load())
	if refused.Load() == 0 {
		t.Error("got no 429")
	}
	if consumers > 2*ofCompany+catchingUp {
		t.Errorf("got %d consumers, want at most %d of each company and %d that catch up", consumers, ofCompany, catchingUp)
	}
	if more > mostMemory {
		t.Errorf("got %d MB more, want at most %d", more>>20, mostMemory>>20)
	}
	if most := max(2*before, 200*time.Millisecond); long && during > most {
		t.Errorf("p99 of another tenant's events: got %s, want at most %s", during, most)
	}
}

// comeBack opens an event stream as the app does, until ctx is done.
func (b *browser) comeBack(ctx context.Context, refused *atomic.Int64) {
	for ctx.Err() == nil {
		r := b.request(http.MethodGet, "/api/events", "", "Last-Event-ID", "0-0-0-0").WithContext(ctx)
		if response, err := b.streams.RoundTrip(r); err == nil {
			if response.StatusCode == http.StatusTooManyRequests {
				refused.Add(1)
			}
			_, _ = io.Copy(io.Discard, response.Body)
			response.Body.Close()
		}
		select {
		case <-ctx.Done():
		case <-time.After(3 * time.Second):
		}
	}
}

// latency returns the 99th percentile of the time from a visitor's message to its event.
func (w *world) latency(c company, events <-chan sse, lasts time.Duration) time.Duration {
	w.t.Helper()
	var took []time.Duration
	for end := time.Now().Add(lasts); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		began := time.Now()
		m := w.visitorWrites(c, "still here")
		if e := w.next(events, "message"); !strings.Contains(e.data, m.ID) {
			w.t.Fatalf("got %+v, want message %s", e, m.ID)
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	return took[len(took)*99/100]
}

// A browser that reads nothing is cut off, and the others of its company get every event.
func TestSlowBrowserIsCutOff(t *testing.T) {
	t.Parallel()
	w := newWorld(t, unlimited)
	agent, owner := w.session(w.acme.users[account.Agent]), w.session(w.acme.users[account.Owner])
	conn, err := net.Dial("tcp", strings.TrimPrefix(w.base, "http://"))
	w.must(err)
	defer conn.Close()
	w.must(conn.(*net.TCPConn).SetReadBuffer(4 << 10)) // the kernel's buffer must not hide the panel's
	_, err = fmt.Fprintf(conn, "GET /api/events HTTP/1.1\r\nHost: panel\r\nCookie: %s\r\n\r\n", agent.cookie)
	w.must(err)
	reader := bufio.NewReaderSize(conn, 16)
	for line := ""; !strings.HasPrefix(line, "event: ready"); {
		line, err = reader.ReadString('\n')
		w.must(err)
	}
	colleague, _ := owner.events("/api/events", "")
	w.next(colleague, "ready")
	for range 9 { // the rest of the agent's streams
		events, _ := agent.events("/api/events", "")
		w.next(events, "ready")
		go func() {
			for range events { // reads, so that only the first stream is slow
				continue
			}
		}()
	}
	text := strings.Repeat("x", 4000)
	messages := 100
	deadline := time.Now().Add(limit)
	for written := 0; agent.status("/api/events") != http.StatusOK; written += messages {
		if written == 4000 { // the buffers of the connection are full; more would fill the stream
			messages = 1
		}
		var last chat.Message
		for range messages {
			last = w.publishes(w.acme, text)
		}
		for e := w.next(colleague, "message"); !strings.Contains(e.data, last.ID); {
			e = w.next(colleague, "message")
		}
		if time.Now().After(deadline) {
			t.Fatal("the browser that reads nothing keeps its stream")
		}
	}
}

// status returns the status of an endless response, which it ends.
func (b *browser) status(path string) int {
	b.w.t.Helper()
	ctx, cancel := context.WithCancel(b.w.t.Context())
	defer cancel()
	response, err := b.streams.RoundTrip(b.request(http.MethodGet, path, "").WithContext(ctx))
	b.w.must(err)
	response.Body.Close()
	return response.StatusCode
}
