package realtime

import (
	"github.com/parley-chat/parley/pkg/socketio"
	"github.com/parley-chat/parley/services/socket-gateway/internal/metadata"
)

// While the subscriptions of Redis are lost, older events may be missing: outage.go pauses all rooms, replays
// the missing events from the stream, and resumes. Live events that arrive meanwhile are buffered here.

// pausedLimit and pausedBytesLimit bound the buffer. Events that exceed it are read from the stream.
const (
	pausedLimit      = 4096
	pausedBytesLimit = 4 << 20
)

// pausedEvents buffers events while older ones are missing. rooms.mu guards it.
type pausedEvents struct {
	on      bool
	events  []*socketio.Broadcast // in the order of their arrival
	size    int                   // bytes of events
	dropped uint64                // highest offset dropped from the full buffer
	pauses  int                   // number of calls of pause
}

// pause starts buffering events, because older ones may be missing.
func (r *rooms) pause() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.paused.on = true
	r.paused.pauses++
}

// pauses returns the number of calls of pause.
func (r *rooms) pauses() int {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.paused.pauses
}

// buffer holds b back, or returns false if the rooms are no longer paused. A full buffer is dropped and must
// be read from the stream.
func (r *rooms) buffer(b *socketio.Broadcast) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	p := &r.paused
	if !p.on {
		return false
	}
	if len(p.events) >= pausedLimit || p.size+len(b.Data) > pausedBytesLimit {
		for _, older := range p.events {
			p.dropped = max(p.dropped, metadata.Of(older).Offset)
		}
		p.events = nil
		p.size = 0
	}
	p.events = append(p.events, b)
	p.size += len(b.Data)
	return true
}

// wants reports whether a reply from the stream is new to local sockets.
func (r *rooms) wants(name string, offset uint64) bool {
	rm := r.find(name)
	if rm == nil || r.sockets.RoomSize(name) == 0 {
		return false
	}
	rm.mu.Lock()
	defer rm.mu.Unlock()
	return offset > rm.last
}

// replay emits an event from the stream, even while the rooms are paused.
func (r *rooms) replay(b *socketio.Broadcast) int {
	rm := r.find(b.Rooms[0])
	if rm == nil {
		return 0
	}
	return r.emit(rm, b, metadata.Of(b))
}

// resume emits the buffered events and ends the pause, provided that all dropped events are at or below
// reached, up to which the stream was replayed, and that pauses still returns the same number. It reports whether
// the pause has ended.
//
// The lock is released while events are emitted; those that arrive meanwhile are buffered and emitted in the
// next turn, so that no event overtakes an older one.
func (r *rooms) resume(reached uint64, pauses int) bool {
	for {
		r.mu.Lock()
		if r.paused.pauses != pauses || r.paused.dropped > reached {
			r.mu.Unlock()
			return false
		}
		events := r.paused.events
		if len(events) == 0 {
			r.paused = pausedEvents{pauses: pauses}
			r.mu.Unlock()
			return true
		}
		r.paused.events = nil
		r.paused.size = 0
		r.mu.Unlock()
		for _, e := range events {
			r.replay(e)
		}
	}
}
