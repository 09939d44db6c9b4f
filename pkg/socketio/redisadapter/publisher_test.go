package redisadapter

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
)

// sendEach publishes messages together and returns the result of each.
func sendEach(p *publisher, channels ...string) []error {
	errs := p.publishAll(context.Background(), len(channels), func(i int, dst []byte) (string, []byte, error) {
		return channels[i], append(dst, "payload of "+channels[i]...), nil
	})
	if errs == nil {
		errs = make([]error, len(channels))
	}
	return errs
}

func publisherOf(t *testing.T, options *redis.Options) *publisher {
	t.Helper()
	client := redis.NewClient(options)
	p := newPublisher(client, Options{}.withDefaults(), t.Context().Done())
	t.Cleanup(func() { p.close(); client.Close() })
	return p
}

// An idle connection that broke loses no message.
func TestIdleConnectionIsTriedOut(t *testing.T) {
	t.Parallel()
	server := miniredis.RunT(t)
	p := publisherOf(t, &redis.Options{Dialer: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, server.Addr())
	}})
	if errs := sendEach(p, "a"); errs[0] != nil {
		t.Fatal(errs[0])
	}
	server.Close()
	if err := server.StartAddr("127.0.0.1:0"); err != nil { // somebody else may have got the former port
		t.Fatal(err)
	}
	if errs := sendEach(p, "a"); errs[0] != nil {
		t.Errorf("got %v after a restart, want it published", errs[0])
	}
}

// The adapter's own connections use the TLS and password options of the client.
func TestConnectsAsTheClientDoes(t *testing.T) {
	t.Parallel()
	https := httptest.NewTLSServer(nil) // for its certificate
	t.Cleanup(https.Close)
	server := miniredis.NewMiniRedis()
	if err := server.StartTLS(&tls.Config{Certificates: https.TLS.Certificates, MinVersion: tls.VersionTLS12}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	server.RequireUserAuth("gateway", "secret")
	trusting := https.Client().Transport.(*http.Transport).TLSClientConfig.Clone()
	trusting.ServerName = "example.com"
	options := &redis.Options{Addr: server.Addr(), Username: "gateway", Password: "secret", TLSConfig: trusting}
	if errs := sendEach(publisherOf(t, options), "a"); errs[0] != nil {
		t.Errorf("got %v, want it published", errs[0])
	}
	wrong := *options
	wrong.Password = "wrong"
	if errs := sendEach(publisherOf(t, &wrong), "a"); errs[0] == nil {
		t.Error("got no error with a wrong password")
	}
}

// An error of Redis fails one message; a closed connection fails all messages without a response.
func TestEachMessageHasItsError(t *testing.T) {
	t.Parallel()
	p := publisherOf(t, &redis.Options{Addr: serveScript(t, ":1\r\n-NOPERM no such channel for you\r\n:0\r\n:0\r\n:0\r\n")})
	errs := sendEach(p, "a", "b", "c", "d", "e")
	var refused redis.Error
	if !errors.As(errs[1], &refused) || errors.Join(errs[0], errs[2], errs[3], errs[4]) != nil {
		t.Errorf("got %v, want one refused", errs)
	}
	p = publisherOf(t, &redis.Options{Addr: serveScript(t, ":1\r\n-NOPERM no such channel for you\r\n:0\r\n")})
	errs = sendEach(p, "a", "b", "c", "d", "e")
	if !errors.As(errs[1], &refused) || !errors.Is(errs[3], io.EOF) || !errors.Is(errs[4], io.EOF) {
		t.Errorf("got %v, want one refused and two unanswered", errs)
	}
}

// serveScript is a Redis server that supports only PING, answers the first publications with a script, and closes.
func serveScript(t *testing.T, script string) (addr string) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	t.Cleanup(func() { l.Close(); <-ended })
	go func() {
		defer close(ended)
		conn, err := l.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		for in := bufio.NewScanner(conn); in.Scan(); {
			switch word := strings.ToUpper(in.Text()); word {
			case "HELLO", "CLIENT":
				_, _ = io.WriteString(conn, "-ERR unknown command\r\n")
			case "PING":
				_, _ = io.WriteString(conn, "+PONG\r\n")
			case "PAYLOAD OF E":
				_, _ = io.WriteString(conn, script)
				return
			}
		}
	}()
	return l.Addr().String()
}
