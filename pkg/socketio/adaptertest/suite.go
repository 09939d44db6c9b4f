// Package adaptertest tests the contract of a socketio.Adapter through clients: sockets, rooms and events
// behave the same on one node and on a cluster. Every adapter must pass Test.
package adaptertest

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"

	"github.com/parley-chat/parley/pkg/socketio"
	"github.com/parley-chat/parley/pkg/socketio/internal/testenv"
)

// Broker is the broker that connects the nodes of a cluster, such as Redis.
type Broker struct {
	// Adapter returns the adapter constructor of another node; nil: all sockets are on a single node without a broker.
	Adapter func(testing.TB) Adapter
	// Stop and Start stop and restart the broker. A single node has none.
	Stop, Start func()
}

// cluster is an emitting and a receiving node, which are the same for a single node.
type cluster struct {
	t       *testing.T
	carrier Broker
	a, b    *Node
}

// Test runs the contract on a carrier. Each test uses a separate namespace; the last one stops the carrier.
func Test(t *testing.T, carrier Broker) {
	run := func(name string, test func(*cluster)) {
		t.Run(name, func(t *testing.T) {
			c := &cluster{t: t, carrier: carrier}
			c.a = c.start()
			c.b = c.a
			if !c.single() {
				c.b = c.start()
				c.meet(c.a, c.b)
			}
			test(c)
		})
	}
	run("rooms", (*cluster).rooms)
	run("values", (*cluster).values)
	run("local", (*cluster).local)
	run("order", (*cluster).order)
	run("metadata", (*cluster).metadata)
	run("join and leave", (*cluster).joinAndLeave)
	run("join is confirmed", (*cluster).joinIsConfirmed)
	run("shared room", (*cluster).sharedRoom)
	run("fetch", (*cluster).fetch)
	run("disconnect", (*cluster).disconnect)
	run("server-side emit", (*cluster).serverSideEmit)
	if carrier.Adapter != nil {
		run("one order", (*cluster).oneOrder)
		run("node leaves", (*cluster).nodeLeaves)
	}
	if carrier.Stop != nil {
		run("outage", (*cluster).outage)
	}
}

func (c *cluster) single() bool { return c.carrier.Adapter == nil }

func (c *cluster) start() *Node {
	c.t.Helper()
	var adapter Adapter
	if !c.single() {
		adapter = c.carrier.Adapter(c.t)
	}
	return StartNode(c.t, "/"+c.t.Name(), adapter)
}

// meet waits until each node can reach all others.
func (c *cluster) meet(nodes ...*Node) {
	c.t.Helper()
	for _, n := range nodes {
		defer n.Connect(c.t, "meeting").Close()
	}
	for _, n := range nodes {
		testenv.Eventually(c.t, "a node reaches the others", func() bool {
			infos, err := n.To("meeting").FetchSockets(c.t.Context())
			return err == nil && len(infos) == len(nodes)
		})
	}
}

func (c *cluster) ok(err error) {
	c.t.Helper()
	if err != nil {
		c.t.Fatal(err)
	}
}

// rooms: an emit to several rooms reaches each socket once; Except; the room of a socket's ID; all sockets.
func (c *cluster) rooms() {
	alice, bob, eve := c.a.Connect(c.t, "room"), c.b.Connect(c.t, "room"), c.b.Connect(c.t, "other")
	c.ok(c.a.To(eve.ID).Join(c.t.Context(), "room"))
	testenv.Eventually(c.t, "eve is in both rooms", func() bool { return c.b.RoomSize("room") == c.b.SocketCount() })

	all := []*Client{alice, bob, eve}
	for _, e := range []struct {
		target  socketio.Target
		event   string
		reaches []*Client
	}{
		{c.a.To("room", "other"), "union", all},
		{c.a.To("room").Except("other"), "except a room", []*Client{alice, bob}},
		{c.a.To("room").Except(bob.ID).Volatile(), "except a socket", []*Client{alice, eve}},
		{c.a.To(bob.ID), "private", []*Client{bob}},
		{c.a.To("nobody"), "nobody", nil},
		{c.a.To().Except("other"), "all except a room", []*Client{alice, bob}},
		{c.b.To(), "all", all}, // also proves that no client received an event for others
	} {
		c.ok(e.target.Emit(e.event))
		for _, client := range e.reaches { // order is guaranteed only within a room
			client.WantEvent(fmt.Sprintf("[%q]", e.event))
		}
	}
}

