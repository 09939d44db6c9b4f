package bus

// The settings of a consumer group, its durable consumers, and Consume, where everything of the consume_
// files begins.

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
	// tenantAckPending is the default of MaxAckPending for a consumer with tenants. It exceeds what one company's
	// visitors can add at once (pkg/budget: 24 MiB by default, 12,288 messages).
	tenantAckPending = 16_384
	defaultAckWait   = 3 * time.Second
	defaultMaxBatch  = 128

	// pullExpires is the lifetime of a pull request on the server. An idle partition costs a few messages per
	// pullExpires.
	pullExpires = 15 * time.Second
	// pinnedTTL is a fallback: normally another replica detects a dead reader first and unpins it.
	pinnedTTL = 2 * pullExpires

	apiTimeout   = 5 * time.Second
	releaseLimit = 2 * time.Second
)

// Delivery is a message of a stream.
type Delivery struct {
	Stream   string
	Subject  string // as published
	Data     []byte
	Header   nats.Header
	ID       string    // Nats-Msg-Id: the event's id
	Sequence uint64    // in the stream
	Time     time.Time // when the stream stored it
	Attempt  int       // starts at 1; counts redeliveries and retries within the process

	// TraceParent is the W3C traceparent of the consumer's processing span or, without a tracer, of the
	// message; empty: none.
	TraceParent string
}

// newDelivery returns the delivery of a message as its stream has stored it.
func newDelivery(stream string, stored *nats.Msg, sequence uint64, at time.Time) Delivery {
	return Delivery{
		Stream:   stream,
		Subject:  subject.Published(stored.Subject),
		Data:     stored.Data,
		Header:   stored.Header,
		ID:       stored.Header.Get(headerMsgID),
		Sequence: sequence,
		Time:     at.UTC(),
	}
}

// Order is the ordering guarantee of a consumer.
type Order int

const (
	// ByPartition handles each key in order if all its subjects map to the same partition. Each partition has
	// one reader at a time; the partitions are distributed over the replicas.
	ByPartition Order = iota
	// ByStream handles each key in order whatever its subjects: one replica reads the whole stream, the others
	// stand by.
	ByStream
	// Unordered deliveries go to any replica, in any order.
	Unordered
)

// Consumer configures a consumer group: durable JetStream consumers of a stream, one per partition, and the
// handlers of their deliveries.
type Consumer struct {
	Stream  string
	Durable string   // name of the group; replicas with the same name share the deliveries
	Filters []string // published subjects, wildcards allowed; empty: the whole stream
	Order   Order
	// Offsets saves an offset per partition instead of acknowledging each delivery (see
	// consume_offsets.go), which halves the load on NATS. Use it for short handlers that tolerate
	// duplicates: after a crash, the deliveries of the last half second are handled again. It requires
	// ByPartition.
	Offsets bool
	// Handle handles a delivery; its error decides the disposition (see consume_disposition.go). It must be
	// idempotent. Its ctx is cancelled only when the bus closes, and after HandoverGrace; it carries the
	// delivery's origin: request id and trace.
	Handle func(ctx context.Context, d Delivery) error
	// HandleBatch, instead of Handle, handles the waiting deliveries of different keys together, up to
	// MaxBatch. It returns an error per delivery, in their order, or nil if all were handled. Its ctx carries
	// no origin; see Delivery.TraceParent. If it panics, it is called again for each delivery separately.
	HandleBatch func(ctx context.Context, batch []Delivery) []error
	// MaxBatch is the maximum number of deliveries per call of HandleBatch; 0: 128.
	MaxBatch int
	// GaveUp is called when the consumer gives up on a delivery, before the dead letter is published and
	// before the next delivery of the key is handled; nil: not called. It is retried until it succeeds,
	// possibly by another process, so it must be idempotent.
	GaveUp func(ctx context.Context, d Delivery) error
	// Key returns the ordering key of a delivery; nil: the subject. It must not panic.
	Key func(Delivery) string
	// Tenant returns whose work a delivery is; nil: the deliveries have no tenants. Tenants share Concurrency:
	// a delivery is handled only while its tenant has fewer running handlers than are free, and does not hold
	// up other tenants while it waits. Deliveries that wait here count against MaxAckPending, which therefore is
	// larger by default. It must be the same for all deliveries of a key, requires Handle, and must not panic.
	Tenant func(Delivery) string
	// Part returns the part of the tenant whose work a delivery is, such as one of its applications; nil: tenants have no
	// parts. The parts of a tenant divide what it gets of Concurrency. It must be the same for all deliveries of a key,
	// requires Tenant, and must not panic.
	Part func(Delivery) string
	// ShedLoad lets the group give up on deliveries when it has held as much as it may for 5 seconds: the newest waiting
	// ones of the tenants that hold the most, and of these of their largest parts, until no tenant holds more than is
	// free, and a quarter is free. Otherwise the later deliveries of other tenants would wait in the stream. It is for
	// handlers that a tenant can make slow, and requires Tenant.
	ShedLoad bool
	// HandoverGrace is how long a running handler may continue after its partition is assigned to another
	// replica or Consume is stopped; then its ctx is cancelled, and the next reader handles the delivery again.
	// 0: until it returns.
	HandoverGrace time.Duration
	// Concurrency is the number of handlers that run concurrently in this process; 0: 16.
	Concurrency int
	// MaxAckPending is the maximum number of unacknowledged deliveries per partition, including those waiting
	// here; 0: 1000, or 16384 with Tenant. If that many wait for a retry, the partition stalls. The process stops
	// pulling at as many deliveries of all partitions, or at 2048 (minHeld) or twice Concurrency if that is more, and
	// at 32 MiB (maxHeldBytes). The batches that were requested by then come on top (mostRequested): 512 deliveries, or 16
	// a partition if that is more.
	MaxAckPending int
	// MaxPause is the maximum delay between two tries; 0: 5 seconds.
	MaxPause time.Duration
	// Replicas gets the number of processes that share the partitions, while Consume runs; nil: it is not needed. Unordered
	// consumers do not know it.
	Replicas *Replicas
	// AckWait is the time without a progress acknowledgement after which the server redelivers; 0: 3 seconds.
	// It does not limit handlers.
	AckWait time.Duration
}

