package socketio

// The way of a broadcast on a node: Target encodes it, the adapter publishes it, emit gives it to the local
// sockets (hold.go). Commands that change many sockets take the same way.

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync/atomic"
	"time"
)

// Target selects sockets of a namespace on all nodes for an emit or a command. It is a value:
// its methods return changed copies.
type Target struct {
	nsp      *Namespace
	sel      Selection
	local    bool
	volatile bool
}

// To selects the sockets in any of rooms; without rooms, all sockets of the namespace.
func (n *Namespace) To(rooms ...string) Target {
	return Target{nsp: n, sel: Selection{Rooms: rooms}}
}

// Local selects all sockets of this node.
func (n *Namespace) Local() Target { return Target{nsp: n, local: true} }

// Emit sends an event to all sockets of the namespace on all nodes; see Target.Emit.
func (n *Namespace) Emit(event string, args ...any) error { return n.To().Emit(event, args...) }

// DisconnectSockets disconnects the sockets in room on all nodes; see Target.DisconnectSockets.
func (n *Namespace) DisconnectSockets(room string) error {
	return n.To(room).DisconnectSockets(context.Background(), false)
}

// To adds rooms.
func (t Target) To(rooms ...string) Target {
	t.sel.Rooms = append(slices.Clip(t.sel.Rooms), rooms...)
	return t
}

// Except excludes the sockets in any of rooms.
func (t Target) Except(rooms ...string) Target {
	t.sel.Except = append(slices.Clip(t.sel.Except), rooms...)
	return t
}

// Local excludes the sockets of other nodes.
func (t Target) Local() Target {
	t.local = true
	return t
}

// Volatile drops the event for sockets that cannot send it immediately.
func (t Target) Volatile() Target {
	t.volatile = true
	return t
}

// Emit is EmitContext with only the adapter's own timeout.
func (t Target) Emit(event string, args ...any) error {
	return t.EmitContext(context.Background(), event, args...)
}

// EmitContext sends an event; for its arguments see Socket.Emit. It first publishes the event
// to the other nodes: if that fails, it returns the error and no local socket gets the event
// either, so that the caller can retry. Sockets that read too slowly are closed without an error.
func (t Target) EmitContext(ctx context.Context, event string, args ...any) error {
	if reservedEvent(event) {
		return ErrReserved
	}
	data, attachments, err := encodeEvent(event, args)
	if err != nil {
		return err
	}
	b := &Broadcast{Selection: t.sel, Data: data, Attachments: attachments, Volatile: t.volatile}
	if !t.local {
		if err := t.nsp.adapter.Publish(ctx, b); err != nil {
			return err
		}
	}
	t.nsp.handleBroadcast(b)
	return nil
}

// EmitAll publishes a batch of encoded events to all nodes, this one included, which costs far less than one
// Emit for each. With an [OrderedAdapter] local sockets receive them through the broker too, so that all sockets
// of a room see the events of several nodes in the same order; with other adapters local sockets receive them as
// from Emit. The Data of each event must be valid JSON in UTF-8, an array whose first element is the event's
// name; this is not checked. EmitAll returns nil, or one error or nil for each event, in order: an event that
// was not published has not reached local sockets either.
func (n *Namespace) EmitAll(ctx context.Context, events []*Broadcast) []error {
	if a, ok := n.adapter.(OrderedAdapter); ok {
		return a.PublishOrdered(ctx, events)
	}
	errs := make([]error, len(events))
	for i, b := range events {
		errs[i] = n.adapter.Publish(ctx, b)
		if errs[i] == nil {
			n.handleBroadcast(b)
		}
	}
	return errs
}

// Join adds the sockets to rooms, on all nodes. It does not wait for other nodes.
func (t Target) Join(ctx context.Context, rooms ...string) error {
	return t.command(ctx, Command{Selection: t.sel, Join: rooms})
}

