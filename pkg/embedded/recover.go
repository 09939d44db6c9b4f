package embedded

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/nats-io/nats-server/v2/server"
)

const (
	// writeCheck is how often the server is asked whether it can write.
	writeCheck = time.Second
	// roomNeeded is how much has to fit into the folder before a server that could not write is restarted.
	roomNeeded = 4 << 20
	// roomFile is written to see whether it fits, and removed.
	roomFile = ".room"
)

// Writable returns nil, or why the server cannot write its streams. It is kept up to date by [NATS.Recover].
func (n *NATS) Writable() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.fault
}

// Recover watches the server until ctx is done. A stream whose write has failed once, as on a full disk, refuses all others until the
// server is restarted. Recover restarts it, on the same address and folder, when there is room again; until then the server goes on
// reading. What it has acknowledged is in its files.
func (n *NATS) Recover(ctx context.Context) error {
	tick := time.NewTicker(writeCheck)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := n.check(); err != nil && n.hasRoom() == nil {
			n.restart()
		}
	}
}

// check asks the server whether it can write, and keeps and logs the answer.
func (n *NATS) check() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stopped {
		return nil
	}
	before := n.fault
	if n.fault = writeFault(n.server); n.fault != nil && before == nil {
		n.log.Error("embedded NATS cannot write, waiting for room on the disk", "dir", n.cfg.Dir, "error", n.fault)
	}
	return n.fault
}

// writeFault finds the streams of a server whose writes fail.
func writeFault(s *server.Server) error {
	if !s.Running() || !s.JetStreamEnabled() {
		return errors.New("JetStream is off")
	}
	for _, e := range s.Healthz(&server.HealthzOptions{Details: true}).Errors {
		if e.Type == server.HealthzErrorStream && strings.Contains(e.Error, "write error") {
			return errors.New(e.Error)
		}
	}
	return nil
}

// hasRoom returns nil where as much can be written as a server needs that starts.
func (n *NATS) hasRoom() (err error) {
	f, err := os.Create(filepath.Join(n.cfg.Dir, roomFile))
	if err != nil {
		return fmt.Errorf("looking for room: %w", err)
	}
	defer func() { err = errors.Join(err, f.Close(), os.Remove(f.Name())) }()
	block := make([]byte, 64<<10)
	for range roomNeeded / len(block) {
		if _, err := f.Write(block); err != nil {
			return fmt.Errorf("looking for room: %w", err)
		}
	}
	return nil
}

// restart replaces the server. Where that fails the next check tries again.
func (n *NATS) restart() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stopped {
		return
	}
	stopServer(n.server)
	cfg := n.cfg
	cfg.Addr = n.addr
	s, err := startServer(cfg)
	if err != nil {
		n.log.Error("restarting embedded NATS failed, trying again", "error", err)
		return
	}
	n.server, n.fault = s, nil
	n.log.Warn("embedded NATS was restarted and can write again")
}
