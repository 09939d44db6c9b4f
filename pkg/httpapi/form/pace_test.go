package form

import (
	"testing"
	"testing/synctest"
	"time"
)

// A client may stall for a while, and must then send or receive.
func TestPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		p := pacedContext()
		p.atMost = 5 * time.Minute
		left := func() time.Duration { return time.Until(p.deadline()) }
		if got := left(); got != patience {
			t.Errorf("at the beginning: got %v, want %v", got, patience)
		}
		time.Sleep(15 * time.Second)
		p.moved(1)
		if got := left(); got != patience-15*time.Second {
			t.Errorf("a byte in 15 seconds: got %v more, want no time for it", got)
		}
		p.moved(100 * minRate)
		if got := left(); got != patience+85*time.Second {
			t.Errorf("a good piece: got %v, want the time that it may take", got)
		}
		p.moved(1 << 30)
		if got := left(); got != 5*time.Minute-15*time.Second {
			t.Errorf("beyond the bound: got %v, want the remaining time", got)
		}
		if p.atMost = 0; time.Until(p.deadline()) < time.Hour {
			t.Error("without a bound: want only the rate to count")
		}
	})
}