// Leave removes the sockets from rooms, on all nodes.
func (t Target) Leave(ctx context.Context, rooms ...string) error {
	return t.command(ctx, Command{Selection: t.sel, Leave: rooms})
}

// DisconnectSockets disconnects the sockets on all nodes, and closes their connections if closeConnection is
// set.
func (t Target) DisconnectSockets(ctx context.Context, closeConnection bool) error {
	return t.command(ctx, Command{Selection: t.sel, Disconnect: true, Close: closeConnection})
}

// command executes a command on all nodes: on the others by the adapter, then here.
func (t Target) command(ctx context.Context, c Command) error {
	var err error
	if !t.local {
		err = t.nsp.adapter.Command(ctx, c)
	}
	return errors.Join(err, t.nsp.apply(ctx, c))
}

// FetchSockets returns the sockets on all nodes.
func (t Target) FetchSockets(ctx context.Context) ([]SocketInfo, error) {
	infos := local{t.nsp}.LocalSockets(t.sel)
	if t.local {
		return infos, nil
	}
	others, err := t.nsp.adapter.FetchSockets(ctx, t.sel)
	return append(infos, others...), err
}

// emit encodes b once and enqueues it for the sockets of this node that it selects.
func (n *Namespace) emit(b *Broadcast) int {
	var few [8]*Socket // most rooms are small
	sockets := n.selected(b.Selection, few[:0])
	if len(sockets) > 0 {
		m := encodeMessage(packet{typ: typeEvent, nsp: n.wireName, data: b.Data}, b.Attachments)
		for _, s := range sockets {
			s.enqueue(m, b)
		}
	}
	n.srv.delivered.Add(int64(len(sockets)))
	n.srv.opts.Metrics.Delivered(n.name, len(sockets))
	return len(sockets)
}

// first returns the first argument, the part of an acknowledgement that nodes exchange.
func (a Args) first() json.RawMessage {
	if a.Len() == 0 {
		return json.RawMessage("null")
	}
	return a.values[0]
}

// emitWithAck sends b to each socket with a separate acknowledgement id. ack is called with the
// first argument of each acknowledgement, until the timeout.
func (n *Namespace) emitWithAck(b *Broadcast, timeout time.Duration, ack func(json.RawMessage)) int {
	sockets := n.selected(b.Selection, nil)
	pending := make(map[*Socket]uint64, len(sockets))
	var left atomic.Int64
	done := make(chan struct{})
	answered := func(args Args, err error) {
		if err == nil {
			ack(args.first())
		}
		if left.Add(-1) == 0 {
			close(done)
		}
	}
	left.Store(1) // so that done is not closed before the end of the loop
	for _, s := range sockets {
		left.Add(1)
		id, err := s.emitAck(b.Data, b.Attachments, answered)
		if err != nil {
			left.Add(-1)
			continue
		}
		pending[s] = id
	}
	answered(Args{}, ErrDisconnected)
	n.srv.wg.Add(1) // Shutdown closes the calling adapter after wg
	go func() {
		defer n.srv.wg.Done()
		n.forgetAcks(pending, timeout, done)
	}()
	return len(pending)
}

// forgetAcks cancels the acknowledgements that do not arrive in time.
func (n *Namespace) forgetAcks(pending map[*Socket]uint64, timeout time.Duration, done <-chan struct{}) {
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	select {
	case <-done:
		return
	case <-timer.C:
	case <-n.srv.ctx.Done():
	}
	for s, id := range pending {
		s.takeAck(id)
	}
}

// apply executes a command on the sockets of this node.
func (n *Namespace) apply(ctx context.Context, c Command) error {
	var errs []error
	for _, s := range n.selected(c.Selection, nil) {
		switch {
		case len(c.Join) > 0:
			errs = append(errs, s.JoinContext(ctx, c.Join...))
		case len(c.Leave) > 0:
			s.Leave(c.Leave...)
		case c.Disconnect:
			s.Disconnect(c.Close)
		}
	}
	return errors.Join(errs...)
}
