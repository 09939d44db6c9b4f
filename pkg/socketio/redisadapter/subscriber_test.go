package redisadapter

import (
	"context"
	"errors"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// The timeout of a ping starts when the ping is written, even if that is late. Without a response the
// connection is closed.
func TestPingHasItsTime(t *testing.T) {
	t.Parallel()
	for _, answered := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			ours, redisSide := net.Pipe()
			defer ours.Close()
			s := &subscriber{health: time.Second}
			s.lastSeen.Store(time.Now().UnixNano())
			var redisEnds sync.WaitGroup
			defer redisEnds.Wait()
			redisEnds.Go(func() {
				defer redisSide.Close()
				time.Sleep(1900 * time.Millisecond) // of which the ping, due after a second, waits 900 ms
				_, _ = redisSide.Read(make([]byte, 64))
				time.Sleep(500 * time.Millisecond)
				if answered {
					s.lastSeen.Store(time.Now().UnixNano())
				}
				time.Sleep(time.Second)
			})
			ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
			defer cancel()
			want, after := errSilent, 2900*time.Millisecond
			if answered {
				want, after = context.DeadlineExceeded, 3*time.Second
			}
			start := time.Now()
			ping := func(context.Context, ...string) error {
				_, err := ours.Write([]byte("PING"))
				return err
			}
			if err := s.watch(ctx, ping); !errors.Is(err, want) || time.Since(start) != after {
				t.Errorf("answered %t: got %v after %v, want %v after %v", answered, err, time.Since(start), want, after)
			}
		})
	}
}
