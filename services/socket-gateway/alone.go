package socketgateway

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/parley-chat/parley/pkg/bus"
)

// helloRetry is how soon a gateway announces itself again if NATS did not take the announcement.
const helloRetry = time.Second

var errNotAlone = errors.New("another socket-gateway is running; set the same REDIS_URL for all of them, or run only one")

// hello is how a gateway announces itself.
type hello struct {
	ID        string    `json:"id"`
	StartedAt time.Time `json:"startedAt"`
	Alone     bool      `json:"alone"` // it has no Redis, so its emits do not reach the sockets of others
}

// before reports whether h started before other; ids decide between equal times.
func (h hello) before(other hello) bool {
	if c := h.StartedAt.Compare(other.StartedAt); c != 0 {
		return c < 0
	}
	return h.ID < other.ID
}

// stayAlone returns errNotAlone as soon as this gateway hears of an earlier one while one of the two has no Redis: the replies
// would reach only a part of the sockets. Otherwise it returns nil when ctx is done.
//
// A gateway that hears of a later one announces itself again, so that the later one stops.
func stayAlone(ctx context.Context, b *bus.Bus, own hello) error {
	heard := make(chan hello, 16)
	stop, err := b.OnHello(serviceName, func(text []byte) {
		var h hello
		if json.Unmarshal(text, &h) != nil || h.ID == own.ID {
			return
		}
		select {
		case heard <- h:
		default: // many start at once; each announces itself again until it is heard or stops
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
				announce.Reset(helloRetry)
			}
		case h := <-heard:
			if !own.Alone && !h.Alone {
				continue
			}
			if h.before(own) {
				return errNotAlone
			}
			announce.Reset(0)
		}
	}
}
