package socketgateway

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/testkit/bustest"
)

// Of two gateways the later one stops if one of them has no Redis; gateways with Redis do not mind each other.
func TestSecondGatewayNeedsRedis(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		first, second bool // alone
		stops         bool
	}{
		"both without Redis":       {true, true, true},
		"only the first without":   {true, false, true},
		"only the second without":  {false, true, true},
		"both with the same Redis": {false, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url := bustest.Start(t).URL()
			began := time.Now()
			run := func(ctx context.Context, b *bus.Bus, h announcement) <-chan error {
				done := make(chan error, 1)
				go func() { done <- requireSingleReplica(ctx, b.RPC(), h) }()
				return done
			}
			heard := make(chan struct{}, 16)
			watcher := bustest.Open(t, url)
			// returns when the subscription is active
			stop, err := watcher.RPC().Subscribe(subject.Replica(serviceName), "", func(string, []byte) { heard <- struct{}{} })
			if err != nil {
				t.Fatal(err)
			}
			defer stop()
			ctx, cancel := context.WithCancel(t.Context())
			first := run(ctx, bustest.Open(t, url), announcement{ID: "a", StartedAt: began, Alone: test.first})
			<-heard
			second := run(ctx, bustest.Open(t, url), announcement{ID: "b", StartedAt: began.Add(time.Second), Alone: test.second})
			<-heard
			if test.stops {
				if err := <-second; !errors.Is(err, errOtherReplica) {
					t.Errorf("the second: got %v, want %v", err, errOtherReplica)
				}
			}
			cancel()
			if err := <-first; err != nil {
				t.Errorf("the first: got %v, want it to go on", err)
			}
			if !test.stops {
				if err := <-second; err != nil {
					t.Errorf("the second: got %v, want it to go on", err)
				}
			}
		})
	}
}