// values: arguments arrive byte for byte, binary data as attachments.
func (c *cluster) values() {
	alice, bob := c.a.Connect(c.t, "room"), c.b.Connect(c.t, "room")
	c.ok(c.a.To("room").Emit("hi", json.RawMessage(`{"n": 1.0,"big":12345678901234567890123,"s":"é\u0041"}`), "offset", -3, 1.5, nil, true))
	c.ok(c.a.To("room").Emit("bytes", []byte{1, 2}, map[string]any{"b": []byte{3}}))
	for _, client := range []*Client{alice, bob} {
		client.WantEvent(`["hi",{"n": 1.0,"big":12345678901234567890123,"s":"é\u0041"},"offset",-3,1.5,null,true]`)
		client.Want("452-"+client.prefix+`["bytes",{"_placeholder":true,"num":0},{"b":{"_placeholder":true,"num":1}}]`, "\x01\x02", "\x03")
	}
}

// local: Local reaches only the sockets of the emitting node.
func (c *cluster) local() {
	alice, bob := c.a.Connect(c.t, "room"), c.b.Connect(c.t, "room")
	c.ok(c.a.To("room").Local().Emit("local"))
	c.ok(c.a.To("room").Emit("all"))
	alice.WantEvent(`["local"]`, `["all"]`)
	if c.single() {
		bob.WantEvent(`["local"]`)
	}
	bob.WantEvent(`["all"]`)
}

// order: events of one node to a room arrive in order, emitted singly or in a batch, also on the emitting node.
func (c *cluster) order() {
	const many = 50
	here, there := c.a.Connect(c.t, "red"), c.b.Connect(c.t, "blue")
	var together []*socketio.Broadcast
	for i := range 2 * many {
		for _, room := range []string{"red", "blue"} {
			if i < many {
				c.ok(c.a.To(room).Emit(room, i))
				continue
			}
			together = append(together, &socketio.Broadcast{Selection: socketio.Selection{Rooms: []string{room}}, Data: fmt.Appendf(nil, `["%s",%d]`, room, i)})
		}
	}
	if errs := c.a.EmitAll(c.t.Context(), together); errs != nil && slices.ContainsFunc(errs, func(err error) bool { return err != nil }) {
		c.t.Fatal(errs)
	}
	for i := range 2 * many {
		here.WantEvent(fmt.Sprintf(`["red",%d]`, i))
		there.WantEvent(fmt.Sprintf(`["blue",%d]`, i))
	}
}

// oneOrder: batches of several nodes to a room reach all its sockets in the same order.
func (c *cluster) oneOrder() {
	const batches, size = 20, 3
	here, there := c.a.Connect(c.t, "room"), c.b.Connect(c.t, "room")
	emitted := make(chan error, 2)
	for i, n := range []*Node{c.a, c.b} {
		go func() {
			var errs []error
			for k := range batches {
				batch := make([]*socketio.Broadcast, size)
				for j := range batch {
					batch[j] = &socketio.Broadcast{Selection: socketio.Selection{Rooms: []string{"room"}}, Data: fmt.Appendf(nil, `["e",%d,%d]`, i, k*size+j)}
				}
				errs = append(errs, n.EmitAll(c.t.Context(), batch)...)
			}
			emitted <- errors.Join(errs...)
		}()
	}
	c.ok(<-emitted)
	c.ok(<-emitted)
	for i := range 2 * batches * size {
		if got, want := there.next(), here.next(); got != want {
			c.t.Fatalf("event %d: got %s on one node and %s on the other, want one order", i, got, want)
		}
	}
}

