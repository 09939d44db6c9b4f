package conversation

import (
	"context"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/slot"
)

const (
	// readCost is the maximum memory of a page while it is read: its data, and the copies of the store and its driver.
	readCost = 3 * maxPageBytes
	// readTimeout bounds how long a read waits for memory.
	readTimeout = 20 * time.Second
	// readsPerVisitor bounds the pages of one visitor that are in memory at once.
	readsPerVisitor = 2

	// MinReadMemory is the minimum for [NewReads].
	MinReadMemory = 2 * readCost
)

// Reads bounds the memory of pages of histories: of all together, of one application to half of it, and of
// one visitor to two pages. Reads beyond the bounds wait; meanwhile clients that receive their page slowly
// are cut off. A nil Reads does not bound anything. It is safe for concurrent use.
type Reads struct {
	memory        *slot.Pool
	ofApplication int64 // bytes
}

// NewReads returns a bound of that many bytes, at least [MinReadMemory].
func NewReads(bytes int64) *Reads {
	bytes = max(bytes, MinReadMemory)
	return &Reads{memory: slot.NewPool(bytes, readCost), ofApplication: bytes / 2}
}

// acquire waits for the memory of a page that is still to be read.
func (r *Reads) acquire(ctx context.Context, appID, chatUserID string) (*slot.Slot, error) {
	if r == nil {
		return new(slot.Slot), nil
	}
	held, err := r.memory.Acquire(ctx, readTimeout,
		slot.Share{Of: "visitor", Key: chatUserID, Most: readsPerVisitor * readCost},
		slot.Share{Of: "application", Key: appID, Most: r.ofApplication})
	if err != nil {
		return nil, tooManyReads(ctx)
	}
	return held, nil
}

func tooManyReads(ctx context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	e := apperr.TooManyReads.New()
	e.RetryAfter = readTimeout / 4
	return e
}
