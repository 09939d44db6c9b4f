package bus

// What a stream has acknowledged becomes durable before Publish returns: the streams of one replica are synced for all
// publishers together (pkg/streamsync). publish.go waits.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/proto-events/subject"
)

// Sync is what makes the acknowledged events of a stream durable.
type Sync string

// The values of STREAM_SYNC.
const (
	// SyncAuto is SyncShared with one replica and SyncServer with more.
	SyncAuto Sync = "auto"
	// SyncShared asks the process beside nats-server (`parleyctl streams sync`) for one sync for all that wait.
	SyncShared Sync = "shared"
	// SyncServer leaves it to nats-server, whose sync_interval must be "always".
	SyncServer Sync = "server"
	// SyncNone accepts that a power cut loses what nats-server has not synced by itself.
	SyncNone Sync = "none"
)

// syncMetadata is the key of the Sync in the metadata of a stream.
const syncMetadata = "parley-sync"

// errNotSynced means that an event is stored, but perhaps not on the disk. A repeated publish stores it once.
var errNotSynced = errors.New("the stream is not synced to the disk: does `parleyctl streams sync` run beside NATS?")

// of returns what is in force with a number of replicas.
func (s Sync) of(replicas int) Sync {
	switch {
	case s != "" && s != SyncAuto:
		return s
	case replicas > 1:
		return SyncServer
	}
	return SyncShared
}

// Promise says where an accepted event is, of a stream with a number of replicas: "on the disk", for example.
func (s Sync) Promise(replicas int) string {
	place := "disk"
	volatile := s != SyncShared && s != SyncServer
	if volatile {
		place = "server"
	}
	where := "on the " + place
	if replicas > 1 {
		where = fmt.Sprintf("on %d of %d %ss", replicas/2+1, replicas, place)
	}
	if volatile {
		where += ", perhaps not on its disk"
	}
	return where
}

// SyncOf returns the Sync in a stream's metadata; ok is false if there is none.
func SyncOf(metadata map[string]string) (s Sync, ok bool) {
	text, ok := metadata[syncMetadata]
	return Sync(text), ok
}

// unsynced reports whether losing the last messages of a stream does no harm: parts of answers end in a durable
// message, and a lost offset makes a group handle again what it has handled. The records of lost tails in POSITIONS are
// synced all the same ([Bus.syncRecords]).
func unsynced(stream subject.Stream) bool { return stream.Short || stream.Name == subject.Positions }

// streamSyncs are the streams that publishers ask to be synced, by name.
type streamSyncs map[string]*streamSync

func newStreamSyncs(b *Bus) streamSyncs {
	all := make(streamSyncs)
	for _, s := range subject.Streams() {
		if !unsynced(s) {
			all[s.Name] = &streamSync{stream: s.Name, bus: b}
		}
	}
	all[FilesStream] = &streamSync{stream: FilesStream, bus: b}
	return all
}

// found records what a stream's configuration says.
func (all streamSyncs) found(config jetstream.StreamConfig) {
	if s := all[config.Name]; s != nil {
		mode, _ := SyncOf(config.Metadata)
		s.mode.Store(mode)
		s.replicas.Store(int64(config.Replicas))
	}
}

// promises says where accepted events of the streams that were found are. kept is false if nothing syncs one of them.
func (all streamSyncs) promises() (text string, kept bool) {
	var promises []string
	kept = true
	for _, s := range all {
		mode, known := s.sync()
		if !known {
			continue
		}
		kept = kept && (mode == SyncShared || mode == SyncServer)
		promises = append(promises, mode.Promise(int(s.replicas.Load())))
	}
	slices.Sort(promises)
	return strings.Join(slices.Compact(promises), "; "), kept
}

// state returns the error of a stream whose last sync failed a short time ago; nil: none.
func (all streamSyncs) state() error {
	for _, s := range all {
		if failed := s.failed.Load(); failed != 0 && time.Since(time.Unix(0, failed)) < failureTTL {
			return fmt.Errorf("stream %s: %w", s.stream, errNotSynced)
		}
	}
	return nil
}

// streamSync asks for the syncs of one stream. One request is in flight at a time; events that are acknowledged
// meanwhile share the next.
type streamSync struct {
	stream   string
	bus      *Bus
	mode     atomic.Value // of Sync; none: the stream was not found yet
	replicas atomic.Int64
	failed   atomic.Int64 // Unix time in nanoseconds of the failure of the last request; 0: it succeeded

	mu       sync.Mutex // guards the rest
	inFlight bool
	waiting  []uint64 // publishes for the next request, by their id in the ackTable
	asked    []uint64 // publishes of the request in flight
}

// sync returns what the stream's metadata says; known is false until the stream was found. A nil streamSync is that of
// a stream that is not synced.
func (s *streamSync) sync() (mode Sync, known bool) {
	if s == nil {
		return SyncNone, true
	}
	mode, known = s.mode.Load().(Sync)
	return mode, known
}

// find returns the mode of a stream that may not have been found yet.
func (s *streamSync) find(ctx context.Context) (Sync, error) {
	if mode, known := s.sync(); known {
		return mode, nil
	}
	ctx, cancel := s.bus.state.request(ctx, checkTimeout)
	defer cancel()
	if err := s.bus.streams.checkOne(ctx, s.stream); err != nil {
		return "", err
	}
	mode, _ := s.sync()
	return mode, nil
}

// add makes an acknowledged publish wait for the next sync. If it returns true, the caller must call request: none is
// in flight.
func (s *streamSync) add(id uint64) (request bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = append(s.waiting, id)
	request = !s.inFlight
	s.inFlight = true
	return request
}

// request asks for a sync for all that wait.
func (s *streamSync) request() {
	s.mu.Lock()
	s.asked = s.waiting
	s.waiting = nil
	s.mu.Unlock()
	reply := s.bus.acks.expect(s)
	err := s.bus.conn.PublishMsg(&nats.Msg{Subject: subject.Sync(s.stream), Reply: reply})
	if err != nil {
		s.bus.acks.resolve(reply, err)
	}
}

// end passes the result of a request to its publishers. The next request leaves before they wake up.
func (s *streamSync) end(err error) {
	if err != nil {
		err = s.fail(err)
	} else {
		s.failed.Store(0)
	}
	s.mu.Lock()
	ended := s.asked
	s.asked = nil
	s.inFlight = len(s.waiting) > 0
	more := s.inFlight
	s.mu.Unlock()
	if more {
		s.request()
	}
	for _, id := range ended {
		s.bus.acks.finish(id, err)
	}
}

// fail records and logs the failure of a request.
func (s *streamSync) fail(err error) error {
	if s.failed.Swap(time.Now().UnixNano()) == 0 {
		s.bus.log.Error("syncing a stream failed, its publishers get an error", "stream", s.stream, "error", err)
	}
	if errors.Is(err, nats.ErrDisconnected) || errors.Is(err, nats.ErrConnectionClosed) {
		return err
	}
	return fmt.Errorf("%w (%w)", errNotSynced, err)
}

// Sync returns when what a stream has acknowledged is durable, for callers that publish with [Bus.PublishRaw]. It
// returns at once if the stream's metadata asks for no sync.
func (b *Bus) Sync(ctx context.Context, stream string) error {
	s := b.syncs[stream]
	mode, err := s.find(ctx)
	if err != nil || mode != SyncShared {
		return err
	}
	return b.acks.awaitSync(ctx, s)
}
