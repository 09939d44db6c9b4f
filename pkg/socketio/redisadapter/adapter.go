package redisadapter

// The adapter of one namespace: options, construction, and the methods that socketio calls. The two wire formats
// are in classic.go with broadcast.go, and in sharded.go.

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/parley-chat/parley/pkg/socketio"
)

// Options configure an adapter. The zero value of each field means its default.
type Options struct {
	Prefix  string // of all channels; "socket.io"
	Sharded bool   // SSUBSCRIBE and SPUBLISH, the format of the official sharded adapter
	// timeout of a publish round trip; 3 s (on a cluster, the client's own timeouts apply too)
	PublishTimeout time.Duration
	RequestTimeout time.Duration // timeout of responses of other nodes; 5 s
	HealthInterval time.Duration // idle time before a ping, and its timeout; 3 s

	// OnDisconnect is called when subscriptions are lost, so that messages are missed. It is called
	// before they are restored: no message of a new connection is delivered before it has returned.
	OnDisconnect func(namespace string)
	// OnReconnect is called when all subscriptions are restored, with the time at which the connection was
	// last known to work: later messages may have been missed. Neither callback may block, since deliveries wait
	// meanwhile. The calls are made in the order of the events.
	OnReconnect func(namespace string, since time.Time)

	Logger *slog.Logger // nil: no logs
}

