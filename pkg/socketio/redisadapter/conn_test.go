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
	"github.com/redis/go-redis/v9/maintnotifications"
)

// A connection that is established after its context has ended is closed.
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
		_, err := connect(ctx, client, time.Second, new(atomic.Int64))
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

// go-redis neither retries a failed dial nor replaces a lost connection.
func TestThereIsOneDial(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var dials atomic.Int32
		client := redis.NewClient(&redis.Options{
			Addr: "127.0.0.1:6379", MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}, // no name to look up
			Dialer: func(context.Context, string, string) (net.Conn, error) {
				dials.Add(1)
				return nil, errors.New("nobody there")
			},
		})
		if _, err := connect(t.Context(), client, time.Second, new(atomic.Int64)); err == nil {
			t.Error("got a connection, want an error")
		}
		time.Sleep(10 * time.Second)
		if got := dials.Load(); got != 1 {
			t.Errorf("got %d dials, want one", got)
		}
		client.Close()
		time.Sleep(10 * time.Second) // a bubble must be empty at its end
	})
}

// After a lost connection Receive returns an error instead of messages of a new connection.
func TestLostConnectionIsNotReplaced(t *testing.T) {
	t.Parallel()
	var seen atomic.Int64
	client := redis.NewClient(&redis.Options{Addr: serveScript(t, "")})
	defer client.Close()
	c, err := connect(t.Context(), client, time.Second, &seen)
	if err != nil {
		t.Fatal(err)
	}
	defer c.close()
	if _, err := c.Receive(t.Context()); err != nil || seen.Load() == 0 { // the answer to the ping
		t.Fatalf("got %v and a sign of life at %d", err, seen.Load())
	}
	if err := c.Subscribe(t.Context(), "payload of e"); err != nil { // upon which it leaves
		t.Fatal(err)
	}
	for range 2 {
		if got, err := c.Receive(t.Context()); err == nil {
			t.Errorf("got %v, want an error", got)
		}
	}
	if err := c.Ping(t.Context()); !errors.Is(err, errSecond) {
		t.Errorf("got %v, want %v", err, errSecond)
	}
}
