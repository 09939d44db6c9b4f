package realtime

// The bounds of recoveries: how many read the stream at once, and the bytes that they read. connect.go asks before it
// reads.

import (
	"context"
	"time"

	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/ratelimit"
	"github.com/parley-chat/parley/pkg/slot"
)

// A recovery reads on the connection to NATS that also carries the gateway's replies and heartbeats. Measured with two
// processors that the server shares; recoveries in a second, and the 99th percentile of a publish beside them:
//
//	at once   of two short replies   of 512 KiB
//	1         2,100/s, 2 ms          140/s, 4 ms
//	4         3,800/s, 4 ms          230/s, 10 ms
//	16        8,800/s, 3 ms          230/s, 56 ms
//	32        9,300/s, 6 ms          240/s, 104 ms
//	64        10,900/s, 11 ms        220/s, 278 ms
//
// From 16 on more at once are hardly faster, and only delay the replies. 300 large ones all timed out.
const (
	// recoveriesAtOnce is the parts of two companies, so that one company does not keep others from recovering.
	recoveriesAtOnce = 32
	// recoveriesOfCompany is enough for 10,000 clients of one company that reconnect after a restart. A gateway that
	// stops closes them over DRAIN_TIMEOUT (5 s), and each reconnects 0.5 to 1.5 s later: all recover, in 1 ms each, and
	// also if they come within 2 s. Within 1 s, as after a crash, about half recover, as many as the processors of the
	// measurement can serve, and the others load the history. A part of 4 would halve the rate.
	recoveriesOfCompany = 16
	// recoveriesOfVisitor makes the tabs of a visitor recover one after the other.
	recoveriesOfVisitor = 1

	// recoveryWait is how long a recovery waits for its turn. It leaves two seconds of joinTimeout for the read.
	recoveryWait = time.Second
	// recoveriesWaiting bounds the recoveries that wait: for each one that ends, the pool compares all of them. With
	// 10,000 waiting at once that took so long that fewer recovered than with 1,000.
	recoveriesWaiting          = 2048
	recoveriesWaitingOfCompany = 1024

	// recoveryReserve is what the recoveries of a company may read at once. None starts while the company has less than
	// that left, so that what it reads can be paid: the limiter charges all of a recovery's bytes or none.
	recoveryReserve = recoveriesOfCompany * replayBytes
)

// recoveryBounds bounds what the recoveries of a gateway read. It is safe for concurrent use.
//
// The address of a client has no part: the gateway keeps only Origin of a handshake's headers, and the peer's address
// is that of the proxy.
type recoveryBounds struct {
	visitors *ratelimit.Limiter // nil: no limit
	bytes    *ratelimit.Limiter // by company; nil: no limit
	reading  slot.Line
}

func newRecoveryBounds(visitors, bytes config.Rate, now func() time.Time) *recoveryBounds {
	return &recoveryBounds{
		visitors: ratelimit.New(ratelimit.Config{Name: "recovery", Rate: visitors, Now: now}),
		bytes:    ratelimit.New(ratelimit.Config{Name: "recovered-bytes", Rate: bytes, Now: now}),
		reading:  slot.Line{Pool: slot.NewPool(recoveriesAtOnce, 1), Places: slot.NewPool(recoveriesWaiting, 1)},
	}
}

// start waits for the turn of a recovery. The caller must release the place. It returns false if the visitor has
// recovered too often, if the company has used up its bytes, or if too many others recover.
func (b *recoveryBounds) start(ctx context.Context, companyID, room string) (place *slot.Slot, ok bool) {
	if !b.visitors.Take(ctx, room).Allowed {
		return nil, false
	}
	place, ok = b.take(ctx, companyID, room)
	if !ok {
		return nil, false
	}
	if !b.canPay(ctx, companyID) {
		place.Release()
		return nil, false
	}
	return place, true
}

// take takes a place among the recoveries that read. It waits for one unless too many wait already.
func (b *recoveryBounds) take(ctx context.Context, companyID, room string) (place *slot.Slot, ok bool) {
	company := func(most int64) slot.Share { return slot.Share{Of: "company", Key: companyID, Most: most} }
	visitor := slot.Share{Of: "visitor", Key: room, Most: recoveriesOfVisitor}
	place, err := b.reading.Acquire(ctx, 1, recoveryWait,
		[]slot.Share{visitor, company(recoveriesOfCompany)},
		[]slot.Share{company(recoveriesWaitingOfCompany)})
	return place, err == nil
}

// canPay reports whether the company's bytes suffice for one more recovery beside those that read.
func (b *recoveryBounds) canPay(ctx context.Context, companyID string) bool {
	return b.bytes == nil || b.bytes.TakeN(ctx, companyID, 0).Left >= recoveryReserve
}

// pay charges the company for the bytes that a recovery has read.
func (b *recoveryBounds) pay(ctx context.Context, companyID string, bytes int) (ok bool) {
	return b.bytes.TakeN(ctx, companyID, bytes).Allowed
}
