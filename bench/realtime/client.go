package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
)

const (
	opText  = 0x1
	opClose = 0x8
	final   = 0x80
	masked  = 0x80
)

// client is one visitor's connection: websocket, Engine.IO and the one namespace of Socket.IO, by hand, so that the
// generator does little work for each delivery. A goroutine reads it until it is closed.
type client struct {
	conn  net.Conn
	input *bufio.Reader
	room  int
	lost  atomic.Bool // the server closed it

	mu      sync.Mutex // guards receiver
	receive func(packet []byte)
}

// connect joins the visitor's room and returns when the gateway says so.
func connect(ctx context.Context, addr, token string) (*client, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	c := &client{conn: conn, input: bufio.NewReaderSize(conn, 1024)}
	stop := context.AfterFunc(ctx, c.close)
	defer stop()
	if err := c.handshake(addr, token); err != nil {
		c.close()
		return nil, err
	}
	go c.read()
	return c, nil
}

func (c *client) close() { _ = c.conn.Close() }

func (c *client) handshake(addr, token string) error {
	_, err := fmt.Fprintf(c.conn, "GET /socket.io/?EIO=4&transport=websocket HTTP/1.1\r\nHost: %s\r\n"+
		"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"+
		"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", addr)
	if err != nil {
		return err
	}
	resp, err := http.ReadResponse(c.input, nil)
	if err != nil {
		return err
	}
	_ = resp.Body.Close() // 101 has none
	if resp.StatusCode != http.StatusSwitchingProtocols {
		return fmt.Errorf("the handshake was answered with %s", resp.Status)
	}
	var buffer []byte
	for {
		packet, err := c.packet(&buffer)
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

// read passes each event to the receiver, and answers Engine.IO's pings.
func (c *client) read() {
	var buffer []byte
	for {
		packet, err := c.packet(&buffer)
		if err != nil {
			c.lost.Store(true)
			return
		}
		switch {
		case bytes.HasPrefix(packet, []byte("42")):
			c.mu.Lock()
			if c.receive != nil {
				c.receive(packet)
			}
			c.mu.Unlock()
		case bytes.Equal(packet, []byte("2")):
			_ = c.send("3")
		}
	}
}

// setReceiver calls receive with each event from now on; the event is valid during the call.
func (c *client) setReceiver(receive func(packet []byte)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.receive = receive
}

// packet reads one text frame into the buffer. No contender fragments messages.
func (c *client) packet(buffer *[]byte) ([]byte, error) {
	var head [8]byte
	if _, err := io.ReadFull(c.input, head[:2]); err != nil {
		return nil, err
	}
	opcode := head[0] & 0x0f
	length := int(head[1] & 0x7f)
	if head[0]&final == 0 || opcode == opClose {
		return nil, errors.New("a fragment, or a close frame")
	}
	switch length {
	case 126:
		if _, err := io.ReadFull(c.input, head[:2]); err != nil {
			return nil, err
		}
		length = int(binary.BigEndian.Uint16(head[:]))
	case 127:
		if _, err := io.ReadFull(c.input, head[:8]); err != nil {
			return nil, err
		}
		length = int(binary.BigEndian.Uint64(head[:]))
	}
	if cap(*buffer) < length {
		*buffer = make([]byte, length)
	}
	payload := (*buffer)[:length]
	_, err := io.ReadFull(c.input, payload)
	return payload, err
}

// send sends a text frame. Its masking key is zero, which leaves the payload unchanged: the same work for the server,
// and none for the generator.
func (c *client) send(payload string) error {
	frame := []byte{final | opText}
	if len(payload) < 126 {
		frame = append(frame, masked|byte(len(payload)))
	} else {
		frame = binary.BigEndian.AppendUint16(append(frame, masked|126), uint16(len(payload)))
	}
	frame = append(frame, 0, 0, 0, 0)
	_, err := c.conn.Write(append(frame, payload...))
	return err
}
