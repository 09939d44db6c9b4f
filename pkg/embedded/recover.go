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
	// writeCheck is the interval of the write health check.
	writeCheck = time.Second
	// roomNeeded is the free disk space required before a server that could not write is restarted.
	roomNeeded = 4 << 20
	// roomFile is written to test for free space, and removed.
	roomFile = ".room"
)

// Writable returns nil, or the reason why the server cannot write its streams. [NATS.Recover] keeps it up to date.
func (n *NATS) Writable() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.fault
}

// Recover monitors the server until ctx is done. After one failed write, as on a full disk, a stream rejects all writes
// until the server is restarted. Recover restarts it, with the same address and directory, once there is free disk
// space; until then the server still serves reads. Acknowledged messages are in its files.
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

// check checks whether the server can write, and keeps and logs the result.
func (n *NATS) check() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stopped {
		return nil
	}
	before := n.fault
	n.fault = writeFault(n.server.Server)
	if n.fault != nil && before == nil {
		n.log.Error("embedded NATS cannot write, waiting for free disk space", "dir", n.cfg.Dir, "error", n.fault)
	}
	return n.fault
}

// writeFault returns the write errors of the server's streams.
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

// hasRoom returns nil if the disk has enough free space for a restart.
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

// restart replaces the server. If that fails, the next check retries.
func (n *NATS) restart() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stopped {
		return
	}
	n.server.stop()
	cfg := n.cfg
	cfg.Addr = n.addr
	s, err := startServer(cfg)
	if err != nil {
		n.log.Error("restarting embedded NATS failed, trying again", "error", err)
		return
	}
	n.server = s
	n.fault = nil
	n.log.Warn("embedded NATS was restarted and can write again")
}
