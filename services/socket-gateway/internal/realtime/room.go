package realtime

import (
	"context"
	"slices"
	"sync"
	"time"
	"unique"

	"github.com/parley-chat/parley/pkg/socketio"
	"github.com/parley-chat/parley/pkg/tracing"
	"github.com/parley-chat/parley/services/socket-gateway/internal/metadata"
)

const (
	roomSweep = 10 * time.Second
	// roomGrace is how long a room without sockets is kept: longer than a join takes.
	roomGrace = 30 * time.Second

	// heldEvents and heldBytes bound the buffer of held deliveries. Events that exceed it are read from the log.
	heldEvents = 4096
	heldBytes  = 4 << 20
)

// members is the part of a namespace that rooms need.
type members interface {
	EmitLocal(b *socketio.Broadcast) int
	RoomSize(room string) int
	Socket(id string) *socketio.Socket
}

// rooms delivers each event once and in order to the sockets of a room. It tracks the last offset of each
// hosted room and drops events at or below it: redeliveries, and duplicates from a gateway that has lost its
// partition but has not detected it yet.
type rooms struct {
	members members
	metrics *Metrics
	now     func() time.Time
	// receipt is called after the delivery of an event that requests a receipt.
	receipt func(company string, r metadata.Receipt)
	tracer  *tracing.Tracer // nil: no traces

	mu     sync.RWMutex
	byName map[string]*room
	paused pausedEvents
}

// room is the state of one room. It outlives its sockets by roomGrace.
type room struct {
	mu       sync.Mutex
	last     uint64           // offset of the last event, or the floor at which the room was opened
	replayed []replayedSocket // sockets that were replayed events beyond last
	opened   time.Time
	// company is the visitor's company; interned, because many rooms share it.
	company unique.Handle[string]
	parts   roomParts
}

type replayedSocket struct {
	socket string
	upTo   uint64
	since  time.Time
}

// pausedEvents buffers events while older ones are missing.
type pausedEvents struct {
	on      bool
	events  []*socketio.Broadcast
	size    int
	dropped uint64 // highest offset dropped from the full buffer
	pauses  int    // number of subscription losses
}

// newRooms returns rooms for the sockets of members. now is the clock; receipt is called with the visitor's
// company after the delivery of an event that requests a receipt, and must not block.
func newRooms(
	members members,
	metrics *Metrics,
	now func() time.Time,
	receipt func(company string, r metadata.Receipt),
) *rooms {
	return &rooms{members: members, metrics: metrics, now: now, receipt: receipt, byName: make(map[string]*room)}
}

// open prepares a visitor's room for a socket that is about to join. All replies to the visitor up to floor
// have been published before.
func (r *rooms) open(name, company string, floor uint64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	rm := r.byName[name]
	if rm == nil {
		rm = &room{company: unique.Make(company)}
		r.byName[name] = rm
	}
	rm.mu.Lock()
	defer rm.mu.Unlock()
	rm.opened = r.now()
	if r.members.RoomSize(name) == 0 { // otherwise events up to the floor may still be in flight to the other sockets
		rm.last = max(rm.last, floor)
	}
}

// markReplayed suppresses events up to upTo for a socket that has received them from the log.
func (r *rooms) markReplayed(name, socket string, upTo uint64) {
	rm := r.find(name)
	if rm == nil {
		return
	}
	rm.mu.Lock()
	defer rm.mu.Unlock()
	if upTo <= rm.last {
		return
	}
	now := r.now()
	rm.replayed = slices.DeleteFunc(rm.replayed, func(a replayedSocket) bool {
		return now.Sub(a.since) > roomGrace && r.members.Socket(a.socket) == nil
	})
	rm.replayed = append(rm.replayed, replayedSocket{socket, upTo, now})
}

// companyOf returns the company of a room's visitor; empty if the room is not hosted here.
func (r *rooms) companyOf(name string) string {
	rm := r.find(name)
	if rm == nil {
		return ""
	}
	return rm.company.Value()
}

func (r *rooms) find(name string) *room {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.byName[name]
}

// handleBroadcast handles every broadcast for the sockets of this gateway and returns the number of sockets that it
// was delivered to.
func (r *rooms) handleBroadcast(b *socketio.Broadcast) int {
	m := metadata.Of(b)
	switch {
	case len(b.Rooms) == 1 && m.Part != (metadata.Part{}):
		return r.handlePart(b, m.Part)
	case len(b.Rooms) != 1 || m.Offset == 0:
		return r.members.EmitLocal(b)
	}
	r.mu.RLock()
	rm, held := r.byName[b.Rooms[0]], r.paused.on
	r.mu.RUnlock()
	switch {
	case held && r.buffer(b):
		return 0
	case rm == nil: // not hosted here; a socket that joins later reads missed events from the log
		return 0
	}
	return r.emit(rm, b, m)
}

