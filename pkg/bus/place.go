package bus

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/parley-chat/parley/pkg/apperr"
)

// Place is how far a reader outside of this process has read a stream, for example a browser. A reader gets messages
// that are not on the disk yet. After a power cut the stream uses their sequences again, which only their time tells.
type Place struct {
	Sequence uint64
	// Time is not before the stream stored the message at Sequence, and before any message that the reader does not know.
	Time time.Time
}

// Place returns the place of a delivery.
func (d Delivery) Place() Place { return Place{d.Sequence, d.Time} }

// Holds reports whether a stream still has at a place what the reader got, up to a millisecond: false if it has lost
// that and has used the sequence again. What has expired or was erased counts as held. It returns Unavailable while
// NATS is disconnected.
func (b *Bus) Holds(ctx context.Context, stream string, at Place) (bool, error) {
	if at.Sequence == 0 {
		return true, nil
	}
	if !b.conn.IsConnected() {
		return false, apperr.Unreachable("NATS", nats.ErrDisconnected)
	}
	ctx, cancel := context.WithTimeout(ctx, lastTimeout)
	defer cancel()
	request, err := json.Marshal(directGet{Seq: at.Sequence})
	if err != nil {
		return false, err
	}
	m, err := b.getDirect(ctx, stream, request)
	if apperr.Is(err, apperr.NotFound) || errors.Is(err, nats.ErrNoResponders) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	d, err := directDelivery(stream, m)
	if err != nil {
		return false, err
	}
	return d.Time.UnixMilli() <= at.Time.UnixMilli(), nil
}
