package redisadapter_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"
)

func TestMain(m *testing.M) {
	if redisAddr := os.Getenv(serveVariable); redisAddr != "" {
		if err := serve(redisAddr); err != nil {
			panic(err)
		}
		return
	}
	goleak.VerifyTestMain(m)
}

// absent skips a test if its tool is missing; in CI it fails the test.
func absent(t testing.TB, what string) {
	t.Helper()
	if os.Getenv("CI") == "true" {
		t.Fatalf("%s is missing", what)
	}
	t.Skipf("%s is missing: install it to run this test", what)
}

// redisServer is a real redis-server that a test can stop and restart.
type redisServer struct {
	t    testing.TB
	addr string
	args []string
	cmd  *exec.Cmd
}

// freeAddr returns an address whose port is below the ephemeral range, like the cluster bus port 10,000
// above, so that a restarted server can use it again.
func freeAddr(t testing.TB) string {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10_000+rand.IntN(12_000)))
		if err == nil {
			_ = l.Close()
			return l.Addr().String()
		}
	}
	t.Fatal("no port is free")
	return ""
}

func startRedis(t testing.TB, args ...string) *redisServer {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		absent(t, "redis-server")
	}
	s := &redisServer{t: t, addr: freeAddr(t), args: args}
	s.start()
	t.Cleanup(s.stop)
	return s
}

func (s *redisServer) start() {
	s.t.Helper()
	_, port, _ := net.SplitHostPort(s.addr)
	args := append([]string{"--port", port, "--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", s.t.TempDir(), "--loglevel", "warning"}, s.args...)
	s.cmd = exec.Command("redis-server", args...)
	var out bytes.Buffer
	s.cmd.Stdout, s.cmd.Stderr = &out, &out
	if err := s.cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	client := s.client()
	defer client.Close()
	for range 200 {
		if client.Ping(context.Background()).Err() == nil {
			return
		}
		time.Sleep(25 * time.Millisecond) // another process: nothing to wait on
	}
	s.t.Fatalf("redis-server did not start: %s", out.String())
}

// formCluster turns the server into a cluster of one node.
func (s *redisServer) formCluster() {
	s.t.Helper()
	c := s.client()
	defer c.Close()
	if err := c.ClusterAddSlotsRange(context.Background(), 0, 16383).Err(); err != nil {
		s.t.Fatal(err)
	}
	eventually(s.t, "the cluster is up", func() bool {
		info, err := c.ClusterInfo(context.Background()).Result()
		return err == nil && strings.Contains(info, "cluster_state:ok")
	})
}

func (s *redisServer) stop() {
	if s.cmd == nil {
		return
	}
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
	s.cmd = nil
}

func (s *redisServer) client() *redis.Client {
	return redis.NewClient(&redis.Options{Addr: s.addr, MaxRetries: -1})
}

// nodeModules returns the directory of the repository's npm packages.
func nodeModules(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("node"); err != nil {
		absent(t, "node")
	}
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		found := filepath.Join(dir, "node_modules")
		if _, err := os.Stat(filepath.Join(found, "socket.io-client")); err == nil {
			return found
		}
	}
	absent(t, "node_modules (npm ci)")
	return ""
}

// runNode runs a script of testdata and returns its output.
func runNode(t *testing.T, ctx context.Context, script string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(ctx, "node", append([]string{filepath.Join("testdata", script)}, args...)...)
	cmd.Env = append(os.Environ(), "NODE_PATH="+nodeModules(t))
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", script, err, out)
	}
	return string(out)
}

func eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(10 * time.Second); time.Now().Before(deadline); {
		if cond() {
			return
		}
		time.Sleep(5 * time.Millisecond)
	}
	t.Fatalf("timeout: %s", what)
}
