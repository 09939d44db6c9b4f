package redisadapter

// One connection for subscriptions, without the reconnects of go-redis: subscriber.go connects again itself, since it
// must report the loss before a new connection delivers.

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

var (
	// errClient is returned for unsupported types of clients.
	errClient = errors.New("redisadapter: the client is neither a *redis.Client nor a *redis.ClusterClient")
	// errSecond prevents automatic reconnects of go-redis: the adapter must handle a lost connection before a
	// new one delivers.
	errSecond = errors.New("redisadapter: connection lost")
)

// connection is a single connection for subscriptions. It never reconnects.
type connection struct {
	*redis.PubSub
	client *redis.Client
}

// connect connects to the client's node with the client's options (TLS, passwords, sentinels, database). The
// connection is closed when ctx ends. seen is set to the time of each read from Redis, in Unix nanoseconds.
func connect(
	ctx context.Context,
	client redis.UniversalClient,
	timeout time.Duration,
	seen *atomic.Int64,
) (*connection, error) {
	node, err := nodeOf(ctx, client)
	if err != nil {
		return nil, err
	}
	made := redis.NewClient(connectionOptions(ctx, *node.Options(), timeout, seen))
	c := &connection{PubSub: made.Subscribe(ctx), client: made}
	if err := c.Ping(ctx); err != nil { // the first command dials
		c.close()
		return nil, fmt.Errorf("redisadapter: connecting: %w", err)
	}
	return c, nil
}

// close ends the connection and the client that was made for it.
func (c *connection) close() {
	_ = c.Close()
	_ = c.client.Close()
}

// nodeOf returns the client of a single node. For a cluster that is any master: a message published on one
// reaches the subscribers of all.
func nodeOf(ctx context.Context, client redis.UniversalClient) (*redis.Client, error) {
	switch c := client.(type) {
	case *redis.Client:
		return c, nil
	case *redis.ClusterClient:
		return c.MasterForKey(ctx, "")
	}
	return nil, errClient
}

// connectionOptions returns the client's options for one connection, which is closed when ctx ends.
func connectionOptions(ctx context.Context, o redis.Options, timeout time.Duration, seen *atomic.Int64) *redis.Options {
	var dialed atomic.Bool
	dial := o.Dialer
	o.Dialer = func(dialing context.Context, network, addr string) (net.Conn, error) {
		if dialed.Swap(true) {
			return nil, errSecond
		}
		conn, err := dial(dialing, network, addr)
		if err != nil {
			return nil, err
		}
		context.AfterFunc(ctx, func() { _ = conn.Close() }) // go-redis would wait for a response
		return &activityConn{conn, seen}, nil
	}
	o.Protocol = 2
	o.WriteTimeout = timeout
	o.MaxRetries = -1
	o.DialerRetries = 1
	o.MinIdleConns = 0
	// a copy: the original belongs to the client
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return &o
}

// activityConn records the time of the last read.
type activityConn struct {
	net.Conn
	at *atomic.Int64
}

// Read implements net.Conn.
func (c *activityConn) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.at.Store(time.Now().UnixNano())
	}
	return n, err
}
