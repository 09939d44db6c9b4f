package realtime

import (
	"slices"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/socketio"
	"github.com/parley-chat/parley/services/socket-gateway/internal/metadata"
)

// audience notes what a namespace would have delivered.
type audience struct {
	got    []uint64
	except []int
	empty  bool
	asked  int // receipts
}

func (a *audience) EmitLocal(b *socketio.Broadcast) int {
	a.got = append(a.got, metadata.Of(b).Offset)
	a.except = append(a.except, len(b.Except))
	return a.RoomSize("room")
}

func (a *audience) RoomSize(string) int {
	if a.empty {
		return 0
	}
	return 1
}

func (a *audience) Socket(string) *socketio.Socket { return nil }

func newTestRooms(t *testing.T, a *audience) *rooms {
	t.Helper()
	metrics, err := NewMetrics(nil)
	if err != nil {
		t.Fatal(err)
	}
	return newRooms(roomsConfig{sockets: a, metrics: metrics, now: time.Now, receipt: func(string, metadata.Receipt) { a.asked++ }})
}

func eventAt(offset uint64) *socketio.Broadcast {
	return describedAt(metadata.Metadata{Offset: offset})
}

func describedAt(m metadata.Metadata) *socketio.Broadcast {
	b := &socketio.Broadcast{Selection: socketio.Selection{Rooms: []string{"room"}}, Data: []byte(`["message",{},"1"]`)}
	m.Put(b)
	return b
}

func arrive(r *rooms, offsets ...uint64) {
	for _, o := range offsets {
		r.handleBroadcast(eventAt(o))
	}
}

func TestRoomTakesEachEventOnceAndInOrder(t *testing.T) {
	t.Parallel()
	a := &audience{empty: true}
	r := newTestRooms(t, a)
	r.open("room", "company", 10)
	a.empty = false
	arrive(r, 9, 10, 11, 13, 11, 12, 13, 14)
	r.open("room", "company", 20) // a second socket: events in flight to the first one are still delivered
	arrive(r, 15)
	if want := []uint64{11, 13, 14, 15}; !slices.Equal(a.got, want) {
		t.Errorf("got %v, want %v", a.got, want)
	}
	r.resetOffsets()
	arrive(r, 1)
	if a.got[len(a.got)-1] != 1 {
		t.Error("got no event from the recreated stream, want its first")
	}
	other := eventAt(1)
	other.Metadata = nil // of another emitter
	r.handleBroadcast(other)
	if len(a.got) != 6 {
		t.Errorf("got %d events, want that without an offset as well", len(a.got))
	}
}

// A socket that has read more of the stream than the room is left out until the room has caught up.
func TestRoomLeavesOutWhoIsAhead(t *testing.T) {
	t.Parallel()
	a := &audience{}
	r := newTestRooms(t, a)
	r.open("room", "company", 0)
	arrive(r, 1)
	r.markReplayed("room", "socket", 3)
	r.markReplayed("room", "other", 2)
	r.markReplayed("room", "not ahead", 1)
	arrive(r, 2, 3, 4)
	if want := []int{0, 2, 1, 0}; !slices.Equal(a.except, want) {
		t.Errorf("got %v sockets left out, want %v", a.except, want)
	}
}

func TestRoomsHoldOverAGap(t *testing.T) {
	t.Parallel()
	a := &audience{}
	r := newTestRooms(t, a)
	r.open("room", "company", 0)
	arrive(r, 1)
	r.pause()
	pauses := r.pauses()
	arrive(r, 5, 6)
	for _, missed := range []uint64{2, 3, 4, 5} {
		r.replay(eventAt(missed))
	}
	if !r.resume(5, pauses) {
		t.Fatal("got no release, want one")
	}
	arrive(r, 7)
	if want := []uint64{1, 2, 3, 4, 5, 6, 7}; !slices.Equal(a.got, want) {
		t.Errorf("got %v, want %v", a.got, want)
	}
}

// Losing Redis again, or more than there is room for, makes the replay go on.
func TestRoomsHoldOn(t *testing.T) {
	t.Parallel()
	a := &audience{}
	r := newTestRooms(t, a)
	r.open("room", "company", 0)
	r.pause()
	pauses := r.pauses()
	for o := uint64(2); o < pausedLimit+10; o++ {
		arrive(r, o)
	}
	if len(r.paused.events) > pausedLimit {
		t.Errorf("got %d events buffered, want at most %d", len(r.paused.events), pausedLimit)
	}
	if r.resume(pausedLimit, pauses) {
		t.Error("got a release before all dropped events are replayed, want none")
	}
	for o := uint64(1); o <= pausedLimit+1; o++ {
		r.replay(eventAt(o))
	}
	r.pause()
	if r.resume(pausedLimit+1, pauses) {
		t.Error("got a release during another loss, want none")
	}
	if !r.resume(pausedLimit+1, r.pauses()) {
		t.Error("got no release, want one")
	}
	if len(a.got) != pausedLimit+9 || !slices.IsSorted(a.got) {
		t.Errorf("got %d events, want all %d in order", len(a.got), pausedLimit+9)
	}
}

func TestRoomsAreForgotten(t *testing.T) {
	t.Parallel()
	now := time.Unix(1_800_000_000, 0)
	a := &audience{}
	r := newTestRooms(t, a)
	r.now = func() time.Time { return now }
	r.open("room", "company", 1)
	for _, step := range []struct {
		empty bool
		after time.Duration
		left  int
	}{{true, roomGrace / 2, 1}, {false, time.Hour, 1}, {true, 0, 0}} {
		now, a.empty = now.Add(step.after), step.empty
		if r.sweep(); len(r.byName) != step.left {
			t.Errorf("got %d rooms after %s, want %d", len(r.byName), step.after, step.left)
		}
	}
}

func TestOffsets(t *testing.T) {
	t.Parallel()
	stream := time.Unix(1_800_000_000, 5)
	place := bus.Place{Sequence: 123456, Time: time.UnixMilli(1_800_000_000_789)}
	shown := formatOffset(place)
	if got, ok := parseOffset(shown); got != place || !ok {
		t.Errorf("got %v %t from %s, want %v", got, ok, shown, place)
	}
	for _, wrong := range []string{"", "12", "12.", ".1", "0" + shown, "-" + shown, shown + "Z", "18446744073709551616.1"} {
		if got, ok := parseOffset(wrong); ok {
			t.Errorf("%q: got %v, want it refused", wrong, got)
		}
	}
	pid := newPID(place, stream)
	if got, ok := parsePID(pid, stream); got != place || !ok || pid == newPID(place, stream) {
		t.Errorf("got %v %t from %s, want %v and another one next time", got, ok, pid, place)
	}
	for _, wrong := range []string{"", "x", "1.2", "1.2.3", "-1" + pid[3:], pid + ".x", newPID(place, stream.Add(1))} {
		if got, ok := parsePID(wrong, stream); ok {
			t.Errorf("%q: got %v, want it refused", wrong, got)
		}
	}
}

// An event that found no room when it arrived does not reach a socket that joins afterwards: that has read it
// from the stream.
func TestEventForARoomThatIsNotHosted(t *testing.T) {
	t.Parallel()
	a := &audience{}
	r := newTestRooms(t, a)
	arrive(r, 1)
	part := eventAt(0)
	metadata.Metadata{Part: metadata.Part{MessageID: "m", N: 1}}.Put(part)
	r.handleBroadcast(part)
	if len(a.got) != 0 {
		t.Errorf("got %v delivered, want nothing", a.got)
	}
}
