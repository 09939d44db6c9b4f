package redisadapter

import (
	"context"
	"net"
	"testing"

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
