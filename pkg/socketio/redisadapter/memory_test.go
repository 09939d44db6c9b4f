package redisadapter_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/parley-chat/parley/pkg/socketio"
	"github.com/parley-chat/parley/pkg/socketio/redisadapter"
)

const (
	serveVariable = "REDISADAPTER_TEST_SERVE" // the address of Redis

	// maxBytesPerSocket limits the memory of an idle WebSocket with a namespace and a separate subscribed
	// room. It is about 1.5 times the measured value; Node's server needs 15 KB.
	maxBytesPerSocket = 3 << 10
)

// TestIdleSocketsAreSmall limits the memory of idle sockets. It runs the server in a separate process.
func TestIdleSocketsAreSmall(t *testing.T) {
	const sockets = 3000
	s := startServerProcess(t)
	before := s.memory()
	s.connect(sockets)
	after := s.memory()
	if per := (after.live - before.live) / sockets; per > maxBytesPerSocket {
		t.Errorf("got %d bytes a socket, want at most %d", per, maxBytesPerSocket)
	}
}

// BenchmarkIdleSockets reports the memory per socket of the server process. Run it with -benchtime=10000x: each
// iteration is a connection.
func BenchmarkIdleSockets(b *testing.B) {
	if b.N == 1 {
		return // the framework's trial run
	}
	s := startServerProcess(b)
	before := s.memory()
	b.ResetTimer()
	s.connect(b.N)
	b.StopTimer()
	busy := s.resident()
	after := s.memory()
	n := float64(b.N)
	b.ReportMetric(float64(after.live-before.live)/n, "live-B/conn")
	b.ReportMetric(float64(after.resident-before.resident)/n, "RSS-B/conn")
	b.ReportMetric(float64(busy-before.resident)/n, "burst-RSS-B/conn")
	b.ReportMetric(float64(after.allocated-before.allocated)/n, "allocated-B/conn")
	b.ReportMetric(float64(after.objects-before.objects)/n, "allocs/conn")
}

// memory is the memory reported by the server process, in bytes.
type memory struct {
	live      int // heap and stacks in use after a collection
	resident  int
	allocated int // on the heap since the start
	objects   int // allocations since the start
}

// serverProcess is a server process that joins each socket to a separate room.
type serverProcess struct {
	testing.TB
	addr string
	in   io.Writer
	out  *bufio.Reader
	pid  int
}

// serve is the main function of the server process; it runs until EOF on its input.
func serve(redisAddr string) error {
	client := redis.NewClient(&redis.Options{Addr: redisAddr})
	srv := socketio.NewServer(socketio.Options{KeepHeaders: []string{}, LocalIDs: true, Adapter: redisadapter.New(client, redisadapter.Options{})})
	srv.Of("/message").Use(func(ctx context.Context, s *socketio.Socket) error { return s.JoinContext(ctx, "app-"+s.ID()) })
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Println(l.Addr())
	go func() { _ = http.Serve(l, srv) }()
	for in := bufio.NewScanner(os.Stdin); in.Scan(); {
		fmt.Println(measure())
	}
	return nil
}

func measure() (live, allocated, objects uint64) {
	runtime.GC() // and once more with FreeOSMemory, for what pools keep
	debug.FreeOSMemory()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse, m.TotalAlloc, m.Mallocs
}

func startServerProcess(tb testing.TB) *serverProcess {
	tb.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serveVariable+"="+startRedis(tb).addr)
	cmd.Stderr = os.Stderr
	in, inErr := cmd.StdinPipe()
	out, outErr := cmd.StdoutPipe()
	if inErr != nil || outErr != nil {
		tb.Fatal(inErr, outErr)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		in.Close()
		_ = cmd.Wait()
	})
	s := &serverProcess{TB: tb, in: in, out: bufio.NewReader(out), pid: cmd.Process.Pid}
	s.scan(&s.addr)
	return s
}

func (s *serverProcess) scan(dst ...any) {
	s.Helper()
	if _, err := fmt.Fscanln(s.out, dst...); err != nil {
		s.Fatalf("reading from the server: %v", err)
	}
}

func (s *serverProcess) memory() memory {
	s.Helper()
	if _, err := io.WriteString(s.in, "measure\n"); err != nil {
		s.Fatal(err)
	}
	var m memory
	s.scan(&m.live, &m.allocated, &m.objects)
	m.resident = s.resident()
	return m
}

// resident returns the process's resident memory, or zero if it is not available.
func (s *serverProcess) resident() int {
	var kib int
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.pid))
	_, rest, _ := strings.Cut(string(status), "VmRSS:")
	_, _ = fmt.Sscan(rest, &kib)
	return kib << 10
}

// connect opens n sockets in batches and keeps them open until the test ends.
func (s *serverProcess) connect(n int) {
	s.Helper()
	const dialers = 8
	var wg sync.WaitGroup
	for i := range dialers {
		wg.Go(func() {
			for range (n + i) / dialers {
				conn, err := idleSocket(s.addr)
				if err != nil {
					s.Error(err)
					return
				}
				s.Cleanup(func() { conn.Close() })
			}
		})
	}
	wg.Wait()
}

// idleSocket is a WebSocket that has joined the namespace.
func idleSocket(addr string) (net.Conn, error) {
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err
	}
	const request = "GET /socket.io/?EIO=4&transport=websocket HTTP/1.1\r\nHost: localhost\r\nUser-Agent: Mozilla/5.0 (X11; Linux x86_64)\r\nAccept-Language: en\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
	const packet = "40/message,"
	frame := append([]byte{0x81, 0x80 | byte(len(packet)), 0, 0, 0, 0}, packet...) // a mask of zeros
	for _, step := range []struct{ send, want string }{{request, `"sid"`}, {string(frame), "40/message,{"}} {
		if _, err := io.WriteString(conn, step.send); err != nil {
			return nil, err
		}
		buf := make([]byte, 1024)
		for seen := ""; !strings.Contains(seen, step.want); {
			n, err := conn.Read(buf)
			if err != nil {
				return nil, err
			}
			seen += string(buf[:n])
		}
	}
	return conn, nil
}
