package redisadapter

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
	// errClient is returned where there is no single node to connect to.
	errClient = errors.New("redisadapter: the client is neither a *redis.Client nor a *redis.ClusterClient")
	// errSecond keeps go-redis from reconnecting by itself: the adapter must know of a lost connection before another one delivers.
	errSecond = errors.New("redisadapter: the connection is lost")
)

// connection is one connection with subscriptions, from its dial to its end.
type connection struct {
	*redis.PubSub
	client *redis.Client
}

// connect makes a connection to the client's node, with all that the client's options say of TLS, passwords, sentinels and databases.
// It ends with ctx. seen is set to the time, in Unix nanoseconds, whenever Redis sends something.
func connect(ctx context.Context, client redis.UniversalClient, timeout time.Duration, seen *atomic.Int64) (*connection, error) {
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

func (c *connection) close() {
	_ = c.Close()
	_ = c.client.Close()
}

// nodeOf picks any master of a cluster: a message published on one reaches the subscribers of all.
func nodeOf(ctx context.Context, client redis.UniversalClient) (*redis.Client, error) {
	switch c := client.(type) {
	case *redis.Client:
		return c, nil
	case *redis.ClusterClient:
		return c.MasterForKey(ctx, "")
	}
	return nil, errClient
}

// connectionOptions are those of the client, for one connection that ends with ctx.
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
		context.AfterFunc(ctx, func() { _ = conn.Close() }) // go-redis would wait for Redis
		return &signOfLife{conn, seen}, nil
	}
	o.Protocol, o.WriteTimeout = 2, timeout
	o.MaxRetries, o.DialerRetries = -1, 1
	o.MinIdleConns = 0
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled} // the client's is its own to change
	return &o
}

// signOfLife records when Redis last sent something.
type signOfLife struct {
	net.Conn
	at *atomic.Int64
}

func (c *signOfLife) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.at.Store(time.Now().UnixNano())
	}
	return n, err
}