func (o Options) withDefaults() Options {
	if o.Prefix == "" {
		o.Prefix = "socket.io"
	}
	if o.PublishTimeout == 0 {
		o.PublishTimeout = 3 * time.Second
	}
	if o.RequestTimeout == 0 {
		o.RequestTimeout = 5 * time.Second
	}
	if o.HealthInterval == 0 {
		o.HealthInterval = 3 * time.Second
	}
	if o.OnDisconnect == nil {
		o.OnDisconnect = func(string) {}
	}
	if o.OnReconnect == nil {
		o.OnReconnect = func(string, time.Time) {}
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	return o
}

// emitterUID is the sender id of @socket.io/redis-emitter. Every node accepts its broadcasts, since no node
// has this id. PublishOrdered uses it for that reason: its broadcasts come back to this node too.
const emitterUID = "emitter"

// maxJobs bounds the queued requests of other nodes; further ones are dropped.
const maxJobs = 1024

// format is one of the two wire formats.
type format interface {
	// channels are the channels that a node always subscribes to.
	channels() []string
	// roomChannel returns the channel of a room; hasChannel is false if the room shares the namespace's.
	roomChannel(room string) (name string, hasChannel bool)
	// requestChannel returns the channel for requests to all nodes.
	requestChannel() string
	// appendBroadcast appends the payload of a broadcast from uid to dst.
	appendBroadcast(dst []byte, uid string, b *socketio.Broadcast) (channel string, payload []byte, err error)
	encodeCommand(c socketio.Command) ([]byte, error)
	encodeFetch(requestID string, sel socketio.Selection) ([]byte, error)
	encodeServerSide(data json.RawMessage) ([]byte, error)
	// handle handles a message. It is called in order and must not block.
	handle(channel, payload string)
}

// adapter implements socketio.Adapter for one namespace. start makes it and its goroutines, which end with Close:
// one publishes, one runs jobs, one subscribes to the channels of the node, and each connection of subs has its own.
//
// What a node publishes takes this way: format.appendBroadcast encodes it, pub sends it; on the other nodes, and with
// PublishOrdered here too, a subscriber receives it, and format.handle decodes it and gives it to local.
type adapter struct {
	local    socketio.Local
	client   redis.UniversalClient
	opts     Options
	uid      string
	format   format
	pub      *publisher
	subs     *subscriptions
	requests requests
	jobs     chan func(context.Context)

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup

	states sync.Mutex // guards the fields below; held while a callback runs, to keep their order
	lostAt time.Time  // earliest loss among the lost connections
	lost   int        // number of lost connections
}

// New returns a constructor for socketio.Options.Adapter. The client is a *redis.Client, for one server or
// sentinels, or a *redis.ClusterClient, for which Options.Sharded should be set. The caller closes it after
// the server. Except on a cluster, publishes use a separate client with the same options, as subscriptions
// always do, without its pool and hooks: go-redis must neither retry a publish nor replace a lost
// subscription without the adapter's knowledge.
func New(client redis.UniversalClient, opts Options) func(socketio.Local) socketio.Adapter {
	opts = opts.withDefaults()
	return func(local socketio.Local) socketio.Adapter { return start(client, opts, local) }
}

// start makes the adapter of a namespace and starts its goroutines, which end with Close.
func start(client redis.UniversalClient, opts Options, local socketio.Local) *adapter {
	ctx, cancel := context.WithCancel(context.Background())
	a := &adapter{
		local:    local,
		client:   client,
		opts:     opts,
		uid:      randomHex(8),
		jobs:     make(chan func(context.Context), maxJobs),
		requests: requests{pending: make(map[string]*request)},
		ctx:      ctx,
		cancel:   cancel,
	}
	if opts.Sharded {
		a.format = newSharded(a)
	} else {
		a.format = newClassic(a)
	}
	a.pub = newPublisher(client, opts, ctx.Done())
	a.wg.Go(a.pub.run)
	a.wg.Go(a.runJobs)
	a.subs = a.newSubscriptions()
	a.wg.Go(a.subscribeNode)
	return a
}

// subscribeNode subscribes to the channels that every node needs, whatever its rooms. It retries while the nodes
// of a cluster are unknown; a single server is awaited.
func (a *adapter) subscribeNode() {
	for backoff := minBackoff; a.ctx.Err() == nil; backoff = min(2*backoff, maxBackoff) {
		err := a.subs.acquire(a.ctx, a.format.channels()...)
		if err == nil {
			return
		}
		select {
		case <-a.ctx.Done():
		case <-time.After(backoff):
		}
	}
}

// newSubscriptions returns the subscriptions of this node: one connection, or one for each master of a cluster.
func (a *adapter) newSubscriptions() *subscriptions {
	s := &subscriptions{start: a.startSubscriber, nodes: make(map[string]*subscriber)}
	if cluster, ok := a.client.(*redis.ClusterClient); ok && a.opts.Sharded {
		s.cluster = cluster
		return s
	}
	s.only = a.startSubscriber(a.client, s.rehome)
	return s
}

// startSubscriber starts a connection for subscriptions, which ends with the adapter.
func (a *adapter) startSubscriber(client redis.UniversalClient, rehome func(*subscriber)) *subscriber {
	_, isCluster := a.client.(*redis.ClusterClient)
	s := &subscriber{
		client:  client,
		sharded: a.opts.Sharded,
		// a cluster requires that the sharded channels of one command belong to one slot
		onePerCommand: isCluster && a.opts.Sharded,
		health:        a.opts.HealthInterval,
		logger:        a.opts.Logger,
		handle:        a.format.handle,
		onState:       a.onState,
		kick:          make(chan struct{}, 1),
		channels:      make(map[string]*subscription),
	}
	s.rehome = func() { rehome(s) }
	s.lastSeen.Store(time.Now().UnixNano())
	a.wg.Go(func() { s.run(a.ctx) })
	return s
}

// onState combines the states of all connections: OnReconnect is called when all are connected. The callbacks
// are called one at a time, in the order of the events.
func (a *adapter) onState(connected bool, at time.Time) {
	a.states.Lock()
	defer a.states.Unlock()
	if a.ctx.Err() != nil {
		return
	}
	if connected {
		a.lost--
		if a.lost == 0 {
			a.opts.OnReconnect(a.local.Name(), a.lostAt)
		}
		return
	}
	if a.lost == 0 || at.Before(a.lostAt) {
		a.lostAt = at
	}
	a.lost++
	a.opts.OnDisconnect(a.local.Name())
}

// Publish implements socketio.Adapter.
func (a *adapter) Publish(ctx context.Context, b *socketio.Broadcast) error {
	return a.pub.publish(ctx, func(dst []byte) (string, []byte, error) {
		return a.format.appendBroadcast(dst, a.uid, b)
	})
}

// PublishOrdered implements socketio.OrderedAdapter: Redis sends the messages of a channel to all subscribers
// in the same order, and with emitterUID as the sender this node accepts them too.
func (a *adapter) PublishOrdered(ctx context.Context, batch []*socketio.Broadcast) []error {
	return a.pub.publishAll(ctx, len(batch), func(i int, dst []byte) (string, []byte, error) {
		return a.format.appendBroadcast(dst, emitterUID, batch[i])
	})
}

// publish sends an encoded message.
func (a *adapter) publish(ctx context.Context, channel string, payload []byte) error {
	return a.pub.publish(ctx, func(dst []byte) (string, []byte, error) { return channel, append(dst, payload...), nil })
}

// Subscribe implements socketio.Adapter.
func (a *adapter) Subscribe(ctx context.Context, rooms ...string) error {
	return a.subs.acquire(ctx, a.roomChannels(rooms)...)
}

// Unsubscribe implements socketio.Adapter.
func (a *adapter) Unsubscribe(rooms ...string) {
	a.subs.release(a.roomChannels(rooms)...)
}

// roomChannels returns the channels of rooms that have one of their own.
func (a *adapter) roomChannels(rooms []string) []string {
	names := make([]string, 0, len(rooms))
	for _, room := range rooms {
		if name, hasChannel := a.format.roomChannel(room); hasChannel {
			names = append(names, name)
		}
	}
	return names
}

// Command implements socketio.Adapter.
func (a *adapter) Command(ctx context.Context, c socketio.Command) error {
	payload, err := a.format.encodeCommand(c)
	if err != nil {
		return err
	}
	return a.publish(ctx, a.format.requestChannel(), payload)
}

// ServerSideEmit implements socketio.Adapter.
func (a *adapter) ServerSideEmit(ctx context.Context, data json.RawMessage) error {
	payload, err := a.format.encodeServerSide(data)
	if err != nil {
		return err
	}
	return a.publish(ctx, a.format.requestChannel(), payload)
}

// Close implements socketio.Adapter.
func (a *adapter) Close() error {
	a.cancel()
	a.wg.Wait()
	return nil
}

// later queues a job that may block; jobs run one at a time. If the queue is full the job is dropped: the
// requesting node has a timeout.
func (a *adapter) later(job func(context.Context)) {
	select {
	case a.jobs <- job:
	default:
		a.opts.Logger.Warn("request of another node dropped", "namespace", a.local.Name())
	}
}

// runJobs runs the requests of other nodes, one at a time, until the adapter is closed.
func (a *adapter) runJobs() {
	for {
		select {
		case <-a.ctx.Done():
			return
		case job := <-a.jobs:
			job(a.ctx)
		}
	}
}

// randomHex returns n random bytes in hexadecimal: node ids and request ids need no more than to be unique.
func randomHex(n int) string {
	b := make([]byte, n)
	rand.Read(b) // never fails
	return hex.EncodeToString(b)
}
