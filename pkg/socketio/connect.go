package socketio

// How a socket connects: middlewares, the CONNECT answer, then what was emitted meanwhile.

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/parley-chat/parley/pkg/socketio/engineio"
)

// connect joins a socket to its namespace and then runs the handlers of its events. The order is:
// middlewares; the socket is added to the namespace; CONNECT answer; events emitted to the socket
// meanwhile; held broadcasts; connection handlers; the client's
// events.
func (s *Socket) connect() {
	err := s.runMiddlewares()
	if err == nil {
		err = s.subscribeID()
	}
	if err == nil && !s.client.session.Confirm() {
		err = errFull
	}
	if err != nil {
		s.refused(err)
		return
	}
	if !s.nsp.admit(s) {
		s.client.forget(s) // closed meanwhile
		return
	}
	s.begin()
}

// begin sends the CONNECT answer, runs the connection handlers, and then handles the queued events.
func (s *Socket) begin() {
	s.sendAnswer()
	s.nsp.srv.opts.Metrics.SocketConnected(s.nsp.name)
	s.releaseConnecting()
	for _, fn := range s.nsp.connectionHandlers() {
		if !s.nsp.srv.guard("connection handler", func() { fn(s) }) {
			s.Disconnect(false)
		}
	}
	s.mu.Lock()
	s.auth, s.answer = nil, nil
	s.mu.Unlock()
	s.drainInbox()
}

// runMiddlewares calls the middlewares in order until one returns an error.
func (s *Socket) runMiddlewares() error {
	ctx, cancel := context.WithCancel(s.nsp.srv.ctx)
	defer func() {
		s.mu.Lock()
		s.cancel = nil // otherwise it would keep ctx in memory
		s.mu.Unlock()
		cancel()
	}()
	s.mu.Lock()
	if s.state == socketClosed {
		s.mu.Unlock()
		return ErrDisconnected
	}
	s.cancel = cancel
	s.mu.Unlock()
	for _, fn := range s.nsp.middlewares() {
		err := errPanicked
		s.nsp.srv.guard("middleware", func() { err = fn(ctx, s) })
		if err != nil {
			return err
		}
	}
	return nil
}

// subscribeID subscribes to the socket's ID, so that other nodes can emit to it.
func (s *Socket) subscribeID() error {
	if s.nsp.srv.opts.LocalIDs {
		return nil
	}
	ctx, cancel := context.WithTimeout(s.nsp.srv.ctx, s.nsp.srv.opts.JoinTimeout)
	defer cancel()
	if err := s.nsp.adapter.Subscribe(ctx, s.id); err != nil {
		return err
	}
	s.mu.Lock()
	closed := s.state == socketClosed
	s.idSubscribed = !closed
	s.mu.Unlock()
	if closed {
		s.nsp.adapter.Unsubscribe(s.id)
		return ErrDisconnected
	}
	return nil
}

// refused sends the client the reason of the refusal.
func (s *Socket) refused(err error) {
	s.mu.Lock()
	gone := s.state == socketClosed
	s.mu.Unlock()
	s.nsp.srv.opts.Logger.Debug("socket refused", "namespace", s.nsp.name, "error", err)
	s.close(ReasonServerDisconnect) // first, so that the client may retry immediately
	switch {
	case gone:
	case s.nsp.srv.ctx.Err() != nil || errors.Is(err, errFull):
		s.client.session.Close() // makes the client reconnect, perhaps to another node; after a refusal it would not
	default:
		s.client.refuse(s.nsp.name, err)
	}
}

// sendAnswer sends the CONNECT answer, followed by the packets queued meanwhile.
func (s *Socket) sendAnswer() {
	s.client.session.Confirm() // again: if another socket of the client left meanwhile, the session is unconfirmed
	batch := []*engineio.Message{s.answerMessage()}
	for len(batch) > 0 {
		for _, m := range batch {
			_ = s.client.session.Send(m) // a closed session closes the socket
		}
		s.mu.Lock()
		batch = s.early
		s.early = nil
		if len(batch) == 0 && s.state == socketConnecting {
			s.state = socketConnected
		}
		s.mu.Unlock()
	}
}

// answerMessage returns the CONNECT answer, with the members of AddAnswer.
func (s *Socket) answerMessage() *engineio.Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	data := append([]byte(`{"sid":"`), s.id...)
	data = append(data, '"')
	data = append(append(data, s.answer...), '}')
	return engineio.NewMessage(appendPacket(nil, packet{typ: typeConnect, nsp: s.nsp.wireName, data: data}))
}

// AddAnswer adds a member to the payload of the CONNECT answer, in addition to "sid". It must be called by a
// middleware; later calls have no effect.
func (s *Socket) AddAnswer(name string, value any) error {
	data, err := json.Marshal(value)
	if err != nil {
		return err
	}
	member, err := jsontext.AppendQuote([]byte{','}, name)
	if err != nil {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answer = append(append(append(s.answer, member...), ':'), data...)
	return nil
}