// emit delivers an event and advances last, atomically, so that of concurrent events the lower offset is
// first or dropped.
func (r *rooms) emit(rm *room, b *socketio.Broadcast, m metadata.Metadata) int {
	rm.mu.Lock()
	defer rm.mu.Unlock()
	if m.Offset <= rm.last {
		r.metrics.dropped(dropRepeated)
		return 0
	}
	rm.last = m.Offset
	if len(rm.replayed) > 0 {
		b.Except = append(b.Except, rm.exclude(m.Offset)...)
	}
	n := r.emitTraced(b, m)
	if n > 0 && m.Receipt != (metadata.Receipt{}) {
		r.receipt(rm.company.Value(), m.Receipt)
	}
	return n
}

// exclude returns the sockets that have received the event with this offset from the log, and removes those
// that the room has caught up with. Callers must hold mu.
func (rm *room) exclude(offset uint64) (sockets []string) {
	rm.replayed = slices.DeleteFunc(rm.replayed, func(a replayedSocket) bool { return a.upTo < offset })
	for _, a := range rm.replayed {
		sockets = append(sockets, a.socket)
	}
	if len(rm.replayed) == 0 {
		rm.replayed = nil
	}
	return sockets
}

// pause starts buffering events, because older ones may be missing.
func (r *rooms) pause() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.paused.on = true
	r.paused.pauses++
}

// pauses returns the number of calls of Hold.
func (r *rooms) pauses() int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.paused.pauses
}

// buffer holds b back, or returns false if deliveries are no longer held. A full buffer is dropped and must
// be read from the log.
func (r *rooms) buffer(b *socketio.Broadcast) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.paused.on {
		return false
	}
	if len(r.paused.events) >= heldEvents || r.paused.size+len(b.Data) > heldBytes {
		for _, older := range r.paused.events {
			r.paused.dropped = max(r.paused.dropped, metadata.Of(older).Offset)
		}
		r.paused.events, r.paused.size = nil, 0
	}
	r.paused.events, r.paused.size = append(r.paused.events, b), r.paused.size+len(b.Data)
	return true
}

// wants reports whether a reply from the log is new to local sockets.
func (r *rooms) wants(name string, offset uint64) bool {
	rm := r.find(name)
	if rm == nil || r.members.RoomSize(name) == 0 {
		return false
	}
	rm.mu.Lock()
	defer rm.mu.Unlock()
	return offset > rm.last
}

// replay delivers an event from the log, even while live events are held.
func (r *rooms) replay(b *socketio.Broadcast) int {
	rm := r.find(b.Rooms[0])
	if rm == nil {
		return 0
	}
	return r.emit(rm, b, metadata.Of(b))
}

// resume delivers the held events and ends the hold, provided that all dropped events are at or below
// reached, up to which the log was replayed, and that Losses still returns losses. It reports whether the
// hold has ended.
func (r *rooms) resume(reached uint64, losses int) bool {
	for {
		r.mu.Lock()
		if r.paused.pauses != losses || r.paused.dropped > reached {
			r.mu.Unlock()
			return false
		}
		events := r.paused.events
		if len(events) == 0 {
			r.paused = pausedEvents{pauses: losses}
			r.mu.Unlock()
			return true
		}
		r.paused.events, r.paused.size = nil, 0
		r.mu.Unlock()
		for _, e := range events {
			r.replay(e)
		}
	}
}

// resetOffsets resets all offsets. It must be called when the stream was recreated and its sequences restarted.
func (r *rooms) resetOffsets() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rm := range r.byName {
		rm.mu.Lock()
		rm.last, rm.replayed = 0, nil
		rm.mu.Unlock()
	}
}

// run removes empty rooms periodically until ctx is done.
func (r *rooms) run(ctx context.Context) {
	tick := time.NewTicker(roomSweep)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			r.sweep()
		}
	}
}

// sweep removes rooms that have had no socket for roomGrace.
func (r *rooms) sweep() {
	r.mu.Lock()
	defer r.mu.Unlock()
	now := r.now()
	for name, rm := range r.byName {
		if r.members.RoomSize(name) > 0 {
			continue
		}
		rm.mu.Lock()
		if now.Sub(rm.opened) > roomGrace {
			delete(r.byName, name)
		}
		rm.mu.Unlock()
	}
}
