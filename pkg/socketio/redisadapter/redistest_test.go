package redisadapter_test

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/socketio/internal/testenv"

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
	testenv.Need(t, "redis-server")
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
	testenv.Eventually(s.t, "the cluster is up", func() bool {
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
