package bus

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
)

const (
	// headerPin carries the id of the pinned replica, the only one that receives this consumer's deliveries (priority policy
	// pinned_client, NATS ADR-42).
	headerPin     = "Nats-Pin-Id"
	priorityGroup = "parley"
)

var (
	errSilent        = errors.New("no message or heartbeat from the consumer")
	errConsumerGone  = errors.New("consumer deleted")
	errRepartitioned = errors.New("the number of partitions has changed")
)

// puller sends pull requests and handles their status messages. It is not safe for concurrent use.
type puller struct {
	conn      *nats.Conn
	subject   string // of the consumer's pull requests
	inbox     string
	batch     int
	expires   time.Duration // lifetime of a request
	requested int           // deliveries requested and not received yet
	pin       string
	shared    bool // by all replicas, without a pin

	hasRoom   func() bool     // whether the limits allow more deliveries
	freed     *signal         // sent when there may be room again
	postponed <-chan struct{} // closed when there may be room for a postponed request; nil: none postponed
}

// pullRequest is the pull request of the JetStream API.
type pullRequest struct {
	Batch     int           `json:"batch"`
	Expires   time.Duration `json:"expires"`
	Heartbeat time.Duration `json:"idle_heartbeat"`
	NoWait    bool          `json:"no_wait,omitempty"` // end the request when no more messages are available
	Group     string        `json:"group,omitempty"`
	Pin       string        `json:"id,omitempty"`
}

func (p *puller) heartbeat() time.Duration { return p.expires / 3 }

// silenceTimeout is how long the server may be silent before the session counts as broken.
func (p *puller) silenceTimeout() time.Duration { return p.expires + p.heartbeat() }

// request tops the requested deliveries up to a full batch, or postpones that until there is room.
func (p *puller) request() error {
	freed := p.freed.wait()
	if !p.hasRoom() {
		p.postponed = freed
		return nil
	}
	p.postponed = nil
	group := priorityGroup
	if p.shared {
		group = ""
	}
	data, err := json.Marshal(pullRequest{
		Batch: p.batch - p.requested, Expires: p.expires, Heartbeat: p.heartbeat(), Group: group, Pin: p.pin,
	})
	if err != nil {
		return fmt.Errorf("encoding the pull request: %w", err)
	}
	if err := p.conn.PublishRequest(p.subject, p.inbox, data); err != nil {
		return fmt.Errorf("sending a pull request: %w", err)
	}
	p.requested = p.batch
	return nil
}

// restart discards the count of requested deliveries and requests a full batch.
func (p *puller) restart() error {
	p.requested = 0
	return p.request()
}

// countDelivery counts a delivery, and requests more before the server has no request left.
func (p *puller) countDelivery(pin string) error {
	if pin != "" {
		p.pin = pin
	}
	p.requested = max(0, p.requested-1)
	if p.requested > p.batch/2 || p.postponed != nil {
		return nil
	}
	return p.request()
}

// status handles a status message. An error ends the session.
func (p *puller) status(m *nats.Msg) error {
	switch m.Header.Get("Status") {
	case "100": // heartbeat
		return nil
	case "503":
		return errConsumerGone
	case "423": // another replica is pinned or may be: wait in standby
		if p.pin == "" {
			return nil
		}
		p.pin = ""
		return p.restart()
	case "408", "404": // request expired
		return p.expired(m)
	case "409":
		return p.terminated(m)
	}
	return fmt.Errorf("pull request rejected: %s %s", m.Header.Get("Status"), m.Header.Get("Description"))
}

func (p *puller) expired(m *nats.Msg) error {
	left, err := strconv.Atoi(m.Header.Get("Nats-Pending-Messages"))
	if err != nil {
		left = p.batch
	}
	p.requested = max(0, p.requested-left)
	if p.requested > p.batch/2 || p.postponed != nil {
		return nil
	}
	return p.request()
}

// terminated handles a request that the server has terminated: its batch is complete, the consumer was deleted, or its leader is moving.
func (p *puller) terminated(m *nats.Msg) error {
	if m.Header.Get("Description") == "Batch Completed" {
		return nil
	}
	return fmt.Errorf("%w: %s", errConsumerGone, m.Header.Get("Description"))
}
