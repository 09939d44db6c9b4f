package bus

// The pull requests of consume_reader.go, and the errors that end its session.

import (
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

const (
	// headerPin carries the id of the pinned replica, the only one that receives this consumer's deliveries
	// (priority policy pinned_client, NATS ADR-42).
	headerPin     = "Nats-Pin-Id"
	priorityGroup = "parley"
)

var (
	errSilent        = errors.New("no message or heartbeat from the consumer")
	errConsumerGone  = errors.New("consumer deleted")
	errRepartitioned = errors.New("the number of partitions has changed")
)

// pull requests a batch of deliveries. They are received one at a time until the batch is complete or stopped.
//
// The batches limit what a partition holds: no other one is pulled while the group has no room. To stop
// pulling in the middle of a batch instead would lose deliveries in a NATS cluster, because the consumer's
// server still sends some when the subscription is gone (docs/decisions/0004-delivery.md).
func (r *partitionReader) pull(consumer jetstream.Consumer) (jetstream.ConsumeContext, error) {
	options := []jetstream.PullConsumeOpt{
		jetstream.StopAfter(r.batch), jetstream.PullMaxMessages(r.batch),
		jetstream.PullExpiry(pullExpires), jetstream.PullHeartbeat(pullExpires / 3),
		jetstream.ConsumeErrHandler(func(_ jetstream.ConsumeContext, err error) {
			if errors.Is(err, jetstream.ErrPinIDMismatch) { // another replica is pinned or may be: wait in standby
				r.pinned.Store(false)
				return
			}
			r.fail(err)
		}),
	}
	if !r.durable.shared {
		options = append(options, jetstream.PullPriorityGroup(priorityGroup))
	}
	batch, err := consumer.Consume(r.receive, options...)
	if err != nil {
		return nil, fmt.Errorf("pulling a batch: %w", err)
	}
	return batch, nil
}

// fail ends the session with an error.
func (r *partitionReader) fail(err error) {
	select {
	case r.failed <- err:
	default: // it ends already
	}
}

// stopPulling stops a batch and waits until the deliveries that have arrived are received.
func (r *partitionReader) stopPulling(batch jetstream.ConsumeContext) {
	stopped := batch.Closed()
	if r.group.bus.conn.IsConnected() {
		batch.Drain()
	} else {
		batch.Stop() // no more arrive, and draining would wait for the server
	}
	select {
	case <-stopped:
	case <-time.After(releaseLimit):
	}
}
