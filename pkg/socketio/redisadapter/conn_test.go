package redisadapter

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"
)

// go-redis dials in a goroutine of its own: what that brings when nobody waits for it any more is closed.
func TestLateConnectionIsClosed(t *testing.T) {
	t.Parallel()
	ours, redisSide := net.Pipe()
	dialing := make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	client := redis.NewClient(&redis.Options{Dialer: func(context.Context, string, string) (net.Conn, error) {
		close(dialing)
		<-ctx.Done()
		return ours, nil
	}})
	defer client.Close()
	end := make(chan error, 1)
	go func() {
		_, err := dial(ctx, client)
		end <- err
	}()
	<-dialing
	cancel()
	if err := <-end; err == nil {
		t.Fatal("got a connection, want an error")
	}
	if n, err := redisSide.Read(make([]byte, 1)); err == nil {
		t.Errorf("got %d bytes, want the connection closed", n)
	}
}

// A dial that has failed is over: go-redis does not go on by itself.
func TestFailedDialIsOver(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var dials atomic.Int32
		client := redis.NewClient(options(t.Context(), &redis.Options{Dialer: func(context.Context, string, string) (net.Conn, error) {
			dials.Add(1)
			return nil, errors.New("nobody there")
		}}, nil))
		if err := client.Ping(t.Context()).Err(); err == nil {
			t.Error("got an answer, want an error")
		}
		time.Sleep(10 * time.Second)
		if got := dials.Load(); got != 1 {
			t.Errorf("got %d dials, want one", got)
		}
		client.Close()
		time.Sleep(10 * time.Second) // a bubble must be empty at its end
	})
}
