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

// Members is the part of a namespace that rooms need.
type Members interface {
	Deliver(b *socketio.Broadcast) int
	RoomSize(room string) int
	Socket(id string) *socketio.Socket
}

// Rooms delivers each event once and in order to the sockets of a room. It tracks the last offset of each
// hosted room and drops events at or below it: redeliveries, and duplicates from a gateway that has lost its
// partition but has not detected it yet.
type Rooms struct {
	members Members
	metrics *Metrics
	now     func() time.Time
	// receipt is called after the delivery of an event that requests a receipt.
	receipt func(company string, r metadata.Receipt)
	tracer  *tracing.Tracer // nil: no traces

	mu     sync.RWMutex
	byName map[string]*room
	held   hold
}

// room is the state of one room. It outlives its sockets by roomGrace.
type room struct {
	mu     sync.Mutex
	last   uint64  // offset of the last event, or the floor at which the room was opened
	ahead  []ahead // sockets that were replayed events beyond last
	opened time.Time
	// company is the visitor's company; interned, because many rooms share it.
	company unique.Handle[string]
	parts   roomParts
}

type ahead struct {
	socket string
	upTo   uint64
	since  time.Time
}

// hold buffers events while older ones are missing.
type hold struct {
	on      bool
	events  []*socketio.Broadcast
	size    int
	dropped uint64 // highest offset dropped from the full buffer
	losses  int    // number of subscription losses
}

// NewRooms returns rooms for the sockets of members. now is the clock; receipt is called with the visitor's
// company after the delivery of an event that requests a receipt, and must not block.
func NewRooms(
	members Members,
	metrics *Metrics,
	now func() time.Time,
	receipt func(company string, r metadata.Receipt),
) *Rooms {
	return &Rooms{members: members, metrics: metrics, now: now, receipt: receipt, byName: make(map[string]*room)}
}

// Open prepares a visitor's room for a socket that is about to join. All replies to the visitor up to floor
// have been published before.
func (r *Rooms) Open(name, company string, floor uint64) {
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

// Ahead suppresses events up to upTo for a socket that has received them from the log.
func (r *Rooms) Ahead(name, socket string, upTo uint64) {
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
	rm.ahead = slices.DeleteFunc(rm.ahead, func(a ahead) bool {
		return now.Sub(a.since) > roomGrace && r.members.Socket(a.socket) == nil
	})
	rm.ahead = append(rm.ahead, ahead{socket, upTo, now})
}

// companyOf returns the company of a room's visitor; empty if the room is not hosted here.
func (r *Rooms) companyOf(name string) string {
	rm := r.find(name)
	if rm == nil {
		return ""
	}
	return rm.company.Value()
}

func (r *Rooms) find(name string) *room {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.byName[name]
}

// Arrive handles every broadcast for the sockets of this gateway and returns the number of sockets that it
// was delivered to.
func (r *Rooms) Arrive(b *socketio.Broadcast) int {
	m := metadata.Of(b)
	switch {
	case len(b.Rooms) == 1 && m.Part != (metadata.Part{}):
		return r.arrivePart(b, m.Part)
	case len(b.Rooms) != 1 || m.Offset == 0:
		return r.members.Deliver(b)
	}
	r.mu.RLock()
	rm, held := r.byName[b.Rooms[0]], r.held.on
	r.mu.RUnlock()
	switch {
	case held && r.buffer(b):
		return 0
	case rm == nil: // not hosted here; a socket that joins later reads missed events from the log
		return 0
	}
	return r.deliver(rm, b, m)
}

// deliver delivers an event and advances last, atomically, so that of concurrent events the lower offset is
// first or dropped.
func (r *Rooms) deliver(rm *room, b *socketio.Broadcast, m metadata.Metadata) int {
	rm.mu.Lock()
	defer rm.mu.Unlock()
	if m.Offset <= rm.last {
		r.metrics.dropped(dropRepeated)
		return 0
	}
	rm.last = m.Offset
	if len(rm.ahead) > 0 {
		b.Except = append(b.Except, rm.exclude(m.Offset)...)
	}
	n := r.emit(b, m)
	if n > 0 && m.Receipt != (metadata.Receipt{}) {
		r.receipt(rm.company.Value(), m.Receipt)
	}
	return n
}

// exclude returns the sockets that have received the event with this offset from the log, and removes those
// that the room has caught up with. Callers must hold mu.
func (rm *room) exclude(offset uint64) (sockets []string) {
	rm.ahead = slices.DeleteFunc(rm.ahead, func(a ahead) bool { return a.upTo < offset })
	for _, a := range rm.ahead {
		sockets = append(sockets, a.socket)
	}
	if len(rm.ahead) == 0 {
		rm.ahead = nil
	}
	return sockets
}

// Hold starts buffering events, because older ones may be missing.
func (r *Rooms) Hold() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held.on = true
	r.held.losses++
}

// Losses returns the number of calls of Hold.
func (r *Rooms) Losses() int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.held.losses
}

// buffer holds b back, or returns false if deliveries are no longer held. A full buffer is dropped and must
// be read from the log.
func (r *Rooms) buffer(b *socketio.Broadcast) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.held.on {
		return false
	}
	if len(r.held.events) >= heldEvents || r.held.size+len(b.Data) > heldBytes {
		for _, older := range r.held.events {
			r.held.dropped = max(r.held.dropped, metadata.Of(older).Offset)
		}
		r.held.events, r.held.size = nil, 0
	}
	r.held.events, r.held.size = append(r.held.events, b), r.held.size+len(b.Data)
	return true
}

// Wants reports whether a reply from the log is new to local sockets.
func (r *Rooms) Wants(name string, offset uint64) bool {
	rm := r.find(name)
	if rm == nil || r.members.RoomSize(name) == 0 {
		return false
	}
	rm.mu.Lock()
	defer rm.mu.Unlock()
	return offset > rm.last
}

// Replay delivers an event from the log, even while live events are held.
func (r *Rooms) Replay(b *socketio.Broadcast) int {
	rm := r.find(b.Rooms[0])
	if rm == nil {
		return 0
	}
	return r.deliver(rm, b, metadata.Of(b))
}

// Release delivers the held events and ends the hold, provided that all dropped events are at or below
// reached, up to which the log was replayed, and that Losses still returns losses. It reports whether the
// hold has ended.
func (r *Rooms) Release(reached uint64, losses int) bool {
	for {
		r.mu.Lock()
		if r.held.losses != losses || r.held.dropped > reached {
			r.mu.Unlock()
			return false
		}
		events := r.held.events
		if len(events) == 0 {
			r.held = hold{losses: losses}
			r.mu.Unlock()
			return true
		}
		r.held.events, r.held.size = nil, 0
		r.mu.Unlock()
		for _, e := range events {
			r.Replay(e)
		}
	}
}

// Reset resets all offsets. It must be called when the stream was recreated and its sequences restarted.
func (r *Rooms) Reset() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rm := range r.byName {
		rm.mu.Lock()
		rm.last, rm.ahead = 0, nil
		rm.mu.Unlock()
	}
}

// Run removes empty rooms periodically until ctx is done.
func (r *Rooms) Run(ctx context.Context) {
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
func (r *Rooms) sweep() {
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
