package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/proto-events/subject"
)

const (
	defaultConcurrency   = 16
	defaultMaxAckPending = 1000
	defaultAckWait       = 3 * time.Second
	defaultMaxBatch      = 128

	// pullExpires is how long a request for deliveries waits at the server. Idle partitions cost a few messages in each.
	pullExpires = 15 * time.Second
	// pinnedTTL is longer: a reader that has died loses its partitions to replicas that notice, not to the server's clock.
	pinnedTTL = 2 * pullExpires

	apiTimeout   = 5 * time.Second
	releaseLimit = 2 * time.Second
)

// Delivery is one message of a stream on its way to a handler.
type Delivery struct {
	Stream   string
	Subject  string // on which it was published
	Data     []byte
	Header   nats.Header
	ID       string    // Nats-Msg-Id: the event's id
	Sequence uint64    // in its stream
	Time     time.Time // when the stream took it
	Attempt  int       // 1 at first; counts tries in place and redeliveries

	// TraceParent is the span in which a consumer handles the delivery, as a W3C traceparent, or, where no traces are kept,
	// what came with it; empty: nothing.
	TraceParent string
}

// Order is what order a consumer's deliveries need.
type Order int

const (
	// ByPartition keeps the deliveries of a key in order where a key lies in one partition: the subject is the key, or decides
	// it. Each partition has one reader at a time, and the partitions are spread over the replicas.
	ByPartition Order = iota
	// ByStream keeps the order of keys that subjects do not decide: one replica reads all, the others stand by.
	ByStream
	// Unordered deliveries go to any replica in any order.
	Unordered
)

// Consumer is a group of durable consumers of a stream, one for each partition, and what handles their deliveries.
type Consumer struct {
	Stream  string
	Durable string   // the group: replicas that use the same name share the deliveries
	Filters []string // subjects on which was published; empty: all of the stream
	Order   Order
	// Positions stores how far each partition has been handled instead of acknowledging each delivery (see consume_positions.go), at about half
	// of the cost in NATS. It suits handlers that end soon and may run twice for a delivery: after a crash, the deliveries of the last half
	// second are handled again. It requires ByPartition and starts at the stream's beginning.
	Positions bool
	// Handle handles a delivery; its error decides what becomes of it (see consume_disposition.go). It must be able to handle
	// the same delivery again. Its ctx is cancelled only when the bus closes, and carries the delivery's origin: the request and
	// the trace that it continues.
	Handle func(ctx context.Context, d Delivery) error
	// HandleBatch, in the place of Handle, handles deliveries of different keys together: all that wait, up to MaxBatch. It
	// returns an error for each, in their order, or nil when all are handled. Its ctx carries no origin, but each delivery has
	// its traceparent; where it panics it is called again, for each delivery alone.
	HandleBatch func(ctx context.Context, batch []Delivery) []error
	// MaxBatch is how many deliveries HandleBatch gets at most; 0: 128.
	MaxBatch int
	// GaveUp is called with a delivery that the consumer gives up on, before its dead letter is written and before the key's next delivery
	// is handled; nil: it is not called. Where it fails it is called again until it succeeds, also by another process, so it must be able
	// to do its work twice.
	GaveUp func(ctx context.Context, d Delivery) error
	// Key names what must stay in order; nil: the subject. It must not panic.
	Key func(Delivery) string
	// Concurrency is how many handlers run at once in this process; 0: 16. About four times as many deliveries, and at least
	// 4096, wait here for their turn; then no more are asked for.
	Concurrency int
	// MaxAckPending is how many deliveries of a partition may be out, waiting ones included; 0: 1000. When so many wait for
	// another try, the partition stands still.
	MaxAckPending int
	// MaxPause is the longest pause between two tries; 0: 5 seconds.
	MaxPause time.Duration
	// DeliverPolicy is where a consumer starts that did not exist before; the zero value is the stream's beginning.
	DeliverPolicy jetstream.DeliverPolicy
	// AckWait is after how long without a sign of life a delivery counts as lost with its process; 0: 3 seconds. Handlers may
	// take as long as they need.
	AckWait time.Duration
}

