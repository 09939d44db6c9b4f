package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/bench/internal/rig"
	"github.com/parley-chat/parley/pkg/chat"
)

// bare is the upper bound of a broadcast: it holds connections like a gateway, one goroutine each, and writes prebuilt
// frames. It validates nothing, and implements only the Socket.IO packets that let a client connect.
type bare struct {
	mu    sync.Mutex
	conns []net.Conn
}

// serveBare prints BARE_ADDR=... and serves until it is stopped.
func serveBare() error {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	fmt.Printf("BARE_ADDR=%s\n", ln.Addr())
	return new(bare).serve(ln)
}

func (b *bare) serve(ln net.Listener) error {
	for {
		c, err := ln.Accept()
		if err != nil {
			return err
		}
		go b.handle(c)
	}
}

func (b *bare) handle(c net.Conn) {
	defer c.Close()
	r := bufio.NewReaderSize(c, 1024)
	req, err := http.ReadRequest(r)
	if err != nil {
		return
	}
	if req.URL.Path == "/broadcast" {
		b.broadcast(req.URL.Query())
		_, _ = c.Write([]byte("HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"))
		return
	}
	answer := []byte("HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
	if _, err := c.Write(appendServerFrame(answer, []byte(`0{"sid":"bare"}`))); err != nil {
		return
	}
	buf := make([]byte, 1024) // fits a CONNECT with its token
	if _, err := c.Read(buf); err != nil {
		return
	}
	b.mu.Lock()
	b.conns = append(b.conns, c)
	b.mu.Unlock()
	if _, err := c.Write(appendServerFrame(nil, []byte(`40/message,{"sid":"bare"}`))); err != nil {
		return
	}
	for {
		if _, err := c.Read(buf); err != nil {
			return
		}
	}
}

// broadcast builds all frames, and then writes each of them to all connections.
func (b *bare) broadcast(q url.Values) {
	number := func(name string) int { n, _ := strconv.Atoi(q.Get(name)); return n }
	frames := make([][]byte, number("events"))
	for i := range frames {
		frames[i] = appendServerFrame(nil, deliveryPacket(mark{trial: number("trial"), sequence: i + 1}))
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, f := range frames {
		for _, c := range b.conns {
			_, _ = c.Write(f) // the generator counts a disconnected client as lost
		}
	}
}

// deliveryPacket returns an event in the Socket gateway's format.
func deliveryPacket(m mark) []byte {
	message := chat.Message{
		ID:            uuid.NewString(),
		CreatedAt:     time.Now(),
		Type:          chat.Text,
		Data:          m.appendData(nil),
		NameOfSender:  "Support",
		IsFromSupport: true,
	}
	packet := message.AppendDelivery([]byte(`42/message,["message",`), uuid.NewString())
	return append(packet, ']')
}

// openBare starts the bare loop as a process and returns a stage on which it replaces gateways and bus.
func (b *bench) openBare() (*stage, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	p, err := rig.Start(nil, filepath.Join(b.dir, "bare.log"), self, "-role=bare")
	if err != nil {
		return nil, err
	}
	s := &stage{gateways: []*rig.Process{p}, visitors: b.visitors.list, epoch: time.Now()}
	vars, err := p.ReadVariables("BARE_ADDR")
	if err == nil {
		err = s.joinBare(vars["BARE_ADDR"])
	}
	if err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *stage) joinBare(addr string) (err error) {
	at, err := netip.ParseAddrPort(addr)
	if err != nil {
		return err
	}
	s.addrs, s.requests = []netip.AddrPort{at}, [][]byte{upgradeRequest(addr)}
	s.publish = func(ctx context.Context, l load, trial int, _ time.Time) (int, error) {
		return 0, askBare(ctx, addr, trial, l.total)
	}
	s.pool, err = newPool()
	return err
}

func askBare(ctx context.Context, addr string, trial, events int) error {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	if _, err := fmt.Fprintf(c, "GET /broadcast?trial=%d&events=%d HTTP/1.1\r\nHost: %s\r\n\r\n", trial, events, addr); err != nil {
		return err
	}
	var answer bytes.Buffer
	if _, err := answer.ReadFrom(c); err != nil {
		return err
	}
	if !strings.HasPrefix(answer.String(), "HTTP/1.1 204") {
		return fmt.Errorf("the bare loop answered %.80q", answer.String())
	}
	return nil
}
