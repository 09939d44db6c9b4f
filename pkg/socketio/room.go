package socketio

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

type roomShard struct {
	mu     sync.RWMutex
	byName map[string]*room
}

type room struct {
	members []*Socket
	index   map[*Socket]int
}

func newRooms() *rooms {
	r := &rooms{seed: maphash.MakeSeed()}
	for i := range r.shards {
		r.shards[i].byName = make(map[string]*room)
	}
	return r
}

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

func (r *rooms) size(name string) int {
	shard := r.shard(name)
	shard.mu.RLock()
	defer shard.mu.RUnlock()
	if rm := shard.byName[name]; rm != nil {
		return len(rm.members)
	}
	return 0
}

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

func (rm *room) position(s *Socket) int {
	if rm.index == nil {
		return slices.Index(rm.members, s)
	}
	if i, ok := rm.index[s]; ok {
		return i
	}
	return -1
}
