package main

import (
	"bytes"
	"errors"
	"fmt"
)

// state is a client's progress in connecting and joining its room.
type state uint8

const (
	dialing   state = iota
	upgrading       // waits for 101
	opening         // waits for Engine.IO's open packet
	joining         // waits for Socket.IO's CONNECT answer
	joined
	gone
)

// client is one visitor's connection. Only the pool's loop accesses it.
type client struct {
	fd    int
	index int // its index among the pool's clients
	state state
	room  int
	group *group
	hello *hello
	rest  []byte // incomplete input
}

// hello is the prepared data that a client sends: many clients share the request, each has its own token.
type hello struct {
	request []byte // the websocket handshake
	connect []byte // the frame with Socket.IO's CONNECT and the visitor's token
}

var errClosed = errors.New("the server closed the connection")

func upgradeRequest(addr string) []byte {
	return []byte("GET /socket.io/?EIO=4&transport=websocket HTTP/1.1\r\nHost: " + addr +
		"\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n")
}

func connectFrame(token string) []byte {
	return appendClientFrame(nil, `40/message,{"token":"`+token+`"}`)
}

// pong is the reply to Engine.IO's ping.
var pong = appendClientFrame(nil, "3")

// read processes input from the server. out is what the client has to send, if anything. events is called with each
// event's payload, which it must not keep.
func (c *client) read(b []byte, events func(*client, []byte)) (out []byte, err error) {
	if len(c.rest) > 0 {
		c.rest = append(c.rest, b...)
		b = c.rest
	}
	if c.state == upgrading {
		if b, err = c.upgraded(b); err != nil {
			return nil, err
		}
	}
	for c.state != upgrading {
		opcode, payload, rest, ok, err := nextFrame(b)
		if err != nil {
			return nil, err
		}
		if !ok {
			break
		}
		b = rest
		if opcode == opClose {
			return nil, errClosed
		}
		if opcode != opText {
			continue
		}
		answer, err := c.packet(payload, events)
		if err != nil {
			return nil, err
		}
		if answer != nil {
			out = answer
		}
	}
	c.keep(b)
	return out, nil
}

// upgraded removes the HTTP response from b once it is complete.
func (c *client) upgraded(b []byte) ([]byte, error) {
	head, rest, whole := bytes.Cut(b, []byte("\r\n\r\n"))
	if !whole {
		return b, nil
	}
	if !bytes.HasPrefix(head, []byte("HTTP/1.1 101")) {
		line, _, _ := bytes.Cut(head, []byte("\r\n"))
		return nil, fmt.Errorf("the handshake was answered with %q", line)
	}
	c.state = opening
	return rest, nil
}

// packet handles one Engine.IO packet.
func (c *client) packet(p []byte, events func(*client, []byte)) (out []byte, err error) {
	switch {
	case len(p) == 0:
		return nil, errors.New("an empty packet")
	case p[0] == '2':
		return pong, nil
	case p[0] == '0' && c.state == opening:
		c.state = joining
		return c.hello.connect, nil
	case bytes.HasPrefix(p, []byte("42")):
		events(c, p)
		return nil, nil
	case bytes.HasPrefix(p, []byte("40/message,")) && c.state == joining:
		c.state = joined
		return nil, nil
	default:
		return nil, fmt.Errorf("got the packet %.80q", p)
	}
}

// keep copies the rest of b, which is in the loop's buffer or in c.rest itself.
func (c *client) keep(b []byte) {
	if len(b) == 0 && cap(c.rest) > 4096 {
		c.rest = nil
	}
	c.rest = append(c.rest[:0], b...)
}
