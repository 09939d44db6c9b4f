package realtime

// Which visitors are connected, written to a store that the panel reads. connect.go reports joins and
// leaves.

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/parley-chat/parley/pkg/presence"
)

const (
	// presencePause is the interval at which changes are written.
	presencePause = time.Second
	// presenceBatch is the maximum number of visitors in a pipeline.
	presenceBatch = 512
	// presenceTimeout bounds one pipeline.
	presenceTimeout = 5 * time.Second
)

// occupancy is the part of a namespace that presence needs.
type occupancy interface {
	RoomSize(room string) int
	Rooms() []string
}

// presenceWriter writes the visitors with a socket on this gateway to a store. A connect or disconnect only records
// the room's name; one goroutine writes the changes once a second and all connected visitors every 20
// seconds, so that sockets need no timers or commands of their own.
type presenceWriter struct {
	store  presence.Store // nil: presence is not stored
	rooms  occupancy
	holder string
	now    func() time.Time
	logger *slog.Logger

	mu      sync.Mutex          // guards changed
	changed map[string]struct{} // rooms since the last flush
}

// newPresenceWriter returns a writer of a gateway's presence, which writes while run runs.
func newPresenceWriter(cfg Config) *presenceWriter {
	return &presenceWriter{
		store:   cfg.Presence,
		rooms:   cfg.Namespace,
		holder:  cfg.ID,
		now:     cfg.Now,
		logger:  cfg.Logger,
		changed: make(map[string]struct{}),
	}
}

// markChanged records that a socket has joined or left a room.
func (p *presenceWriter) markChanged(room string) {
	if p.store == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.changed[room] = struct{}{}
}

// run writes changes and refreshes until ctx is done, then writes the remaining changes. By then the sockets
// are closed, so their visitors are absent until they have reconnected to another gateway.
func (p *presenceWriter) run(ctx context.Context) {
	if p.store == nil {
		return
	}
	flush, refresh := time.NewTicker(presencePause), time.NewTicker(presence.Refresh)
	defer flush.Stop()
	defer refresh.Stop()
	failing := false
	for {
		var err error
		select {
		case <-ctx.Done():
			rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), presenceTimeout)
			defer cancel()
			_ = p.flush(rest) // entries that are not written expire
			return
		case <-flush.C:
			err = p.flush(ctx)
		case <-refresh.C:
			err = p.refresh(ctx)
		}
		if err != nil && !failing && ctx.Err() == nil {
			p.logger.WarnContext(ctx, "writing the presence of visitors failed", "error", err)
		}
		failing = err != nil
	}
}

// take returns the changed rooms and resets them.
func (p *presenceWriter) take() map[string]struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.changed) == 0 {
		return nil
	}
	changed := p.changed
	p.changed = make(map[string]struct{})
	return changed
}

// flush writes the changes. A failed write needs no retry: the next refresh writes all connected visitors,
// and other entries expire.
func (p *presenceWriter) flush(ctx context.Context) error {
	changed := p.take()
	var here, gone []string
	for room := range changed {
		if p.rooms.RoomSize(room) > 0 {
			here = append(here, room)
		} else {
			gone = append(gone, room)
		}
	}
	if err := p.write(ctx, here, p.setOnline); err != nil {
		return err
	}
	return p.write(ctx, gone, p.setOffline)
}

// refresh writes all connected visitors, before their entries expire.
func (p *presenceWriter) refresh(ctx context.Context) error {
	return p.write(ctx, p.rooms.Rooms(), p.setOnline)
}

func (p *presenceWriter) setOnline(ctx context.Context, keys []string) error {
	return p.store.SetOnline(ctx, p.holder, keys...)
}

func (p *presenceWriter) setOffline(ctx context.Context, keys []string) error {
	return p.store.SetOffline(ctx, p.holder, p.now(), keys...)
}

func (p *presenceWriter) write(
	ctx context.Context,
	rooms []string,
	write func(ctx context.Context, keys []string) error,
) error {
	keys := make([]string, 0, min(len(rooms), presenceBatch))
	for len(rooms) > 0 {
		n := min(len(rooms), presenceBatch)
		keys = keys[:0]
		for _, room := range rooms[:n] {
			keys = append(keys, presence.Room(room))
		}
		bounded, cancel := context.WithTimeout(ctx, presenceTimeout)
		err := write(bounded, keys)
		cancel()
		if err != nil {
			return err
		}
		rooms = rooms[n:]
	}
	return nil
}
