package bus

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/parley-chat/parley/pkg/apperr"
)

// A stream that does not acknowledge receives only probes. It counts as writable again after a probe, or a
// publish that has already timed out, is acknowledged.
func TestWriteGuard(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		g := NewWriteGuard("SENDS")
		calls := 0
		try := func(err error, after time.Duration) (waited time.Duration, got error) {
			began := time.Now()
			got = g.Do(t.Context(), func(ctx context.Context) error {
				calls++
				if sleep(ctx, after) != nil {
					return ctx.Err()
				}
				return err
			})
			return time.Since(began), got
		}
		refused := func(err error) bool { return NotWritable(err, apperr.Unreachable("NATS", err)) }

		for _, err := range []error{nil, nats.ErrDisconnected, errNoStream, errors.New("refused"), context.Canceled} {
			if _, got := try(err, 4*time.Second); !errors.Is(got, err) || g.state() != nil {
				t.Errorf("got %v and the state %v, want %v and a guard that admits", got, g.state(), err)
			}
		}
		if _, got := try(errAckTimeout, 5*time.Second); !refused(got) || g.state() == nil {
			t.Fatalf("got %v and the state %v, want the stream not writable", got, g.state())
		}
		calls = 0
		for range 10 {
			if waited, got := try(nil, time.Second); !refused(got) || waited != 0 {
				t.Fatalf("got %v after %v, want a rejection at once", got, waited)
			}
		}
		time.Sleep(probeInterval)
		if waited, got := try(nil, time.Minute); !refused(got) || waited != probeTimeout || calls != 1 {
			t.Fatalf("got %v after %v and %d calls, want one probe that fails", got, waited, calls)
		}
		time.Sleep(probeInterval)
		if _, got := try(nil, time.Second); got != nil || g.state() != nil {
			t.Errorf("got %v and the state %v, want a probe that resets the guard", got, g.state())
		}
		g.trip()
		writeGuards{{guard: g}}.late("SENDS")
		if _, got := try(nil, 0); got != nil {
			t.Errorf("after a late acknowledgement: got %v, want no error", got)
		}
		g.trip()
		time.Sleep(failureTTL + time.Second)
		if err := g.state(); err != nil {
			t.Errorf("got %v without recent publishes, want the failure expired", err)
		}
	})
}

// A slow publish does not trip the guard while others are acknowledged.
func TestWriteGuardSeesOtherAcknowledgements(t *testing.T) {
	t.Parallel()
	g := NewWriteGuard("SENDS")
	err := g.Do(t.Context(), func(ctx context.Context) error {
		if err := g.Do(ctx, func(context.Context) error { return nil }); err != nil {
			t.Error(err)
		}
		return errAckTimeout
	})
	if !errors.Is(err, errAckTimeout) || g.state() != nil {
		t.Errorf("got %v and the state %v, want the timeout and a guard that admits", err, g.state())
	}
}
