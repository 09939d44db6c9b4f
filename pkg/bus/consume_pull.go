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
	// headerPin names the one replica that the server sends this consumer's deliveries to (priority policy pinned_client,
	// JetStream ADR-42).
	headerPin     = "Nats-Pin-Id"
	priorityGroup = "parley"
)

var (
	errSilent        = errors.New("the consumer is silent")
	errConsumerGone  = errors.New("the consumer does not exist any more")
	errRepartitioned = errors.New("the stream has another number of partitions")
)

// puller asks the server for deliveries and understands its answers. It belongs to one goroutine.
type puller struct {
	conn    *nats.Conn
	subject string // of the consumer's pull requests
	inbox   string
	batch   int
	expires time.Duration // of a request
	asked   int           // deliveries that are asked for and not here
	pin     string
	shared  bool // by several replicas: none is pinned

	hasRoom   func() bool     // for more deliveries here
	freed     *signal         // there may be room again
	postponed <-chan struct{} // closes when there may be room for what was not asked for; nil: nothing was postponed
}

// pullRequest is JetStream's request for deliveries.
type pullRequest struct {
	Batch     int           `json:"batch"`
	Expires   time.Duration `json:"expires"`
	Heartbeat time.Duration `json:"idle_heartbeat"`
	NoWait    bool          `json:"no_wait,omitempty"` // the request ends when it has brought some and there are no more
	Group     string        `json:"group,omitempty"`
	Pin       string        `json:"id,omitempty"`
}

func (p *puller) heartbeat() time.Duration { return p.expires / 3 }

// patience is how long the server may be silent before something must be wrong.
func (p *puller) patience() time.Duration { return p.expires + p.heartbeat() }

// ask requests what is missing to a full batch, or postpones that until there is room.
func (p *puller) ask() error {
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
	request, err := json.Marshal(pullRequest{
		Batch: p.batch - p.asked, Expires: p.expires, Heartbeat: p.heartbeat(), Group: group, Pin: p.pin,
	})
	if err != nil {
		return fmt.Errorf("encoding the pull request: %w", err)
	}
	if err := p.conn.PublishRequest(p.subject, p.inbox, request); err != nil {
		return fmt.Errorf("asking for deliveries: %w", err)
	}
	p.asked = p.batch
	return nil
}

// again forgets what was asked for, and asks anew.
func (p *puller) again() error {
	p.asked = 0
	return p.ask()
}

// count counts a delivery, and requests more before the server runs out of requests.
func (p *puller) count(pin string) error {
	if pin != "" {
		p.pin = pin
	}
	p.asked = max(0, p.asked-1)
	if p.asked > p.batch/2 || p.postponed != nil {
		return nil
	}
	return p.ask()
}

// status acts on an answer that is no delivery. An error ends the session.
func (p *puller) status(m *nats.Msg) error {
	switch m.Header.Get("Status") {
	case "100": // a sign of life
		return nil
	case "503":
		return errConsumerGone
	case "423": // another replica has taken over, or may: stand by for its end
		if p.pin == "" {
			return nil
		}
		p.pin = ""
		return p.again()
	case "408", "404": // a request has expired
		return p.expired(m)
	case "409":
		return p.ended(m)
	}
	return fmt.Errorf("the server refused a request: %s %s", m.Header.Get("Status"), m.Header.Get("Description"))
}

func (p *puller) expired(m *nats.Msg) error {
	left, err := strconv.Atoi(m.Header.Get("Nats-Pending-Messages"))
	if err != nil {
		left = p.batch
	}
	p.asked = max(0, p.asked-left)
	if p.asked > p.batch/2 || p.postponed != nil {
		return nil
	}
	return p.ask()
}

// ended is a request that the server has cut off: the consumer was deleted, or its leader is moving.
func (p *puller) ended(m *nats.Msg) error {
	if m.Header.Get("Description") == "Batch Completed" {
		return nil
	}
	return fmt.Errorf("%w: %s", errConsumerGone, m.Header.Get("Description"))
}
