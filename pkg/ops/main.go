package ops

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/prometheus/client_golang/prometheus"
)

// Main runs a service as a process and returns its exit code. It passes run a context that ends at SIGTERM or
// SIGINT, and a logger that writes JSON lines to stderr at LOG_LEVEL. An error of run is printed as one line on
// stderr with exit code 1. A second signal terminates the process immediately.
//
// On the command line, --version prints the build, and "healthcheck" queries the running service's /healthz (at
// OPS_ADDR, or at the given URL) and exits with 0 or 1. Other arguments are rejected with exit code 2, except commands,
// which run handles itself.
//
//	func main() { os.Exit(ops.Main("client-api", run)) }
func Main(service string, run func(ctx context.Context, log *slog.Logger) error, commands ...string) int {
	ctx, release := untilSignal(context.Background())
	defer release()
	switch args := os.Args[1:]; {
	case len(args) == 0 || slices.Contains(commands, args[0]):
		return serve(ctx, service, run)
	case args[0] == "--version" || args[0] == "version":
		printVersion(service)
		return 0
	case args[0] == "healthcheck" && len(args) <= 2:
		return exitCode(ctx, os.Stderr, service, healthcheck(ctx, strings.Join(args[1:], "")))
	default:
		_, _ = fmt.Fprintf(
			os.Stderr,
			"%s: unknown arguments %q; %s is configured by environment variables "+
				"and accepts only --version and healthcheck\n",
			service, args, service,
		)
		return 2
	}
}

func serve(ctx context.Context, service string, run func(ctx context.Context, log *slog.Logger) error) int {
	prometheus.MustRegister(ReadBuild().Metric(service))
	buffer := NewBuffer(os.Stderr)
	defer func() { _ = buffer.Flush() }() // also if run panics
	log := NewLogger(buffer, service, levelFromEnv())
	limitMemory(ctx, os.DirFS("/"), log)
	err := run(ctx, log)
	_ = buffer.Flush()
	return exitCode(ctx, os.Stderr, service, err)
}

// untilSignal returns a context that ends at the first signal. The second terminates the process, with the exit code
// that a shell shows for a process killed by that signal. (signal.NotifyContext would miss a second one that follows
// quickly.)
func untilSignal(ctx context.Context) (_ context.Context, release func()) {
	ctx, cancel := context.WithCancel(ctx)
	signals, released := make(chan os.Signal, 2), make(chan struct{})
	signal.Notify(signals, syscall.SIGTERM, syscall.SIGINT)
	go func() {
		for first := true; ; first = false {
			select {
			case s := <-signals:
				if !first {
					os.Exit(128 + int(s.(syscall.Signal))) // only these two, which are syscall.Signal
				}
				cancel()
			case <-released:
				return
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(released)
		cancel()
	}
}

// levelFromEnv reads LOG_LEVEL before the configuration, which reports an invalid value.
func levelFromEnv() slog.Level {
	var level slog.Level
	if err := level.UnmarshalText([]byte(os.Getenv("LOG_LEVEL"))); err != nil {
		return slog.LevelInfo
	}
	return level
}

func exitCode(ctx context.Context, stderr io.Writer, service string, err error) int {
	if err == nil || ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return 0
	}
	line := strings.Join(strings.FieldsFunc(err.Error(), func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
	_, _ = fmt.Fprintf(stderr, "%s: %s\n", service, line)
	return 1
}
