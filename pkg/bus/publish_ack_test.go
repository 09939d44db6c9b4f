package bus

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestAckTimeout waits, in virtual time, for acknowledgements that never arrive, before and after one that
// arrives in time.
func TestAckTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		table := newAckTable(func(string) {}, func([]byte) {})
		go table.sweep(ctx)
		answered := func(string) {
			time.AfterFunc(publishTimeout-time.Millisecond, func() {
				if w, ok := table.remove(table.next.Load()); ok {
					w.result <- nil
				}
			})
		}
		for range 3 {
			if err := table.await(ctx, nil, answered); err != nil {
				t.Errorf("acknowledged in time: got %v, want no error", err)
			}
			time.Sleep(sweepInterval / 3) // virtual: between two sweeps
			began := time.Now()
			err := table.await(ctx, nil, func(string) {})
			if took := time.Since(began); !errors.Is(err, errAckTimeout) || took < publishTimeout || took > publishTimeout+sweepInterval {
				t.Errorf("never acknowledged: got %v after %v, want %v after %v", err, took, errAckTimeout, publishTimeout)
			}
		}
		if n := table.waiting(); n != 0 {
			t.Errorf("got %d waiting publishers, want none", n)
		}
		stop()
	})
}
