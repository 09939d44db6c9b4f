package realtime

import (
	"context"
	"slices"
	"sync"
	"time"
	"unique"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/trace"

	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/socketio"
	"github.com/parley-chat/parley/pkg/tracing"
	"github.com/parley-chat/parley/services/socket-gateway/internal/metadata"
)

// The second half of a reply's way: handleBroadcast takes what Redis delivers to this gateway, emit orders it
// and drops duplicates, and the namespace encodes it once and enqueues it for each socket. pause.go holds
// events back while older ones are missing.

const (
	roomSweep = 10 * time.Second
	// roomGrace is how long a room without sockets is kept: longer than a join takes.
	roomGrace = 30 * time.Second
)

// localSockets is the part of a namespace that rooms need: its sockets on this gateway.
type localSockets interface {
	EmitLocal(b *socketio.Broadcast) int
	RoomSize(room string) int
	Socket(id string) *socketio.Socket
}

// roomsConfig configures rooms.
type roomsConfig struct {
	sockets localSockets
	metrics *Metrics
	now     func() time.Time
	// receipt is called with the visitor's company after the delivery of an event that requests a receipt. It
	// is called under the room's lock and must not block.
	receipt func(company string, r metadata.Receipt)
	tracer  *tracing.Tracer // nil: no traces
}

// rooms delivers each event once and in order to the sockets of a room. It tracks the last offset of each
// hosted room and drops events at or below it: redeliveries, and duplicates from a gateway that has lost its
// partition but has not detected it yet.
//
// It lives as long as its gateway. Lock order: rooms.mu, then room.mu.
type rooms struct {
	roomsConfig

	mu     sync.RWMutex // guards the fields below
	byName map[string]*room
	paused pausedEvents
}

// room is the state of one room. It begins with the join of the first socket and outlives its sockets by
// roomGrace, so that a client that reconnects does not lose the last offset.
type room struct {
	company unique.Handle[string] // of the visitor; interned, because many rooms share it; set once

	mu       sync.Mutex       // guards the fields below; held while an event is emitted, which orders the events
	last     uint64           // offset of the last event, or the low watermark at which the room was opened
	replayed []replayedSocket // sockets that were replayed events beyond last
	parts    roomParts
	opened   time.Time
}

// replayedSocket is a socket that has received events up to an offset from the stream.
type replayedSocket struct {
	socket string
	upTo   uint64
	since  time.Time
}

// newRooms returns rooms for cfg.sockets.
func newRooms(cfg roomsConfig) *rooms {
	return &rooms{roomsConfig: cfg, byName: make(map[string]*room)}
}

// open prepares a visitor's room for a socket that is about to join. All replies to the visitor up to
// watermark have been published before.
func (r *rooms) open(name, company string, watermark uint64) {
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
	if r.sockets.RoomSize(name) > 0 {
		return // events up to the watermark may still be in flight to the other sockets
	}
	rm.last = max(rm.last, watermark)
}

// markReplayed suppresses events up to upTo for a socket that has received them from the stream.
func (r *rooms) markReplayed(name, socket string, upTo uint64) {
	rm := r.find(name)
	if rm == nil {
		return
	}
	rm.mu.Lock()
	defer rm.mu.Unlock()
	if upTo <= rm.last {
		return // the room drops these events for all sockets
	}
	now := r.now()
	rm.replayed = slices.DeleteFunc(rm.replayed, func(s replayedSocket) bool {
		return now.Sub(s.since) > roomGrace && r.sockets.Socket(s.socket) == nil
	})
	rm.replayed = append(rm.replayed, replayedSocket{socket: socket, upTo: upTo, since: now})
}

// companyOf returns the company of a room's visitor; empty if the room is not hosted here.
func (r *rooms) companyOf(name string) string {
	rm := r.find(name)
	if rm == nil {
		return ""
	}
	return rm.company.Value()
}

// find returns a hosted room, or nil.
func (r *rooms) find(name string) *room {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.byName[name]
}

// handleBroadcast handles every broadcast for the sockets of this gateway and returns the number of sockets
// that it was emitted to. The adapter calls it.
func (r *rooms) handleBroadcast(b *socketio.Broadcast) int {
	m := metadata.Of(b)
	oneRoom := len(b.Rooms) == 1
	if oneRoom && m.Part != (metadata.Part{}) {
		return r.handlePart(b, m.Part)
	}
	if !oneRoom || m.Offset == 0 {
		return r.sockets.EmitLocal(b) // transient, or from another program: no order to keep
	}
	r.mu.RLock()
	rm := r.byName[b.Rooms[0]]
	paused := r.paused.on
	r.mu.RUnlock()
	if paused && r.buffer(b) {
		return 0
	}
	if rm == nil { // not hosted here; a socket that joins later reads missed events from the stream
		return 0
	}
	return r.emit(rm, b, m)
}

// emit emits an event to the room's sockets and advances last, atomically, so that of concurrent events the
// lower offset is first or dropped.
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

// exclude returns the sockets that have received the event with this offset from the stream, and removes those
// that the room has caught up with. Callers must hold mu.
func (rm *room) exclude(offset uint64) (sockets []string) {
	rm.replayed = slices.DeleteFunc(rm.replayed, func(s replayedSocket) bool { return s.upTo < offset })
	for _, s := range rm.replayed {
		sockets = append(sockets, s.socket)
	}
	if len(rm.replayed) == 0 {
		rm.replayed = nil // the memory of a room matters: there is one for each visitor
	}
	return sockets
}

// emitTraced emits b to the local sockets of its room, as a span if b belongs to a trace, and returns their
// number.
func (r *rooms) emitTraced(b *socketio.Broadcast, m metadata.Metadata) int {
	untraced := r.tracer == nil || m.TraceParent == ""
	if untraced || r.sockets.RoomSize(b.Rooms[0]) == 0 {
		return r.sockets.EmitLocal(b)
	}
	parent := event.WithTraceParent(context.Background(), m.TraceParent)
	_, span := r.tracer.Start(parent, trace.SpanKindConsumer, "emit "+eventMessage,
		attribute.String("messaging.system", "socket.io"),
		attribute.String("messaging.operation.type", "send"),
		attribute.String("messaging.operation.name", "emit"),
		attribute.String("messaging.destination.name", b.Rooms[0]),
	)
	defer span.End()
	n := r.sockets.EmitLocal(b)
	span.Set(attribute.Int("parley.sockets", n))
	return n
}

// resetOffsets resets all offsets. It must be called when the stream was recreated and its sequences restarted.
func (r *rooms) resetOffsets() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rm := range r.byName {
		rm.mu.Lock()
		rm.last = 0
		rm.replayed = nil
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
		if r.sockets.RoomSize(name) > 0 {
			continue
		}
		rm.mu.Lock()
		expired := now.Sub(rm.opened) > roomGrace
		rm.mu.Unlock()
		if expired {
			delete(r.byName, name)
		}
	}
}