// complete returns the consumer with its defaults, or an error that names everything invalid.
func (c Consumer) complete() (Consumer, error) {
	var faults []string
	need := func(ok bool, fault string) {
		if !ok {
			faults = append(faults, fault)
		}
	}
	need(subject.Valid(c.Stream), "Stream is missing or not a valid subject token")
	need(subject.Valid(c.Durable), "Durable is missing or not a valid subject token")
	need((c.Handle != nil) != (c.HandleBatch != nil), "exactly one of Handle and HandleBatch is required")
	need(!c.Offsets || c.Order == ByPartition, "Offsets requires ByPartition")
	need(c.Tenant == nil || c.Handle != nil, "Tenant requires Handle")
	need(c.Part == nil || c.Tenant != nil, "Part requires Tenant")
	need(!c.ShedLoad || c.Tenant != nil, "ShedLoad requires Tenant")
	need(c.MaxBatch >= 0, "MaxBatch is negative")
	need(c.HandoverGrace >= 0, "HandoverGrace is negative")
	need(c.MaxPause >= 0, "MaxPause is negative")
	need(c.Concurrency >= 0, "Concurrency is negative")
	need(c.MaxAckPending >= 0, "MaxAckPending is negative")
	need(c.AckWait >= 0, "AckWait is negative")
	c.Concurrency = cmp.Or(c.Concurrency, defaultConcurrency)
	if c.Tenant != nil {
		c.MaxAckPending = cmp.Or(c.MaxAckPending, tenantAckPending)
	}
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

// shareOf returns whose a delivery is; the zero value: the consumer has no tenants.
func (c Consumer) shareOf(d Delivery) (of shareKey) {
	if c.Tenant != nil {
		of.tenant = c.Tenant(d)
	}
	if c.Part != nil {
		of.part = c.Part(d)
	}
	return of
}

// durable is one durable consumer of a group.
type durable struct {
	name    string // of the durable
	number  int    // of the partition
	filters []string
	shared  bool // all replicas read it concurrently
}

// durables returns the group's durable consumers for a stream with n partitions.
func (c Consumer) durables(partitions int) []durable {
	switch {
	case c.Order == Unordered, c.Order == ByStream, partitions <= 1:
		filters := make([]string, len(c.Filters))
		for i, f := range c.Filters {
			filters[i] = subject.Stored(f, partitions)
		}
		return []durable{{name: c.Durable, filters: filters, shared: c.Order == Unordered}}
	}
	durables := make([]durable, partitions)
	for p := range durables {
		durables[p] = durable{name: partitionName(c.Durable, p), number: p}
		for _, f := range c.Filters {
			durables[p].filters = append(durables[p].filters, subject.InPartition(f, p))
		}
		if len(c.Filters) == 0 {
			durables[p].filters = []string{subject.InPartition(">", p)}
		}
	}
	return durables
}

// Metadata keys by which the consumers of a group are found on the server.
const (
	metadataGroup     = "parley-group"
	metadataPartition = "parley-partition"
)

// partitionName returns the name of a group's durable consumer for a partition.
func partitionName(group string, partition int) string { return group + "-" + strconv.Itoa(partition) }

// config returns the configuration of a durable consumer of the group.
func (c Consumer) config(d durable) jetstream.ConsumerConfig {
	config := jetstream.ConsumerConfig{
		Durable:        d.name,
		FilterSubjects: d.filters,
		DeliverPolicy:  jetstream.DeliverAllPolicy, // a new consumer starts at the beginning of the stream
		AckPolicy:      jetstream.AckExplicitPolicy,
		AckWait:        c.AckWait,
		MaxDeliver:     -1, // this package gives up (see consume_disposition.go) and publishes a dead letter
		MaxAckPending:  c.MaxAckPending,
		Metadata:       map[string]string{metadataGroup: c.Durable},
	}
	if partition, ok := strings.CutPrefix(d.name, c.Durable+"-"); ok {
		config.Metadata[metadataPartition] = partition
	}
	if d.shared {
		config.MaxAckPending = max(config.MaxAckPending, sharedAckPending)
		return config
	}
	config.PriorityPolicy = jetstream.PriorityPolicyPinned
	config.PriorityGroups = []string{priorityGroup}
	config.PinnedTTL = pinnedTTL
	return config
}

// sharedAckPending is the MaxAckPending of a shared consumer, across all replicas.
const sharedAckPending = 20_000

// Consume handles deliveries until ctx is done. It returns nil after all running handlers have finished and
// their deliveries are acknowledged. It waits for NATS, creates the consumers, and recovers from restarts and
// deleted consumers. It fails only if c is invalid.
func (b *Bus) Consume(ctx context.Context, c Consumer) error {
	c, err := c.complete()
	if err != nil {
		return fmt.Errorf("bus: consumer %s: %w", c.Durable, err)
	}
	handlerCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	defer context.AfterFunc(b.ctx, cancel)()
	newGroup(b, c, handlerCtx).run(ctx)
	return nil
}
