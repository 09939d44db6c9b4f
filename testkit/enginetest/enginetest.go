// Package enginetest starts the engines of a service, which a test can stop and restart.
package enginetest

import (
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/embedded"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/nettest"
	"github.com/parley-chat/parley/testkit/storetest"
)

// Engines are a NATS server that can be restarted at its address, and a store that can be made unavailable.
type Engines struct {
	NATS      *embedded.NATS
	NATSURL   string
	Store     *storetest.Outage
	StorePath string

	t       testing.TB
	natsDir string
}

// Start starts the engines, which end with the test. The streams exist when it returns.
func Start(t testing.TB) *Engines {
	t.Helper()
	e := &Engines{t: t, natsDir: t.TempDir(), StorePath: storetest.Path(t)}
	e.startNATS(nettest.Addr(t))
	e.NATSURL = e.NATS.URL()
	t.Cleanup(func() { e.NATS.Stop() })
	bustest.Declare(t, e.NATSURL, bus.StreamSettings{MaxAge: time.Hour, MaxBytes: 64 << 20, FilesMaxBytes: 1 << 30})
	bustest.Open(t, e.NATSURL)
	e.Store = storetest.NewOutage(storetest.OpenAt(t, e.StorePath))
	return e
}

func (e *Engines) startNATS(addr string) {
	e.t.Helper()
	var err error
	if e.NATS, err = embedded.StartNATS(embedded.NATSConfig{Addr: addr, Dir: e.natsDir}); err != nil {
		e.t.Fatalf("starting NATS: %v", err)
	}
}

// RestartNATS starts a NATS server that was stopped, with its streams, at the same address.
func (e *Engines) RestartNATS() {
	e.t.Helper()
	e.startNATS(strings.TrimPrefix(e.NATSURL, "nats://"))
}