func (c Consumer) complete() (Consumer, error) {
	var faults []string
	need := func(ok bool, fault string) {
		if !ok {
			faults = append(faults, fault)
		}
	}
	need(subject.Valid(c.Stream), "Stream is missing or no token of a subject")
	need(subject.Valid(c.Durable), "Durable is missing or no token of a subject")
	need((c.Handle != nil) != (c.HandleBatch != nil), "one of Handle and HandleBatch is needed")
	need(!c.Positions || c.Order == ByPartition && c.DeliverPolicy == jetstream.DeliverAllPolicy, "Positions need ByPartition and DeliverAllPolicy")
	need(c.MaxBatch >= 0, "MaxBatch is negative")
	need(c.MaxPause >= 0, "MaxPause is negative")
	need(c.Concurrency >= 0, "Concurrency is negative")
	need(c.MaxAckPending >= 0, "MaxAckPending is negative")
	need(c.AckWait >= 0, "AckWait is negative")
	c.Concurrency = cmp.Or(c.Concurrency, defaultConcurrency)
	c.MaxAckPending = cmp.Or(c.MaxAckPending, defaultMaxAckPending)
	c.AckWait = cmp.Or(c.AckWait, defaultAckWait)
	c.MaxPause = cmp.Or(c.MaxPause, maxPause)
	c.MaxBatch = cmp.Or(c.MaxBatch, defaultMaxBatch)
	if c.HandleBatch == nil {
		c.MaxBatch = 1
	}
	if c.Key == nil {
		c.Key = func(d Delivery) string { return d.Subject }
	}
	if len(faults) > 0 {
		return c, errors.New(strings.Join(faults, "; "))
	}
	return c, nil
}

// slot is one durable consumer of a group.
type slot struct {
	name    string // of the durable
	number  int    // of the partition
	filters []string
	shared  bool // several replicas read it at once
}

// slots returns the consumers of a group on a stream with so many partitions.
func (c Consumer) slots(partitions int) []slot {
	switch {
	case c.Order == Unordered, c.Order == ByStream, partitions <= 1:
		filters := make([]string, len(c.Filters))
		for i, f := range c.Filters {
			filters[i] = subject.Stored(f, partitions)
		}
		return []slot{{name: c.Durable, filters: filters, shared: c.Order == Unordered}}
	}
	slots := make([]slot, partitions)
	for p := range slots {
		slots[p] = slot{name: partitionName(c.Durable, p), number: p}
		for _, f := range c.Filters {
			slots[p].filters = append(slots[p].filters, subject.InPartition(f, p))
		}
		if len(c.Filters) == 0 {
			slots[p].filters = []string{subject.InPartition(">", p)}
		}
	}
	return slots
}

// Metadata of the durable consumers, by which a group is found on the server.
const (
	metadataGroup     = "parley-group"
	metadataPartition = "parley-partition"
)

// partitionName is the name of a group's durable consumer for one partition.
func partitionName(group string, partition int) string { return group + "-" + strconv.Itoa(partition) }

func (c Consumer) config(s slot) jetstream.ConsumerConfig {
	config := jetstream.ConsumerConfig{
		Durable:        s.name,
		FilterSubjects: s.filters,
		DeliverPolicy:  c.DeliverPolicy,
		AckPolicy:      jetstream.AckExplicitPolicy,
		AckWait:        c.AckWait,
		MaxDeliver:     -1, // giving up is decided here (see consume_disposition.go), and leaves a letter in DEAD
		MaxAckPending:  c.MaxAckPending,
		Metadata:       map[string]string{metadataGroup: c.Durable},
	}
	if partition, ok := strings.CutPrefix(s.name, c.Durable+"-"); ok {
		config.Metadata[metadataPartition] = partition
	}
	if s.shared {
		config.MaxAckPending = max(config.MaxAckPending, sharedAckPending)
		return config
	}
	config.PriorityPolicy = jetstream.PriorityPolicyPinned
	config.PriorityGroups = []string{priorityGroup}
	config.PinnedTTL = pinnedTTL
	return config
}

// sharedAckPending is what all replicas together may have out of a consumer that they share.
const sharedAckPending = 20_000

// Consume handles deliveries until ctx is done, and then returns nil when all handlers that run have finished and their
// deliveries are acknowledged. It waits for NATS, creates the consumers, and survives restarts and deleted consumers by
// itself; it fails only for a wrong Consumer.
func (b *Bus) Consume(ctx context.Context, c Consumer) error {
	c, err := c.complete()
	if err != nil {
		return fmt.Errorf("bus: consumer %s: %w", c.Durable, err)
	}
	handlers, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(b.ctx, cancel)()
	newGroup(b, c, handlers).run(ctx)
	return nil
}
