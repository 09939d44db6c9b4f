package service_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/ops"
	"github.com/parley-chat/parley/pkg/service"
	"github.com/parley-chat/parley/pkg/service/storage"
	"github.com/parley-chat/parley/testkit/bustest"
)

// journal records events in order; one goroutine writes at a time.
type journal []string

func (j *journal) closer(name string, err error) func() error {
	return func() error { *j = append(*j, "close "+name); return err }
}

func base() service.Base { return service.Base{Logger: slog.New(slog.DiscardHandler)} }

func TestRunClosesInReverseOrder(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	for name, test := range map[string]struct {
		openErr, workErr, closeErr error
		want                       []string
	}{
		"stopped":           {want: []string{"work", "close b", "close a"}},
		"opening fails":     {openErr: broken, want: []string{"close b", "close a"}},
		"the work fails":    {workErr: broken, want: []string{"work", "close b", "close a"}},
		"closing one fails": {closeErr: broken, want: []string{"work", "close b", "close a"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var j journal
			ctx, cancel := context.WithCancel(t.Context())
			err := service.Run(ctx, "test", base(), func(p *service.Process) (service.Work, error) {
				p.OnClose(j.closer("a", nil))
				p.OnClose(j.closer("b", test.closeErr))
				return func(ctx context.Context) error {
					j = append(j, "work")
					cancel()
					<-ctx.Done()
					return test.workErr
				}, test.openErr
			})
			if want := errors.Join(test.openErr, test.workErr, test.closeErr); (err == nil) != (want == nil) || err != nil && !errors.Is(err, broken) {
				t.Errorf("Run: got %v, want %v", err, want)
			}
			if !slices.Equal(j, test.want) {
				t.Errorf("got %q, want %q", j, test.want)
			}
		})
	}
}

// A rolling restart must see the process as not ready while it finishes, and background tasks run as long as the work.
func TestRunIsNotReadyUntilTheWorkHasEnded(t *testing.T) {
	t.Parallel()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	b := base()
	b.OpsListener = ln
	readyz := func() int {
		r, err := http.Get("http://" + ln.Addr().String() + "/readyz")
		if err != nil {
			t.Error(err)
			return 0
		}
		defer r.Body.Close()
		_, _ = io.Copy(io.Discard, r.Body)
		return r.StatusCode
	}
	ctx, stop := context.WithCancel(t.Context())
	backgroundEnded := make(chan struct{})
	err = service.Run(ctx, "test", b, func(p *service.Process) (service.Work, error) {
		p.Check(ops.Check{Name: "engine", Check: func(context.Context) error { return nil }})
		p.Background(func(ctx context.Context) error {
			<-ctx.Done()
			close(backgroundEnded)
			return nil
		})
		return func(ctx context.Context) error {
			if got := readyz(); got != http.StatusOK {
				t.Errorf("running: got %d, want 200", got)
			}
			stop()
			<-ctx.Done()
			for readyz() == http.StatusOK { // SetStopping runs concurrently
			}
			if got := readyz(); got != http.StatusServiceUnavailable {
				t.Errorf("stopping: got %d, want 503", got)
			}
			select {
			case <-backgroundEnded:
				t.Error("the background task ended before the work")
			default:
			}
			return nil
		}, nil
	})
	if err != nil {
		t.Errorf("Run: %v", err)
	}
	<-backgroundEnded
}

func TestABackgroundErrorEndsTheService(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	err := service.Run(t.Context(), "test", base(), func(p *service.Process) (service.Work, error) {
		p.Background(func(context.Context) error { return broken })
		return func(ctx context.Context) error { <-ctx.Done(); return nil }, nil
	})
	if !errors.Is(err, broken) {
		t.Errorf("Run: got %v, want %v", err, broken)
	}
}

// A service whose connection nothing restores must not go on as a process that answers 503 for ever.
func TestALostConnectionEndsTheService(t *testing.T) {
	t.Parallel()
	b := base()
	b.NATSURL = bustest.Start(t).URL()
	err := service.Run(t.Context(), "test", b, func(p *service.Process) (service.Work, error) {
		nats, err := p.Bus(nil)
		return func(ctx context.Context) error {
			for nats.Ready(ctx) != nil && ctx.Err() == nil {
			}
			_, err := nats.Stream(ctx, strings.Repeat("a", 5000)) // longer than a line of the protocol
			if err == nil {
				t.Error("the server took the name")
			}
			<-ctx.Done()
			return nil
		}, err
	})
	if err == nil || !strings.Contains(err.Error(), "connection to NATS") {
		t.Errorf("Run: got %v, want that the connection was given up", err)
	}
}

func TestCheckReportsAllProblems(t *testing.T) {
	t.Parallel()
	type Config struct {
		service.Base
		Storage storage.Config
	}
	err := service.Check(&Config{}, "COLOUR must be red")
	for _, want := range []string{"Logger is missing", "COLOUR must be red", "NATS_URL is required", "MONGODB_URI or SQLITE_PATH is required"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Check: got %v, want %q in it", err, want)
		}
	}
	cfg := Config{Base: base(), Storage: storage.Config{Store: config.Store{SQLitePath: "parley.db"}}}
	cfg.NATSURL = "nats://localhost"
	if err := service.Check(&cfg); err != nil || cfg.Now == nil {
		t.Errorf("Check: got %v and a clock %t, want nil and the real one", err, cfg.Now != nil)
	}
}
