package main

import (
	"bytes"
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/gorilla/websocket"
)

// client is one visitor's connection: Engine.IO and the one namespace of Socket.IO, by hand on a websocket, so that the
// generator does little work for each delivery. A goroutine reads it until it is closed.
type client struct {
	conn   *websocket.Conn
	buffer bytes.Buffer // the last packet
	room   int
	lost   atomic.Bool           // the server closed it
	tally  atomic.Pointer[tally] // of the current trial; nil: none
}

// connect joins the visitor's room and returns when the gateway says so.
func connect(ctx context.Context, addr, token string, room int) (*client, error) {
	dialer := websocket.Dialer{ReadBufferSize: 1024, WriteBufferSize: 1024}
	conn, response, err := dialer.DialContext(ctx, "ws://"+addr+"/socket.io/?EIO=4&transport=websocket", nil)
	if response != nil {
		response.Body.Close()
	}
	if err != nil {
		return nil, err
	}
	c := &client{conn: conn, room: room}
	stop := context.AfterFunc(ctx, c.close)
	defer stop()
	if err := c.join(token); err != nil {
		c.close()
		return nil, err
	}
	go c.read()
	return c, nil
}

func (c *client) close() { _ = c.conn.Close() }

func (c *client) send(packet string) error {
	return c.conn.WriteMessage(websocket.TextMessage, []byte(packet))
}

// packet reads a packet of Engine.IO, which is valid until the next call.
func (c *client) packet() ([]byte, error) {
	_, message, err := c.conn.NextReader()
	if err != nil {
		return nil, err
	}
	c.buffer.Reset()
	_, err = c.buffer.ReadFrom(message)
	return c.buffer.Bytes(), err
}

func (c *client) join(token string) error {
	for {
		packet, err := c.packet()
		switch {
		case err != nil:
			return err
		case bytes.HasPrefix(packet, []byte("0")):
			err = c.send(`40/message,{"token":"` + token + `"}`)
		case bytes.HasPrefix(packet, []byte("40/message,")):
			return nil
		case bytes.HasPrefix(packet, []byte("44")):
			return fmt.Errorf("the namespace refused: %s", packet)
		}
		if err != nil {
			return err
		}
	}
}

// read counts each event, and answers Engine.IO's pings.
func (c *client) read() {
	for {
		packet, err := c.packet()
		if err != nil {
			c.lost.Store(true)
			return
		}
		switch {
		case bytes.HasPrefix(packet, []byte("42")):
			if t := c.tally.Load(); t != nil {
				t.note(packet, time.Now())
			}
		case bytes.Equal(packet, []byte("2")):
			_ = c.send("3")
		}
	}
}
