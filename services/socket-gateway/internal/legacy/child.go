package legacy

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/parley-chat/parley/pkg/ops"
	"github.com/parley-chat/parley/pkg/redisclient"
	"github.com/parley-chat/parley/pkg/socketio/redisadapter"
)

const (
	statusInterval    = 500 * time.Millisecond
	readHeaderTimeout = 10 * time.Second

	processName = "socket-gateway-legacy" // in logs
)

// Main is the main function of the child process. It returns the exit code.
func Main() int {
	// A terminal signals the whole process group; this process ends only when its gateway closes its standard input.
	signal.Ignore(syscall.SIGINT, syscall.SIGTERM)
	level := slog.LevelInfo
	_ = level.UnmarshalText([]byte(os.Getenv("LOG_LEVEL"))) // the gateway has validated it
	child := Child{
		Stdin:  os.Stdin,
		Stdout: os.Stdout,
		Logger: ops.NewLogger(os.Stderr, processName, level),
		Redis: func(url string) (redis.UniversalClient, error) {
			return redisclient.New(url, redisclient.Timeouts{Dial: dialTimeout})
		},
	}
	err := child.Run(context.Background())
	if err != nil {
		_, _ = fmt.Fprintf(os.Stderr, "%s: %v\n", processName, err)
		return 1
	}
	return 0
}

// Child is the main program of the child process.
type Child struct {
	Stdin  io.Reader // the first line is the Setup; the child exits at EOF
	Stdout io.Writer
	Logger *slog.Logger
	// Redis returns a client for the URL of the Setup.
	Redis func(url string) (redis.UniversalClient, error)
}

// Run serves until EOF on Stdin or until ctx is done.
func (c Child) Run(ctx context.Context) error {
	// The library logs to the standard logger, one line for each client that disconnects early.
	log.SetOutput(slog.NewLogLogger(c.Logger.Handler(), slog.LevelDebug).Writer())
	stdin := bufio.NewReader(c.Stdin)
	var setup Setup
	line, err := stdin.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &setup)
	}
	if err != nil {
		return fmt.Errorf("reading the setup: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		defer cancel()
		_, _ = io.Copy(io.Discard, stdin)
	}()
	return c.serve(ctx, setup)
}

// serve serves on the Unix socket until ctx is done or the server fails.
func (c Child) serve(ctx context.Context, setup Setup) error {
	client, err := c.Redis(setup.RedisURL)
	if err != nil {
		return err
	}
	defer func() { _ = client.Close() }()
	ln, err := net.Listen("unix", setup.Socket)
	if err != nil {
		return err
	}
	adapter := redisadapter.New(client, redisadapter.Options{Sharded: setup.RedisSharded, Logger: c.Logger})
	s := newServer(setup, adapter, c.Logger)
	web := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: readHeaderTimeout,
		ErrorLog:          slog.NewLogLogger(c.Logger.Handler(), slog.LevelDebug),
	}
	served := make(chan error, 1)
	go func() { served <- web.Serve(ln) }()
	err = c.reportStatus(ctx, s, served)
	if err == nil {
		s.drain(setup.DrainTimeout)
	}
	s.close()
	_ = web.Close()
	return err
}

// reportStatus writes the child's status to Stdout when it changes, until ctx is done or the server fails.
func (c Child) reportStatus(ctx context.Context, s *server, served <-chan error) error {
	tick := time.NewTicker(statusInterval)
	defer tick.Stop()
	out := json.NewEncoder(c.Stdout)
	for reported := (status{}); ; {
		if now := (status{Ready: true, Connections: int(s.counts.open.Load())}); now != reported {
			if err := out.Encode(now); err != nil {
				return err
			}
			reported = now
		}
		select {
		case <-ctx.Done():
			return nil
		case err := <-served:
			return err
		case <-tick.C:
			if s.full() {
				return errors.New("too many leaked sessions, restart required")
			}
		}
	}
}
