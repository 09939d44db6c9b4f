package bus_test

import (
	"net"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/testkit/bustest"
)

// The user info of a URL is a user with a password, or a token. Neither may be logged.
func TestURLCredentialsAreNotLogged(t *testing.T) {
	t.Parallel()
	away, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	away.Close()
	there := strings.TrimPrefix(bustest.Start(t).URL(), "nats://")
	for _, url := range []string{
		"nats://s3cr3t@" + there, "nats://user:s3cr3t@" + there,
		"nats://s3cr3t@" + away.Addr().String(), "nats://user:s3cr3t@" + away.Addr().String() + ", nats://s3cr3t@" + away.Addr().String(),
	} {
		log := new(logbook)
		b, err := bus.Open(bus.Config{URL: url, Name: "secrets", Logger: log.logger()})
		if err != nil {
			t.Fatalf("%s: %v", url, err)
		}
		for deadline := time.Now().Add(20 * time.Second); log.String() == "" && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond)
		}
		b.Close()
		if text := log.String(); strings.Contains(text, "s3cr3t") || !strings.Contains(text, "127.0.0.1") {
			t.Errorf("got %s, want the address without credentials", text)
		}
	}
}
