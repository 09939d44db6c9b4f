// Package streamsync puts the streams of a nats-server with one replica on the disk before their publishers hear that
// an event is accepted, with one sync for all publishers that wait.
//
// nats-server writes an event to the stream's newest block file before it acknowledges, but syncs the file only every
// two minutes; its sync_interval "always" syncs once for each event. A [Syncer] runs beside the server, on the same
// disk: it syncs the blocks whenever a publisher asks ([rpc.Conn.HandleSyncs]), and questions that arrive during a
// sync share the next one. See docs/decisions/0014-durability.md.
package streamsync

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"sync"

	"github.com/parley-chat/parley/proto-events/subject"
)

// Syncer syncs the streams in the store directory of a nats-server. It is safe for concurrent use.
type Syncer struct {
	dir      string
	syncFile func(*os.File) error

	mu      sync.Mutex // guards streams
	streams map[string]*stream
}

// New returns the syncer of the server with a store directory (its option store_dir). The directory need not
// exist yet.
func New(dir string) *Syncer {
	return &Syncer{dir: filepath.Clean(dir), syncFile: syncData, streams: make(map[string]*stream)}
}

// Sync returns when everything that the server has acknowledged in a stream before the call is on the disk. Errors:
// the stream is not in the directory, or the disk failed; then nothing is known about its last events.
func (s *Syncer) Sync(ctx context.Context, name string) error {
	st, err := s.stream(name)
	if err != nil {
		return err
	}
	return st.sync(ctx)
}

// Close closes the files, after the syncs that still run. Sync must not be called any more.
func (s *Syncer) Close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, st := range s.streams {
		st.rounds.Wait()
		st.blocks.close()
	}
}

func (s *Syncer) stream(name string) (*stream, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if st := s.streams[name]; st != nil {
		return st, nil
	}
	dir, err := s.find(name)
	if err != nil {
		return nil, err
	}
	if err := s.syncDeclaration(filepath.Dir(dir)); err != nil {
		return nil, err
	}
	st := &stream{blocks: blocks{dir: dir, syncFile: s.syncFile}}
	s.streams[name] = st
	return st, nil
}

// find returns the directory of a stream's blocks, in the one account of the server that has the stream.
func (s *Syncer) find(name string) (string, error) {
	if !subject.Valid(name) || filepath.Base(name) != name {
		return "", fmt.Errorf("%q is not the name of a stream", name)
	}
	accounts, err := os.ReadDir(filepath.Join(s.dir, "jetstream"))
	if err != nil {
		return "", fmt.Errorf("looking for the streams: %w", err)
	}
	var found []string
	for _, account := range accounts {
		dir := filepath.Join(s.dir, "jetstream", account.Name(), "streams", name, "msgs")
		if _, err := os.Stat(dir); err == nil {
			found = append(found, dir)
		}
	}
	if len(found) != 1 {
		return "", fmt.Errorf("%d accounts in %s have the stream %s, want one", len(found), s.dir, name)
	}
	return found[0], nil
}

// stream shares syncs between callers.
type stream struct {
	blocks blocks // used by one round at a time
	rounds sync.WaitGroup

	mu      sync.Mutex // guards next and running
	next    *round     // that callers join; nil: none waits
	running bool
}

// round is one sync and its callers.
type round struct {
	done chan struct{} // closed after err is set
	err  error
}

// sync joins the next round: the current one may have begun before the caller's events were written.
func (s *stream) sync(ctx context.Context) error {
	s.mu.Lock()
	if s.next == nil {
		s.next = &round{done: make(chan struct{})}
	}
	joined := s.next
	leads := !s.running
	s.running = true
	s.mu.Unlock()
	if leads {
		s.rounds.Go(s.run)
	}
	select {
	case <-joined.done:
		return joined.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

// run syncs until no caller waits.
func (s *stream) run() {
	for {
		s.mu.Lock()
		r := s.next
		s.next = nil
		s.running = r != nil
		s.mu.Unlock()
		if r == nil {
			return
		}
		r.err = s.blocks.sync()
		close(r.done)
	}
}