// metadata: a broadcast's metadata is sent to the other nodes, but not to the sockets.
func (c *cluster) metadata() {
	some := map[string]string{"offset": "12", "text": `"å"`}
	got := make(chan map[string]string, 3)
	c.b.OnBroadcast(func(m *socketio.Broadcast) int { got <- m.Metadata; return c.b.EmitLocal(m) })
	bob := c.b.Connect(c.t, "room")
	for i, want := range []map[string]string{some, nil, some} {
		event := &socketio.Broadcast{Selection: socketio.Selection{Rooms: []string{"room"}}, Data: fmt.Appendf(nil, `["e",%d]`, i), Metadata: want}
		if i == 2 {
			event.Volatile, event.Except = true, []string{"nobody"}
		}
		for _, err := range c.a.EmitAll(c.t.Context(), []*socketio.Broadcast{event}) {
			c.ok(err)
		}
		bob.WantEvent(fmt.Sprintf(`["e",%d]`, i))
		if metadata := <-got; !maps.Equal(metadata, want) {
			c.t.Errorf("event %d: got metadata %q, want %q", i, metadata, want)
		}
	}
}

// joinAndLeave: sockets on all nodes join and leave rooms.
func (c *cluster) joinAndLeave() {
	alice, bob := c.a.Connect(c.t, "room"), c.b.Connect(c.t, "room")
	c.ok(c.a.To("room").Join(c.t.Context(), "more"))
	testenv.Eventually(c.t, "bob joins", func() bool { return c.b.RoomSize("more") == len(c.b.Sockets()) })
	c.ok(c.a.To("more").Emit("to more"))
	alice.WantEvent(`["to more"]`)
	bob.WantEvent(`["to more"]`)
	c.ok(c.b.To("more").Except(bob.ID).Leave(c.t.Context(), "more"))
	testenv.Eventually(c.t, "alice leaves", func() bool { return !slices.Contains(c.a.Socket(alice.ID).Rooms(), "more") })
	c.ok(c.a.To("more").Emit("to bob"))
	bob.WantEvent(`["to bob"]`)
	c.ok(c.a.To("room").Emit("to both"))
	alice.WantEvent(`["to both"]`)
	bob.WantEvent(`["to both"]`)
}

// joinIsConfirmed: a socket that has its CONNECT answer receives events emitted by other nodes from then on.
func (c *cluster) joinIsConfirmed() {
	for i := range 50 {
		room := fmt.Sprint("r", i%3) // rooms are left and joined again
		bob := c.b.Connect(c.t, room)
		c.ok(c.a.To(room).Emit("n", i))
		bob.WantEvent(fmt.Sprintf(`["n",%d]`, i))
		bob.Close()
	}
}

// sharedRoom: a room stays subscribed while it has a socket on the node.
func (c *cluster) sharedRoom() {
	bob, eve := c.b.Connect(c.t, "room"), c.b.Connect(c.t, "room")
	eve.Close()
	testenv.Eventually(c.t, "eve has left", func() bool { return c.b.RoomSize("room") == 1 })
	c.ok(c.a.To("room").Emit("still"))
	bob.WantEvent(`["still"]`)
}

// fetch: FetchSockets returns the sockets of all nodes.
func (c *cluster) fetch() {
	alice, bob, eve := c.a.Connect(c.t, "room"), c.b.Connect(c.t, "room"), c.b.Connect(c.t, "other")
	c.b.Socket(bob.ID).SetData(map[string]any{"name": "Bob"})
	for _, want := range []struct {
		target socketio.Target
		ids    []string
	}{
		{c.a.To("room"), []string{alice.ID, bob.ID}},
		{c.a.To("room").Except(alice.ID), []string{bob.ID}},
		{c.a.To(), []string{alice.ID, bob.ID, eve.ID}},
		{c.a.To("nobody"), nil},
	} {
		infos, err := want.target.FetchSockets(c.t.Context())
		c.ok(err)
		var ids []string
		for _, info := range infos {
			ids = append(ids, info.ID)
			if info.ID != bob.ID {
				continue
			}
			var handshake struct{ Query struct{ EIO string } }
			c.ok(json.Unmarshal(info.Handshake, &handshake))
			if string(info.Data) != `{"name":"Bob"}` || handshake.Query.EIO != "4" || !slices.Equal(info.Rooms, []string{bob.ID, "room"}) {
				c.t.Errorf("got %+v with data %s and handshake %s", info, info.Data, info.Handshake)
			}
		}
		slices.Sort(ids)
		slices.Sort(want.ids)
		if !slices.Equal(ids, want.ids) {
			c.t.Errorf("got sockets %v, want %v", ids, want.ids)
		}
	}
}

