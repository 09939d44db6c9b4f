package socketgateway

// Without Redis, events reach only the sockets of the gateway that reads them, so that a second one must not
// run.
// service.go runs the check.

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/parley-chat/parley/pkg/rpc"
	"github.com/parley-chat/parley/proto-events/subject"
)

// announceRetry is the pause before a failed announcement is retried.
const announceRetry = time.Second

var errOtherReplica = errors.New(
	"another socket-gateway is running; set the same REDIS_URL for all of them, or run only one",
)

// announcement is the announcement of a gateway.
type announcement struct {
	ID        string    `json:"id"`
	StartedAt time.Time `json:"startedAt"`
	Alone     bool      `json:"alone"` // without Redis: its emits do not reach the sockets of other gateways
}

// Subject implements [rpc.Announcement].
func (a announcement) Subject() string { return subject.Replica(serviceName) }

// AppendJSON implements [rpc.Announcement].
func (a announcement) AppendJSON(dst []byte) []byte {
	text, _ := json.Marshal(a) // texts and a time: always encodes
	return append(dst, text...)
}

// before reports whether a started before other; equal times are ordered by id.
func (a announcement) before(other announcement) bool {
	c := a.StartedAt.Compare(other.StartedAt)
	if c != 0 {
		return c < 0
	}
	return a.ID < other.ID
}

// requireSingleReplica returns errOtherReplica when it receives the announcement of an earlier gateway and either
// of the two has no Redis: replies would reach only some of the sockets. Otherwise it returns nil when ctx is done.
//
// On the announcement of a later gateway it announces itself again, so that the later one stops.
func requireSingleReplica(ctx context.Context, c *rpc.Conn, own announcement) error {
	heard := make(chan announcement, 16)
	stop, err := rpc.Listen(c, own.Subject(), "", rpc.DecodeJSON[announcement], func(other announcement) {
		if other.ID == own.ID {
			return
		}
		select {
		case heard <- other:
		default: // many gateways start at once; each repeats its announcement until it is received or the gateway stops
		}
	})
	if err != nil {
		return err
	}
	defer stop()
	announce := time.NewTimer(0)
	defer announce.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-announce.C:
			if c.Announce(ctx, own) != nil {
				announce.Reset(announceRetry)
			}
		case other := <-heard:
			if !own.Alone && !other.Alone {
				continue // Redis connects them
			}
			if other.before(own) {
				return errOtherReplica
			}
			announce.Reset(0)
		}
	}
}
