package conversation

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/keyed"
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

// Reads bounds the memory of pages of histories: of all together, of one application to half of it, and of one visitor to two
// pages. Reads beyond the bounds wait. A nil Reads does not bound anything. It is safe for concurrent use.
type Reads struct {
	memory       *semaphore.Weighted
	applications *keyed.Semaphore
	visitors     *keyed.Semaphore
}

// NewReads returns a bound of that many bytes, at least [MinReadMemory].
func NewReads(bytes int64) *Reads {
	bytes = max(bytes, MinReadMemory)
	return &Reads{
		memory:       semaphore.NewWeighted(bytes),
		applications: keyed.NewSemaphore(int(bytes / 2 / readCost)),
		visitors:     keyed.NewSemaphore(readsPerVisitor),
	}
}

// held is the memory of one page.
type held struct {
	memory  *semaphore.Weighted // nil: unbounded
	bytes   int64
	release func() // may be called again
}

// acquire waits for the memory of a page that is still to be read.
func (r *Reads) acquire(ctx context.Context, appID, chatUserID string) (*held, error) {
	if r == nil {
		return &held{release: func() {}}, nil
	}
	waiting, stop := context.WithTimeout(ctx, readTimeout)
	defer stop()
	leaveVisitor, err := r.visitors.Acquire(waiting, chatUserID)
	if err != nil {
		return nil, tooManyReads(ctx)
	}
	leaveApplication, err := r.applications.Acquire(waiting, appID)
	if err != nil {
		leaveVisitor()
		return nil, tooManyReads(ctx)
	}
	if err := r.memory.Acquire(waiting, readCost); err != nil {
		leaveApplication()
		leaveVisitor()
		return nil, tooManyReads(ctx)
	}
	h := &held{memory: r.memory, bytes: readCost}
	h.release = sync.OnceFunc(func() {
		h.memory.Release(h.bytes)
		leaveApplication()
		leaveVisitor()
	})
	return h, nil
}

// shrink releases the memory that the page does not need.
func (h *held) shrink(bytes int64) {
	if h.memory != nil && bytes < h.bytes {
		h.memory.Release(h.bytes - bytes)
		h.bytes = bytes
	}
}

func tooManyReads(ctx context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	e := apperr.TooManyReads.New()
	e.RetryAfter = readTimeout / 4
	return e
}