// disconnect: sockets on all nodes leave the namespace, and close their connections if requested.
func (c *cluster) disconnect() {
	alice, bob, eve := c.a.Connect(c.t, "room"), c.b.Connect(c.t, "room"), c.b.Connect(c.t, "other")
	c.ok(c.a.DisconnectSockets("room"))
	alice.WantDisconnect()
	bob.WantDisconnect()
	c.ok(c.a.To("other").DisconnectSockets(c.t.Context(), true))
	eve.WantClose()
	testenv.Eventually(c.t, "nobody is left", func() bool { return c.a.SocketCount() == 0 && c.b.SocketCount() == 0 })
}

// serverSideEmit: each other node receives the event once, the emitting node does not.
func (c *cluster) serverSideEmit() {
	nodes := []*Node{c.a}
	if !c.single() {
		nodes = append(nodes, c.b, c.start())
		c.meet(nodes...)
	}
	var own atomic.Int64
	events := make(chan string, 8)
	for i, n := range nodes {
		n.OnServerSideEmit(func(event string, args socketio.Args, _ func(any)) {
			if i == 0 {
				own.Add(1)
				return
			}
			events <- fmt.Sprint(i, event, args.String(0))
		})
	}
	c.ok(c.a.ServerSideEmit(c.t.Context(), "to-servers", "1"))
	c.ok(c.a.ServerSideEmit(c.t.Context(), "to-servers", "2"))
	var got []string
	for range 2 * (len(nodes) - 1) {
		got = append(got, <-events)
	}
	slices.Sort(got)
	if want := []string{"1to-servers1", "1to-servers2", "2to-servers1", "2to-servers2"}; !c.single() && !slices.Equal(got, want) {
		c.t.Errorf("got %v, want %v", got, want)
	}
	if n := own.Load(); n != 0 || len(events) != 0 {
		c.t.Errorf("got %d events of the node's own and %d more, want none", n, len(events))
	}
}

// nodeLeaves: requests do not wait for a node that has closed.
func (c *cluster) nodeLeaves() {
	gone := c.start()
	c.meet(c.a, c.b, gone)
	bob := c.b.Connect(c.t, "room")
	c.ok(gone.close())
	testenv.Eventually(c.t, "the nodes that are left answer", func() bool {
		infos, err := c.a.To("room").FetchSockets(c.t.Context())
		return err == nil && len(infos) == 1
	})
	c.ok(c.a.To("room").Emit("left"))
	bob.WantEvent(`["left"]`)
}

// outage: without the carrier an emit fails and reaches no socket, not even a local one; when it is back,
// rooms work as before.
func (c *cluster) outage() {
	alice, bob := c.a.Connect(c.t, "room"), c.b.Connect(c.t, "room")
	c.carrier.Stop()
	if err := c.a.To("room").Emit("lost"); err == nil {
		c.t.Error("emit without the carrier: got no error, want one")
	}
	c.ok(c.a.To("room").Local().Emit("local"))
	c.carrier.Start()
	alice.WantEvent(`["local"]`)
	testenv.Eventually(c.t, "an event reaches the other node", func() bool { return c.a.To("room").Emit("again") == nil && len(bob.received) > 0 })
	alice.WantEvent(`["again"]`)
	bob.WantEvent(`["again"]`)
}
