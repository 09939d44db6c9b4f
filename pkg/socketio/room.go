package socketio

// Who is in which room, and nothing else: namespace.go asks it for the members, socket.go joins and leaves.

import (
	"hash/maphash"
	"slices"
	"sync"
)

const roomShards = 64

// indexFrom is the size from which a room has an index of its members: for smaller rooms a linear search is
// as fast and needs no memory.
const indexFrom = 32

// rooms maps room names to their sockets.
type rooms struct {
	seed   maphash.Seed
	shards [roomShards]roomShard
}

// roomShard is a part of the rooms with a lock of its own: joins of different rooms rarely meet.
type roomShard struct {
	mu     sync.RWMutex
	byName map[string]*room
}

// room is the members of one room, in no order. The mu of its shard guards it.
type room struct {
	members []*Socket
	index   map[*Socket]int
}

// newRooms returns rooms without members.
func newRooms() *rooms {
	r := &rooms{seed: maphash.MakeSeed()}
	for i := range r.shards {
		r.shards[i].byName = make(map[string]*room)
	}
	return r
}

// shard returns the shard of a room.
func (r *rooms) shard(name string) *roomShard {
	return &r.shards[maphash.String(r.seed, name)%roomShards]
}

// add adds s to a room. s must not be a member.
func (r *rooms) add(name string, s *Socket) {
	shard := r.shard(name)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	rm := shard.byName[name]
	if rm == nil {
		rm = &room{}
		shard.byName[name] = rm
	}
	rm.add(s)
}

// remove removes s from a room, and the room if it is empty.
func (r *rooms) remove(name string, s *Socket) {
	shard := r.shard(name)
	shard.mu.Lock()
	defer shard.mu.Unlock()
	rm := shard.byName[name]
	if rm == nil {
		return
	}
	rm.remove(s)
	if len(rm.members) == 0 {
		delete(shard.byName, name)
	}
}

// append appends the members of a room to dst.
func (r *rooms) append(dst []*Socket, name string) []*Socket {
	shard := r.shard(name)
	shard.mu.RLock()
	defer shard.mu.RUnlock()
	if rm := shard.byName[name]; rm != nil {
		dst = append(dst, rm.members...)
	}
	return dst
}

// size returns the number of members of a room.
func (r *rooms) size(name string) int {
	shard := r.shard(name)
	shard.mu.RLock()
	defer shard.mu.RUnlock()
	if rm := shard.byName[name]; rm != nil {
		return len(rm.members)
	}
	return 0
}

// count returns the number of rooms with a member.
func (r *rooms) count() int {
	n := 0
	for i := range r.shards {
		shard := &r.shards[i]
		shard.mu.RLock()
		n += len(shard.byName)
		shard.mu.RUnlock()
	}
	return n
}

// names returns the rooms with a member.
func (r *rooms) names() []string {
	var names []string
	for i := range r.shards {
		shard := &r.shards[i]
		shard.mu.RLock()
		for name := range shard.byName {
			names = append(names, name)
		}
		shard.mu.RUnlock()
	}
	return names
}

// add appends a member, and builds the index when the room has grown large enough.
func (rm *room) add(s *Socket) {
	rm.members = append(rm.members, s)
	switch n := len(rm.members); {
	case rm.index != nil:
		rm.index[s] = n - 1
	case n >= indexFrom:
		rm.index = make(map[*Socket]int, n)
		for i, m := range rm.members {
			rm.index[m] = i
		}
	}
}

// remove replaces the member by the last one, so that no other member moves.
func (rm *room) remove(s *Socket) {
	i := rm.position(s)
	if i < 0 {
		return
	}
	last := len(rm.members) - 1
	moved := rm.members[last]
	rm.members[i] = moved
	rm.members[last] = nil // for the garbage collector
	rm.members = rm.members[:last]
	if rm.index != nil {
		rm.index[moved] = i
		delete(rm.index, s)
	}
}

// position returns the index of a member in members, or -1.
func (rm *room) position(s *Socket) int {
	if rm.index == nil {
		return slices.Index(rm.members, s)
	}
	if i, ok := rm.index[s]; ok {
		return i
	}
	return -1
}
