package conversation

import (
	"context"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/slot"
)

const (
	// pageCost is the maximum memory of a page while it is loaded: its data, and the copies of the store and
	// its driver.
	pageCost = 3 * maxPageBytes
	// memoryTimeout bounds how long a page waits for memory.
	memoryTimeout = 20 * time.Second
	// pagesPerVisitor bounds the pages of one visitor that are in memory at once.
	pagesPerVisitor = 2

	// pagesWaiting bounds the pages that wait for memory: of an application an eighth of them, of a site waitingPerSite,
	// and of a visitor waitingPerVisitor. They are small, because no page that waits makes room for another: five sites
	// leave an application's visitors places to wait, and seven applications those of others.
	pagesWaiting      = 1024
	waitingPerSite    = 16
	waitingPerVisitor = 8

	// MinPageMemory is the minimum for [NewPageMemory].
	MinPageMemory = 2 * pageCost
)

// PageMemory bounds the memory of pages of histories: of all together, of one application to half of it, of one
// site ([event.SiteOf]) to a quarter, and of one visitor to two pages. Anyone may register visitors, so that without
// the site's bound one client would hold all of an application's. Pages beyond the bounds wait; meanwhile clients that
// receive their page slowly are cut off. What waits has bounds too: a further page is refused. A nil PageMemory does
// not bound anything. It is safe for concurrent use.
type PageMemory struct {
	line          slot.Line
	ofApplication int64 // bytes
	ofSite        int64 // bytes
}

// NewPageMemory returns a bound of that many bytes, at least [MinPageMemory].
func NewPageMemory(bytes int64) *PageMemory {
	bytes = max(bytes, MinPageMemory)
	return &PageMemory{
		line:          slot.Line{Pool: slot.NewPool(bytes, pageCost), Places: slot.NewPool(pagesWaiting, 1)},
		ofApplication: bytes / 2,
		ofSite:        max(bytes/4, pageCost),
	}
}

// acquire waits for the memory of a page that is still to be loaded, for a client at that address.
func (m *PageMemory) acquire(ctx context.Context, appID, chatUserID, address string) (*slot.Slot, error) {
	if m == nil {
		return new(slot.Slot), nil
	}
	shares := func(ofVisitor, ofSite, ofApplication int64) []slot.Share {
		return []slot.Share{
			{Of: "visitor", Key: chatUserID, Most: ofVisitor},
			{Of: "site", Key: event.SiteOf(address), Most: ofSite},
			{Of: "application", Key: appID, Most: ofApplication},
		}
	}
	taken, err := m.line.Acquire(ctx, pageCost, memoryTimeout,
		shares(pagesPerVisitor*pageCost, m.ofSite, m.ofApplication),
		shares(waitingPerVisitor, waitingPerSite, pagesWaiting/8))
	if err != nil {
		return nil, tooManyReads(ctx)
	}
	return taken, nil
}

func tooManyReads(ctx context.Context) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	e := apperr.TooManyReads.New()
	e.RetryAfter = memoryTimeout / 4
	return e
}
