package supervisor_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/parley-chat/parley/services/standalone/internal/supervisor"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestMembersOutliveTheContextUntilTheyAreStopped(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	c := supervisor.New(ctx)
	stopped := make(chan string, 2)
	member := func(name string) *supervisor.Member {
		return c.Start(name, func(ctx context.Context) error {
			<-ctx.Done()
			stopped <- name
			return nil
		})
	}
	engine, edge := member("engine"), member("edge")
	cancel()
	<-c.Ended().Done()
	select {
	case name := <-stopped:
		t.Fatalf("%s stopped with the context, want it to wait for Stop", name)
	default:
	}
	supervisor.Stop(edge)
	supervisor.Stop(engine)
	if err := c.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	if first, second := <-stopped, <-stopped; first != "edge" || second != "engine" {
		t.Errorf("order: got %s, %s, want edge, engine", first, second)
	}
}

func TestAMemberThatEndsTakesTheCrewDown(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]error{"with an error": errors.New("out of memory"), "without": nil} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := supervisor.New(t.Context())
			c.Start("other", func(ctx context.Context) error { <-ctx.Done(); return nil })
			c.Start("worker", func(context.Context) error { return fault })
			<-c.Ended().Done()
			err := c.Close()
			if err == nil || !strings.HasPrefix(err.Error(), "worker") {
				t.Errorf("Close: got %v, want an error about worker", err)
			}
		})
	}
}
