package redisadapter

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// errClient is returned where there is no single node to connect to.
var errClient = errors.New("redisadapter: the client is neither a *redis.Client nor a *redis.ClusterClient")

// redisConn is a connection of our own. go-redis makes it, with all that its options say of TLS, passwords, sentinels
// and databases, and hands it over when Redis has answered; from then on nobody else reads or writes it. What
// passes here for each reply is so little that the general client would cost several times as much.
type redisConn struct {
	conn net.Conn      // nil until it is ours
	held *redis.Conn   // go-redis's side of conn
	made *redis.Client // knows of conn and of nothing else
}

// dialed is a connection that go-redis has made.
type dialed struct {
	conn    net.Conn
	unwatch func() bool // ends the watch of the time to connect
}

// dial connects to the client's node.
func dial(ctx context.Context, client redis.UniversalClient) (*redisConn, error) {
	node, err := nodeOf(ctx, client)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // what is dialed and not taken over is closed
	made := make(chan dialed, 1)
	l := &redisConn{made: redis.NewClient(options(ctx, node.Options(), made))}
	l.held = l.made.Conn()
	if err = l.held.Ping(ctx).Err(); err == nil {
		err = l.takeOver(ctx, <-made)
	}
	if err != nil {
		l.close()
		return nil, fmt.Errorf("redisadapter: connecting: %w", err)
	}
	return l, nil
}

// takeOver makes the connection ours.
func (l *redisConn) takeOver(ctx context.Context, d dialed) error {
	if !d.unwatch() {
		return ctx.Err()
	}
	l.conn = d.conn
	return l.conn.SetDeadline(time.Time{})
}

// nodeOf picks any master of a cluster: all its nodes know what is published on one.
func nodeOf(ctx context.Context, client redis.UniversalClient) (*redis.Client, error) {
	switch c := client.(type) {
	case *redis.Client:
		return c, nil
	case *redis.ClusterClient:
		return c.MasterForKey(ctx, "")
	}
	return nil, errClient
}

// options are those of the client, for one connection that speaks RESP2 and is sent to made. That may be after go-redis has
// returned: it dials in a goroutine of its own, for which it does not wait when ctx is done.
func options(ctx context.Context, of *redis.Options, made chan<- dialed) *redis.Options {
	o := *of
	dialNode := o.Dialer
	o.Dialer = func(dialing context.Context, network, addr string) (net.Conn, error) {
		conn, err := dialNode(dialing, network, addr)
		if err == nil {
			made <- dialed{conn, context.AfterFunc(ctx, func() { _ = conn.Close() })} // go-redis would wait for the greeting
		}
		return conn, err
	}
	o.Protocol = 2
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled} // the client's is its own to change
	o.MaxRetries, o.DialerRetries = -1, 1
	// A pool in which as many dials as its size have failed goes on dialing by itself, for a second after its end: not this one.
	o.PoolSize, o.MinIdleConns, o.MaxIdleConns = 2, 0, 0
	o.ReadBufferSize, o.WriteBufferSize = 1<<10, 1<<10 // for the greeting only
	return &o
}

// write sends b within a time.
func (l *redisConn) write(b []byte, timeout time.Duration) error {
	if err := l.conn.SetWriteDeadline(time.Now().Add(timeout)); err != nil {
		return err
	}
	_, err := l.conn.Write(b)
	return err
}

func (l *redisConn) close() {
	if l.conn != nil {
		_ = l.conn.Close()
	}
	_ = l.held.Close()
	_ = l.made.Close()
}
