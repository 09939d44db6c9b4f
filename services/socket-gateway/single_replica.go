package socketgateway

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/parley-chat/parley/pkg/bus"
)

// helloRetry is the pause before a failed announcement is retried.
const announceRetry = time.Second

var errOtherReplica = errors.New(
	"another socket-gateway is running; set the same REDIS_URL for all of them, or run only one",
)

// hello is the announcement of a gateway.
type announcement struct {
	ID        string    `json:"id"`
	StartedAt time.Time `json:"startedAt"`
	Alone     bool      `json:"alone"` // without Redis: its emits do not reach the sockets of other gateways
}

// before reports whether h started before other; equal times are ordered by id.
func (h announcement) before(other announcement) bool {
	if c := h.StartedAt.Compare(other.StartedAt); c != 0 {
		return c < 0
	}
	return h.ID < other.ID
}

// stayAlone returns errNotAlone when it receives the hello of an earlier gateway and either of the two has no
// Redis: replies would reach only some of the sockets. Otherwise it returns nil when ctx is done.
//
// On the hello of a later gateway it announces itself again, so that the later one stops.
func requireSingleReplica(ctx context.Context, b *bus.Bus, own announcement) error {
	heard := make(chan announcement, 16)
	stop, err := b.OnHello(serviceName, func(text []byte) {
		var h announcement
		if json.Unmarshal(text, &h) != nil || h.ID == own.ID {
			return
		}
		select {
		case heard <- h:
		default: // many gateways start at once; each repeats its hello until it is received or the gateway stops
		}
	})
	if err != nil {
		return err
	}
	defer stop()
	text, err := json.Marshal(own)
	if err != nil {
		return err
	}
	announce := time.NewTimer(0)
	defer announce.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-announce.C:
			if b.Hello(ctx, serviceName, text) != nil {
				announce.Reset(announceRetry)
			}
		case h := <-heard:
			if !own.Alone && !h.Alone {
				continue
			}
			if h.before(own) {
				return errOtherReplica
			}
			announce.Reset(0)
		}
	}
}
