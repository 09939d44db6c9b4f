package socketio

// Acknowledgements in both directions: those that clients send for emitted events, and those of the
// handlers.

import (
	"context"
	"sync/atomic"

	"github.com/parley-chat/parley/pkg/socketio/engineio"
)

// acks are the emitted events whose acknowledgement is pending (protocol, "Acknowledgement").
type acks struct {
	next    uint64
	waiting map[uint64]func(Args, error)
}

// add registers fn under a new id. Callers must hold the socket's mu.
func (a *acks) add(fn func(Args, error)) uint64 {
	if a.waiting == nil {
		a.waiting = make(map[uint64]func(Args, error))
	}
	id := a.next
	a.next++
	a.waiting[id] = fn
	return id
}

// take removes and returns the function of an id, or nil. Callers must hold the socket's mu.
func (a *acks) take(id uint64) func(Args, error) {
	fn := a.waiting[id]
	delete(a.waiting, id)
	if len(a.waiting) == 0 {
		a.waiting = nil // frees the map of an idle socket
	}
	return fn
}

// takeAll removes and returns all functions: the socket has disconnected. Callers must hold the socket's mu.
func (a *acks) takeAll() map[uint64]func(Args, error) {
	all := a.waiting
	a.waiting = nil
	return all
}

// EmitWithAck is Emit followed by a wait for the client's acknowledgement, whose arguments it returns. It may be
// called by the socket's own handlers.
func (s *Socket) EmitWithAck(ctx context.Context, event string, args ...any) (Args, error) {
	if reservedEvent(event) {
		return Args{}, ErrReserved
	}
	data, attachments, err := encodeEvent(event, args)
	if err != nil {
		return Args{}, err
	}
	type answer struct {
		args Args
		err  error
	}
	answers := make(chan answer, 1)
	id, err := s.emitAck(data, attachments, func(args Args, err error) { answers <- answer{args, err} })
	if err != nil {
		return Args{}, err
	}
	select {
	case a := <-answers:
		return a.args, a.err
	case <-ctx.Done():
		s.takeAck(id)
		return Args{}, ctx.Err()
	}
}

// emitAck sends an encoded event. fn is called at most once, with the acknowledgement or when the socket closes.
func (s *Socket) emitAck(data []byte, attachments [][]byte, fn func(Args, error)) (uint64, error) {
	s.mu.Lock()
	if s.state == socketClosed {
		s.mu.Unlock()
		return 0, ErrDisconnected
	}
	id := s.acks.add(fn)
	s.mu.Unlock()
	m := encodeMessage(packet{typ: typeEvent, nsp: s.nsp.wireName, id: id, hasID: true, data: data}, attachments)
	if err := s.send(m); err != nil && s.takeAck(id) != nil { // otherwise close has called fn
		return 0, err
	}
	return id, nil
}

// takeAck removes and returns the function that waits for an acknowledgement, or nil.
func (s *Socket) takeAck(id uint64) func(Args, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.acks.take(id)
}

// onAck passes an acknowledgement to the waiting caller. An unknown id is not a protocol violation: the wait
// may have ended.
func (s *Socket) onAck(p packet, attachments [][]byte) error {
	args, err := decodeArgs(p.data, attachments)
	if err != nil || !p.hasID {
		return errPacket
	}
	if fn := s.takeAck(p.id); fn != nil {
		fn(args, nil)
	}
	return nil
}

// ackFunc returns the Ack for a handler of p.
func (s *Socket) ackFunc(p packet) Ack {
	if !p.hasID {
		return func(...any) error { return nil }
	}
	id := p.id
	var used atomic.Bool
	return func(args ...any) error {
		data, attachments, err := encodeArgs(args)
		if err != nil || used.Swap(true) {
			return err
		}
		answer := packet{typ: typeAck, nsp: s.nsp.wireName, id: id, hasID: true, data: data}
		return s.send(encodeMessage(answer, attachments))
	}
}

// encodeMessage encodes an event or acknowledgement, as its binary type if it has attachments.
func encodeMessage(p packet, attachments [][]byte) *engineio.Message {
	p.attachments = len(attachments)
	if p.attachments > 0 {
		p.typ += typeBinaryEvent - typeEvent
	}
	var buf [128]byte
	return engineio.NewMessageOf(appendHeader(buf[:0], p), p.data, attachments...)
}
