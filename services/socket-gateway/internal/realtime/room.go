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
	// roomGrace is how long a room without sockets is kept: longer than joining takes.
	roomGrace = 30 * time.Second

	// heldEvents and heldBytes bound the events that are kept while deliveries are held back. Further ones are read from the log.
	heldEvents = 4096
	heldBytes  = 4 << 20
)

// Members is the part of a namespace that rooms need.
type Members interface {
	Deliver(b *socketio.Broadcast) int
	RoomSize(room string) int
	Socket(id string) *socketio.Socket
}

// Rooms delivers each event once and in order to the sockets of a room: it remembers the last offset of each hosted room, and drops an
// event that is not newer: a redelivery, or one from a gateway that has not noticed yet that another one has taken over.
type Rooms struct {
	members Members
	metrics *Metrics
	now     func() time.Time
	// receipt is called with the company of what was delivered here and asks for a receipt.
	receipt func(company string, r metadata.Receipt)
	tracer  *tracing.Tracer // nil: no traces

	mu     sync.RWMutex
	byName map[string]*room
	held   hold
}

// room is the state of one room. It outlives its sockets by roomGrace.
type room struct {
	mu     sync.Mutex
	last   uint64  // the offset of the last event, or one up to which all had been passed on before
	ahead  []ahead // sockets that have read more of the log than the room has had
	opened time.Time
	// company is whose visitor this is; one string for all its rooms.
	company unique.Handle[string]
	parts   roomParts
}

type ahead struct {
	socket string
	upTo   uint64
	since  time.Time
}

// hold keeps events back while older ones are missing.
type hold struct {
	on      bool
	events  []*socketio.Broadcast
	size    int
	dropped uint64 // the highest offset that there was no room for
	losses  int    // how often subscriptions were lost
}

// NewRooms returns rooms whose sockets are those of members. now is the clock; receipt is called with the company of what was delivered here and
// asks for a receipt, and must not block.
func NewRooms(members Members, metrics *Metrics, now func() time.Time, receipt func(company string, r metadata.Receipt)) *Rooms {
	return &Rooms{members: members, metrics: metrics, now: now, receipt: receipt, byName: make(map[string]*room)}
}

// Open prepares the room of a company's visitor for a socket that is about to join. Everything up to floor had been passed on
// before.
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
	if r.members.RoomSize(name) == 0 { // else the floor may be ahead of what is still on its way to the others
		rm.last = max(rm.last, floor)
	}
}

// Ahead keeps events up to upTo from a socket that has received them from the log.
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

// company returns the company of a room's visitor; empty for a room that is not hosted here.
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

// Arrive is the way of every broadcast to the sockets of this gateway.
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
	case held && r.keep(b):
		return 0
	case rm == nil: // not hosted here; a socket that joins from now on reads what it has missed from the log
		return 0
	}
	return r.deliver(rm, b, m)
}

// deliver is a critical section of the room: the higher offset comes second, or the lower one is dropped.
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

// exclude returns the sockets that have received the event of this offset from the log, and forgets those that have caught up.
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

// Hold keeps events back from now on: older ones are missing.
func (r *Rooms) Hold() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.held.on = true
	r.held.losses++
}

// Losses returns how often Hold was called.
func (r *Rooms) Losses() int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.held.losses
}

// keep holds b back, or returns false when deliveries are no longer held.
func (r *Rooms) keep(b *socketio.Broadcast) bool {
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

// Wants reports whether a reply of the log is new for sockets here.
func (r *Rooms) Wants(name string, offset uint64) bool {
	rm := r.find(name)
	if rm == nil || r.members.RoomSize(name) == 0 {
		return false
	}
	rm.mu.Lock()
	defer rm.mu.Unlock()
	return offset > rm.last
}

// Replay delivers an event of the log, also while events are held back.
func (r *Rooms) Replay(b *socketio.Broadcast) int {
	rm := r.find(b.Rooms[0])
	if rm == nil {
		return 0
	}
	return r.deliver(rm, b, metadata.Of(b))
}

// Release delivers the events that were held back and ends the hold, if the dropped ones have been replayed up to reached and no
// subscription was lost since losses was read. It reports whether the hold has ended.
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

// Renew forgets all offsets: the stream was created anew, and its sequences have begun again.
func (r *Rooms) Renew() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, rm := range r.byName {
		rm.mu.Lock()
		rm.last, rm.ahead = 0, nil
		rm.mu.Unlock()
	}
}

// Run forgets empty rooms until ctx is done.
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

// sweep forgets rooms without sockets.
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
