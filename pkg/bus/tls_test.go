package bus_test

import (
	"context"
	"crypto/tls"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats-server/v2/server"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/tlstest"
)

// tlsServer starts a NATS server that requires TLS and client certificates.
func tlsServer(t *testing.T, a *tlstest.Authority) string {
	t.Helper()
	a.Server("server")
	pair, err := tls.LoadX509KeyPair(a.Path("server"), a.Path("server-key"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := server.NewServer(&server.Options{
		Host: "127.0.0.1", Port: server.RANDOM_PORT, JetStream: true, StoreDir: t.TempDir(), NoLog: true, NoSigs: true, JetStreamMaxStore: 1 << 40,
		TLS: true, TLSTimeout: 10, TLSVerify: true,
		TLSConfig: &tls.Config{Certificates: []tls.Certificate{pair}, ClientCAs: a.Pool(), ClientAuth: tls.RequireAndVerifyClientCert, MinVersion: tls.VersionTLS12},
	})
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
	t.Cleanup(func() { s.Shutdown(); s.WaitForShutdown() })
	if !s.ReadyForConnections(15 * time.Second) {
		t.Fatal("the server did not start")
	}
	return "tls://" + s.Addr().String()
}

func TestTLS(t *testing.T) {
	t.Parallel()
	a, other := tlstest.New(t), tlstest.New(t)
	url := tlsServer(t, a)
	a.Client("service")
	good := bus.Config{URL: url, CAFile: a.Path("authority"), CertFile: a.Path("service"), KeyFile: a.Path("service-key"), Name: "test", Logger: slog.New(slog.DiscardHandler)}
	bustest.DeclareConfig(t, bus.Config{URL: url, CAFile: good.CAFile, CertFile: good.CertFile, KeyFile: good.KeyFile}, bus.StreamSettings{})
	bustest.OpenConfig(t, good)

	unknownServer, nobody := good, good
	unknownServer.CAFile = other.Path("authority")
	nobody.CertFile, nobody.KeyFile = "", ""
	for name, cfg := range map[string]bus.Config{"a server of another authority": unknownServer, "no certificate of its own": nobody} {
		refused := make(chan struct{}, 1)
		cfg.Logger = slog.New(signal{refused})
		b, err := bus.Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		<-refused // the first connection attempt has failed
		if b.Ready(t.Context()) == nil {
			t.Errorf("%s: got a ready bus, want the connection rejected", name)
		}
		b.Close()
	}
}

func TestOpenFailsWithoutTLSFiles(t *testing.T) {
	t.Parallel()
	a := tlstest.New(t)
	for _, cfg := range []bus.Config{
		{CAFile: a.Path("nothing")},
		{CertFile: a.Path("authority")},
		{KeyFile: a.Path("authority-key")},
		{CertFile: a.Path("nothing"), KeyFile: a.Path("authority-key")},
	} {
		cfg.URL, cfg.Name, cfg.Logger = "tls://127.0.0.1:1", "test", slog.New(slog.DiscardHandler)
		if b, err := bus.Open(cfg); err == nil {
			b.Close()
			t.Errorf("%+v: got a bus, want an error", cfg)
		}
	}
}

// signal is a slog handler that signals each record.
type signal struct{ said chan struct{} }

func (signal) Enabled(context.Context, slog.Level) bool { return true }
func (s signal) Handle(context.Context, slog.Record) error {
	select {
	case s.said <- struct{}{}:
	default:
	}
	return nil
}
func (s signal) WithAttrs([]slog.Attr) slog.Handler { return s }
func (s signal) WithGroup(string) slog.Handler      { return s }
