package redisadapter

// Publishing in order, many messages a round trip. adapter.go calls it for broadcasts, requests and
// responses.

import (
	"cmp"
	"context"
	"errors"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// maxBatch is the maximum number of publications in one round trip.
const maxBatch = 256

// errClosed is returned if the adapter is closed.
var errClosed = errors.New("redisadapter: closed")

// maxKept is the maximum size of a buffer that is reused.
const maxKept = 256 << 10

// publisher sends messages in call order. Messages published during a round trip share the
// next one. It is safe for concurrent use; run sends what publish queues, until closed.
type publisher struct {
	client     redis.UniversalClient
	ownsClient bool   // the publisher created the client and closes it
	command    string // PUBLISH or SPUBLISH
	timeout    time.Duration
	mu         sync.Mutex // held during a round trip
	queue      chan *publication
	closed     <-chan struct{}
	unused     sync.Pool // of *publication
}

// encodeFunc appends a message's payload to dst.
type encodeFunc func(dst []byte) (channel string, payload []byte, err error)

// publication is a group of messages published together. It is pooled with its buffers.
type publication struct {
	messages []message
	payloads []byte // of all messages, concatenated
	done     chan struct{}
}

// message is one message of a publication: a part of payloads, and the result.
type message struct {
	channel    string
	start, end int   // in payloads
	err        error // from the encoding or the publish
}

// each calls fn for the messages without an error.
func (p *publication) each(fn func(m *message, payload []byte)) {
	for i := range p.messages {
		m := &p.messages[i]
		if m.err == nil {
			fn(m, p.payloads[m.start:m.end])
		}
	}
}

// add encodes a message. One that cannot be encoded keeps its error and is not sent.
func (p *publication) add(encode encodeFunc) {
	start := len(p.payloads)
	channel, payloads, err := encode(p.payloads)
	if err == nil {
		p.payloads = payloads
	}
	p.messages = append(p.messages, message{channel: channel, start: start, end: len(p.payloads), err: err})
}

// errors returns nil if all messages were sent, otherwise one error or nil for each message, in order.
func (p *publication) errors() (errs []error) {
	for i, m := range p.messages {
		if m.err != nil && errs == nil {
			errs = make([]error, len(p.messages))
		}
		if m.err != nil {
			errs[i] = m.err
		}
	}
	return errs
}

// newPublisher returns a publisher with a client of its own, except on a cluster, whose client knows the
// slots.
func newPublisher(client redis.UniversalClient, opts Options, closed <-chan struct{}) *publisher {
	p := &publisher{
		client:  client,
		command: "PUBLISH",
		timeout: opts.PublishTimeout,
		queue:   make(chan *publication, maxBatch),
		closed:  closed,
	}
	if opts.Sharded {
		p.command = "SPUBLISH"
	}
	if single, ok := client.(*redis.Client); ok {
		p.client = redis.NewClient(publishOptions(*single.Options()))
		p.ownsClient = true
	}
	p.unused.New = func() any { return &publication{done: make(chan struct{}, 1)} }
	return p
}

// publishOptions returns the options of the caller's client without retries: a message sent twice would be
// delivered twice.
func publishOptions(o redis.Options) *redis.Options {
	o.MaxRetries = -1
	o.ContextTimeoutEnabled = true
	o.MinIdleConns = 0
	o.MaxIdleConns = 2
	// a copy: the original belongs to the caller's client
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	return &o
}

// roundTrip sends messages and records the result of each. Callers must hold mu.
func (p *publisher) roundTrip(batch []*publication) {
	ctx, cancel := context.WithTimeout(context.Background(), p.timeout)
	defer cancel()
	pipe := p.client.Pipeline()
	for _, pub := range batch {
		pub.each(func(m *message, payload []byte) { pipe.Do(ctx, p.command, m.channel, payload) })
	}
	results, err := pipe.Exec(ctx)
	if slices.ContainsFunc(results, func(r redis.Cmder) bool { return r.Err() != nil }) {
		err = nil // the messages have their own errors
	}
	for _, pub := range batch {
		pub.each(func(m *message, _ []byte) {
			m.err = cmp.Or(err, results[0].Err()) // after a failed connect no command has an error
			results = results[1:]                 // in the order of the commands
		})
	}
}

// publish encodes a message and returns when Redis has accepted it. If ctx ends first, the message may or may
// not be sent.
func (p *publisher) publish(ctx context.Context, encode encodeFunc) error {
	pub := p.unused.Get().(*publication)
	pub.add(encode)
	errs := p.send(ctx, pub)
	if errs != nil {
		return errs[0]
	}
	return nil
}

// publishAll publishes n messages together. It returns nil if all were accepted, otherwise one error or nil
// for each. They are sent by the calling goroutine: a batch is worth its own round trip and saves a goroutine
// switch. publishAll may outlast ctx, up to the timeout of a round trip, or of two if another one is in
// progress.
func (p *publisher) publishAll(
	ctx context.Context,
	n int,
	encode func(i int, dst []byte) (string, []byte, error),
) []error {
	pub := p.unused.Get().(*publication)
	for i := range n {
		pub.add(func(dst []byte) (string, []byte, error) { return encode(i, dst) })
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.usable(ctx); err != nil {
		return pub.failed(err)
	}
	p.roundTrip([]*publication{pub})
	errs := pub.errors()
	p.reuse(pub)
	return errs
}

// usable returns an error if nothing may be sent any more.
func (p *publisher) usable(ctx context.Context) error {
	select {
	case <-p.closed:
		return errClosed
	default:
		return ctx.Err()
	}
}

// sendBatch sends publications in one round trip, after those of publishAll that are in progress.
func (p *publisher) sendBatch(batch []*publication) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.roundTrip(batch)
}

// close waits for the round trip in progress and closes the publisher's own client.
func (p *publisher) close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ownsClient {
		_ = p.client.Close()
	}
}

