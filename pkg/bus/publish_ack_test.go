package bus

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// TestAnAckThatNeverComes waits, in virtual time, for an answer to what was sent, before and after one that is there in time.
func TestAnAckThatNeverComes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		table := newAckTable(func(string) {})
		go table.sweep(ctx)
		answered := func(string) {
			time.AfterFunc(publishTimeout-time.Millisecond, func() {
				if w, ok := table.take(table.next.Load()); ok {
					w.answer <- nil
				}
			})
		}
		for range 3 {
			if err := table.await(ctx, answered); err != nil {
				t.Errorf("answered in time: got %v, want no error", err)
			}
			time.Sleep(sweepInterval / 3) // virtual: between two sweeps
			began := time.Now()
			err := table.await(ctx, func(string) {})
			if took := time.Since(began); !errors.Is(err, errAckTimeout) || took < publishTimeout || took > publishTimeout+sweepInterval {
				t.Errorf("never answered: got %v after %v, want %v after %v", err, took, errAckTimeout, publishTimeout)
			}
		}
		if n := table.waiting(); n != 0 {
			t.Errorf("got %d places still taken, want none", n)
		}
		stop()
	})
}
