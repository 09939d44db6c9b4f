package rpc

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/proto-events/subject"
)

const (
	// announceTimeout limits the wait of [Conn.Announce] for the server.
	announceTimeout = 2 * time.Second
	// subscribeTimeout limits the wait for the server to process a subscription.
	subscribeTimeout = time.Second
	// maxAnnouncement is the largest payload that [Listen] decodes, in bytes. Ours have a few hundred.
	maxAnnouncement = 64 << 10
)

// Announcement is a message to the processes that listen at the moment.
type Announcement interface {
	// Subject returns the subject that the announcement is published to.
	Subject() string
	// AppendJSON appends the payload to dst.
	AppendJSON(dst []byte) []byte
}

// Signal publishes an announcement without waiting for the server. It fails while NATS is disconnected: a
// delayed announcement would be useless.
func (c *Conn) Signal(a Announcement) error {
	subj := a.Subject()
	if !subject.Literal(subj) {
		return fmt.Errorf("announcing: %w %q", nats.ErrBadSubject, subj)
	}
	if !c.nats.IsConnected() {
		return fmt.Errorf("announcing on %s: %w", subj, apperr.Unreachable("NATS", nats.ErrDisconnected))
	}
	if err := c.nats.Publish(subj, a.AppendJSON(nil)); err != nil {
		return fmt.Errorf("announcing on %s: %w", subj, apperr.Unreachable("NATS", err))
	}
	return nil
}

// Announce is [Conn.Signal] that returns after the server has received the announcement.
func (c *Conn) Announce(ctx context.Context, a Announcement) error {
	if err := c.Signal(a); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, announceTimeout)
	defer cancel()
	if err := c.nats.FlushWithContext(ctx); err != nil {
		return fmt.Errorf("announcing on %s: %w", a.Subject(), apperr.Unreachable("NATS", err))
	}
	return nil
}

// Subscribe calls handle sequentially for announcements on the subjects of filter, including those of this
// Conn, until stop is called. Each announcement reaches one subscriber of the group; with an empty group it
// reaches all.
//
// The subscription survives reconnects and can be made while NATS is disconnected. When Subscribe returns, a
// connected server has processed it. [Listen] is Subscribe with decoding.
func (c *Conn) Subscribe(filter, group string, handle func(subj string, data []byte)) (stop func(), err error) {
	stop, err = c.subscribe(filter, group, func(m *nats.Msg) { handle(m.Subject, m.Data) })
	if err == nil && c.nats.IsConnected() {
		_ = c.nats.FlushTimeout(subscribeTimeout) // while disconnected, the reconnect sends it
	}
	return stop, err
}

// subscribe subscribes with a queue group; an empty group means none.
func (c *Conn) subscribe(filter, group string, receive nats.MsgHandler) (stop func(), err error) {
	sub, err := c.nats.QueueSubscribe(filter, group, receive)
	if err != nil {
		return nil, fmt.Errorf("subscribing to %s: %w", filter, apperr.Unreachable("NATS", err))
	}
	// Unsubscribe fails only if the connection, and with it the subscription, is closed.
	return func() { _ = sub.Unsubscribe() }, nil
}

// Subscriber receives announcements; see [Conn.Subscribe].
type Subscriber interface {
	Subscribe(filter, group string, handle func(subj string, data []byte)) (stop func(), err error)
}

// Listen calls handle sequentially with announcements on the subjects of filter, until stop is called; see
// [Conn.Subscribe]. It drops announcements that are too large or that decode rejects.
func Listen[T any](
	s Subscriber,
	filter, group string,
	decode func(subj string, data []byte) (T, error),
	handle func(T),
) (stop func(), err error) {
	return s.Subscribe(filter, group, func(subj string, data []byte) {
		if len(data) > maxAnnouncement {
			return
		}
		if announced, err := decode(subj, data); err == nil {
			handle(announced)
		}
	})
}

// DecodeJSON decodes a payload for [Listen].
func DecodeJSON[T any](_ string, data []byte) (T, error) {
	var v T
	err := json.Unmarshal(data, &v)
	return v, err
}