// send queues a publication and waits for its results. If it returns early, run may still use the
// publication, which is not reused.
func (p *publisher) send(ctx context.Context, pub *publication) []error {
	select {
	case p.queue <- pub:
	case <-ctx.Done():
		return pub.failed(ctx.Err())
	case <-p.closed:
		return pub.failed(errClosed)
	}
	select {
	case <-pub.done:
		errs := pub.errors()
		p.reuse(pub)
		return errs
	case <-ctx.Done():
		return pub.failed(ctx.Err())
	case <-p.closed:
		return pub.failed(errClosed)
	}
}

// failed returns err for each message. It does not change the messages, which run may still use.
func (p *publication) failed(err error) []error {
	errs := make([]error, len(p.messages))
	for i := range errs {
		errs[i] = err
	}
	return errs
}

// reuse returns a publication that nobody uses any more to the pool, unless its buffer has grown too large.
func (p *publisher) reuse(pub *publication) {
	if cap(pub.payloads) > maxKept {
		return
	}
	clear(pub.messages)
	pub.messages = pub.messages[:0]
	pub.payloads = pub.payloads[:0]
	p.unused.Put(pub)
}

// run sends queued publications until the adapter is closed. It wakes each publisher when the results are there.
func (p *publisher) run() {
	defer p.close()
	batch := make([]*publication, 0, maxBatch)
	for {
		select {
		case <-p.closed:
			return
		case pub := <-p.queue:
			batch = p.gather(append(batch[:0], pub))
			p.sendBatch(batch)
			for i, pub := range batch {
				batch[i] = nil
				pub.done <- struct{}{}
			}
		}
	}
}

// gather adds the queued publications to batch. It first lets concurrent publishers run, which is far cheaper
// than another round trip.
func (p *publisher) gather(batch []*publication) []*publication {
	runtime.Gosched()
	for len(batch) < maxBatch {
		select {
		case pub := <-p.queue:
			batch = append(batch, pub)
		default:
			return batch
		}
	}
	return batch
}
