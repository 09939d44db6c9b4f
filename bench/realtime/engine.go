package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/parley-chat/parley/bench/internal/rig"
)

// engines are the Redis and the NATS server of a stage.
type engines struct {
	redis, nats         *rig.Process
	redisAddr, natsAddr string
}

// buildNATS builds nats-server in the version pinned by pkg, as a standalone binary.
func buildNATS(ctx context.Context, dir string) (string, error) {
	path := filepath.Join(dir, "nats-server")
	cmd := exec.CommandContext(ctx, "go", "build", "-C", "pkg", "-o", path, "github.com/nats-io/nats-server/v2")
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("building nats-server (this runs in the repository's root): %w", err)
	}
	return path, nil
}

func startEngines(ctx context.Context, natsServer, dir string) (e *engines, err error) {
	e = &engines{redisAddr: rig.FreeAddr(), natsAddr: rig.FreeAddr()}
	defer func() {
		if err != nil {
			e.stop()
		}
	}()
	_, port, _ := net.SplitHostPort(e.redisAddr)
	e.redis, err = rig.Start(nil, filepath.Join(dir, "redis.log"), "redis-server",
		"--bind", "127.0.0.1", "--port", port, "--save", "", "--appendonly", "no", "--dir", dir)
	if err != nil {
		return e, err
	}
	e.redis.Drain()
	_, port, _ = net.SplitHostPort(e.natsAddr)
	e.nats, err = rig.Start(nil, filepath.Join(dir, "nats.log"), natsServer,
		"--addr", "127.0.0.1", "--port", port, "--jetstream", "--store_dir", filepath.Join(dir, "jetstream"))
	if err != nil {
		return e, err
	}
	e.nats.Drain()
	if err = awaitListening(ctx, e.redisAddr); err != nil {
		return e, err
	}
	return e, awaitListening(ctx, e.natsAddr)
}

// cpu returns the CPU time used so far; zero for the bare loop.
func (e *engines) cpu() time.Duration {
	if e == nil {
		return 0
	}
	return e.redis.CPU() + e.nats.CPU()
}

func (e *engines) stop() {
	for _, p := range []*rig.Process{e.redis, e.nats} {
		if p != nil {
			p.Stop()
		}
	}
}

func awaitListening(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	for {
		if c, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr); err == nil {
			return c.Close()
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("nothing listens on %s", addr)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// redisSent returns how many bytes Redis has sent before its INFO reply, and the size of that reply.
func redisSent(c net.Conn) (sent, answer int64, err error) {
	if err := c.SetDeadline(time.Now().Add(5 * time.Second)); err != nil {
		return 0, 0, err
	}
	if _, err := io.WriteString(c, "INFO stats\r\n"); err != nil {
		return 0, 0, err
	}
	r := bufio.NewReader(c)
	head, err := r.ReadString('\n')
	if err != nil {
		return 0, 0, err
	}
	length, err := strconv.Atoi(strings.Trim(head, "$\r\n"))
	if err != nil {
		return 0, 0, fmt.Errorf("got %q from Redis for INFO", head)
	}
	info := make([]byte, length+2)
	if _, err := io.ReadFull(r, info); err != nil {
		return 0, 0, err
	}
	for line := range strings.Lines(string(info)) {
		if value, ok := strings.CutPrefix(line, "total_net_output_bytes:"); ok {
			sent, err = strconv.ParseInt(strings.TrimSpace(value), 10, 64)
			return sent, int64(len(head) + len(info)), err
		}
	}
	return 0, 0, errors.New("no total_net_output_bytes in Redis's INFO")
}
