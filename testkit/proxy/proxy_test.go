package proxy_test

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/parley-chat/parley/testkit/nettest"
	"github.com/parley-chat/parley/testkit/proxy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// soon is how long an echo may take; never is how long one is waited for that must not come.
const (
	soon  = 5 * time.Second
	never = 50 * time.Millisecond
)

// echo starts a server that sends back what it gets, and returns its address.
func echo(t *testing.T) string {
	t.Helper()
	l := nettest.Listen(t)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	return l.Addr().String()
}

func dial(t *testing.T, p *proxy.Proxy) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// say sends a byte, and returns the error of waiting for its echo.
func say(t *testing.T, c net.Conn, limit time.Duration) error {
	t.Helper()
	_, _ = c.Write([]byte{1}) // the read tells
	return hear(t, c, limit)
}

// hear waits for a byte.
func hear(t *testing.T, c net.Conn, limit time.Duration) error {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(limit)); err != nil {
		t.Fatal(err)
	}
	_, err := c.Read(make([]byte, 1))
	return err
}

func wantEcho(t *testing.T, c net.Conn) {
	t.Helper()
	if err := say(t, c, soon); err != nil {
		t.Errorf("got %v, want an echo", err)
	}
}

func TestCut(t *testing.T) {
	t.Parallel()
	p := proxy.Start(t, echo(t))
	before := dial(t, p)
	wantEcho(t, before)
	end := p.Cut()
	for _, c := range []net.Conn{before, dial(t, p)} {
		if err := say(t, c, soon); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			t.Errorf("got %v, want a closed connection", err)
		}
	}
	end()
	wantEcho(t, dial(t, p))
}

func TestSilence(t *testing.T) {
	t.Parallel()
	p := proxy.Start(t, echo(t))
	c := dial(t, p)
	wantEcho(t, c)
	end := p.Silence()
	if err := say(t, c, never); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v, want silence", err)
	}
	end()
	if err := hear(t, c, soon); err != nil {
		t.Errorf("after the silence: got %v, want what was said", err)
	}
}

func TestLose(t *testing.T) {
	t.Parallel()
	p := proxy.Start(t, echo(t))
	lost := dial(t, p)
	wantEcho(t, lost)
	p.Lose()
	if err := say(t, lost, never); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v, want silence", err)
	}
	wantEcho(t, dial(t, p))
}

func TestLoseAnswers(t *testing.T) {
	t.Parallel()
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer server.Close()
	p := proxy.Start(t, server.Addr().String())
	client := dial(t, p)
	accepted, err := server.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer accepted.Close()
	if _, err := accepted.Write([]byte("h")); err != nil {
		t.Fatal(err)
	}
	if err := hear(t, client, soon); err != nil { // the proxy knows the connection
		t.Fatalf("before: got %v, want what the server said", err)
	}
	p.LoseAnswers()
	if err := say(t, client, never); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v, want silence", err)
	}
	if err := hear(t, accepted, soon); err != nil {
		t.Errorf("the server: got %v, want what the client said", err)
	}
	if _, err := accepted.Write([]byte("answer")); err != nil {
		t.Fatal(err)
	}
	if err := hear(t, client, never); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("after an answer: got %v, want silence", err)
	}
}

func TestDelay(t *testing.T) {
	t.Parallel()
	p := proxy.Start(t, echo(t))
	c := dial(t, p)
	end := p.Delay(2 * never)
	if err := say(t, c, never); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("got %v, want a delay", err)
	}
	if err := hear(t, c, soon); err != nil {
		t.Errorf("after the delay: got %v, want an echo", err)
	}
	end()
	wantEcho(t, c)
}

func TestSeveralServers(t *testing.T) {
	t.Parallel()
	p := proxy.Start(t, nettest.Addr(t), echo(t)) // the first refuses connections
	for range 4 {
		wantEcho(t, dial(t, p))
	}
}
