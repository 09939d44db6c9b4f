package conversation

import (
	"context"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/parley-chat/parley/pkg/apperr"
)

const (
	// readCost is the maximum memory of a page while it is read: its data, and the copies of the store and its driver.
	readCost = 3 * maxPageBytes
	// readPatience bounds how long a read waits for memory.
	readPatience = 20 * time.Second
	// readsPerVisitor bounds the pages of one visitor that are in memory at once.
	readsPerVisitor = 2

	// MinReadMemory is the minimum for [NewReads].
	MinReadMemory = 2 * readCost
)

// Reads bounds the memory of pages of histories: of all together, of one application to half of it, and of one visitor to two
// pages. Reads beyond the bounds wait. A nil Reads does not bound anything. It is safe for concurrent use.
type Reads struct {
	memory       *semaphore.Weighted
	applications keyed
	visitors     keyed
}

// NewReads returns a bound of that many bytes, at least [MinReadMemory].
func NewReads(bytes int64) *Reads {
	bytes = max(bytes, MinReadMemory)
	return &Reads{
		memory:       semaphore.NewWeighted(bytes),
		applications: keyed{max: int(bytes / 2 / readCost), entries: make(map[string]*keyedEntry)},
		visitors:     keyed{max: readsPerVisitor, entries: make(map[string]*keyedEntry)},
	}
}

// held is the memory of one page.
type held struct {
	reads             *Reads
	appID, chatUserID string
	bytes             int64
	once              sync.Once
}

// acquire waits for the memory of a page that is still to be read.
func (r *Reads) acquire(ctx context.Context, appID, chatUserID string) (*held, error) {
	if r == nil {
		return &held{}, nil
	}
	waiting, stop := context.WithTimeout(ctx, readPatience)
	defer stop()
	err := r.visitors.acquire(waiting, chatUserID)
	if err != nil {
		return nil, tooManyReads(ctx)
	}
	if err = r.applications.acquire(waiting, appID); err != nil {
		r.visitors.release(chatUserID)
		return nil, tooManyReads(ctx)
	}
	if err = r.memory.Acquire(waiting, readCost); err != nil {
		r.applications.release(appID)
		r.visitors.release(chatUserID)
		return nil, tooManyReads(ctx)
	}
	return &held{reads: r, appID: appID, chatUserID: chatUserID, bytes: readCost}, nil
}

// shrink releases the memory that the page does not need.
func (h *held) shrink(bytes int64) {
	if h.reads != nil && bytes < h.bytes {
		h.reads.memory.Release(h.bytes - bytes)
		h.bytes = bytes
	}
}

func (h *held) release() {
	h.once.Do(func() {
		if h.reads != nil {
			h.reads.memory.Release(h.bytes)
			h.reads.applications.release(h.appID)
			h.reads.visitors.release(h.chatUserID)
		}
	})
}

func tooManyReads(ctx context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	e := apperr.TooManyReads.New()
	e.RetryAfter = readPatience / 4
	return e
}

// keyed is a semaphore per key: max callers run at once, more wait.
type keyed struct {
	max     int
	mu      sync.Mutex
	entries map[string]*keyedEntry
}

type keyedEntry struct {
	slots chan struct{}
	users int // running or waiting
}

func (k *keyed) acquire(ctx context.Context, key string) error {
	k.mu.Lock()
	e := k.entries[key]
	if e == nil {
		e = &keyedEntry{slots: make(chan struct{}, k.max)}
		k.entries[key] = e
	}
	e.users++
	k.mu.Unlock()
	select {
	case e.slots <- struct{}{}:
		return nil
	case <-ctx.Done():
		k.leave(key, e)
		return ctx.Err()
	}
}

func (k *keyed) release(key string) {
	k.mu.Lock()
	e := k.entries[key]
	k.mu.Unlock()
	<-e.slots
	k.leave(key, e)
}

func (k *keyed) leave(key string, e *keyedEntry) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if e.users--; e.users == 0 {
		delete(k.entries, key)
	}
}
