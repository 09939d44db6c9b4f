package bus

import (
	"context"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/proto-events/subject"
)

// partitionTable knows how many partitions each stream has. That is fixed when a stream is created, so each is asked for once.
type partitionTable struct {
	bus *Bus

	mu     sync.Mutex
	counts map[string]int
}

func newPartitionTable(b *Bus) *partitionTable {
	return &partitionTable{bus: b, counts: make(map[string]int)}
}

// of returns how many partitions a stream has. Its error is the server's.
func (t *partitionTable) of(ctx context.Context, stream string) (int, error) {
	t.mu.Lock()
	n, known := t.counts[stream]
	t.mu.Unlock()
	if known {
		return n, nil
	}
	s, err := t.bus.js.Stream(ctx, stream)
	if err != nil {
		return 0, err
	}
	return t.note(stream, s.CachedInfo().Config), nil
}

func (t *partitionTable) note(stream string, config jetstream.StreamConfig) int {
	n := 1
	if config.SubjectTransform != nil {
		n = subject.Partitions(config.SubjectTransform.Destination)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts[stream] = n
	return n
}

// forget makes the next question go to the server: the stream may be another one.
func (t *partitionTable) forget(stream string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.counts, stream)
}

// forgetAll is for a new connection, which may lead to another server.
func (t *partitionTable) forgetAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.counts)
}

// await asks until the server answers, or ctx is done.
func (t *partitionTable) await(ctx context.Context, stream string) (int, error) {
	for wait := minSessionWait; ; wait = min(2*wait, maxSessionWait) {
		up := t.bus.linkUp.wait()
		request, cancel := t.bus.state.request(ctx, apiTimeout)
		n, err := t.of(request, stream)
		cancel()
		if err == nil {
			return n, nil
		}
		t.bus.streams.check()
		pause, stop := context.WithTimeout(ctx, wait)
		select {
		case <-pause.Done():
		case <-up:
		}
		stop()
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
	}
}

// Stored returns the subject, or the filter, under which a stream keeps what was published on subj.
func (b *Bus) Stored(ctx context.Context, stream, subj string) (string, error) {
	n, err := b.Partitions(ctx, stream)
	if err != nil {
		return "", err
	}
	return subject.Stored(subj, n), nil
}

// Partitions returns how many partitions a stream has: 1 where it has not been divided. It is NotFound where there is no such
// stream, Unavailable while NATS is not connected.
func (b *Bus) Partitions(ctx context.Context, stream string) (int, error) {
	ctx, cancel := b.state.request(ctx, apiTimeout)
	defer cancel()
	n, err := b.partitions.of(ctx, stream)
	if err != nil {
		return 0, readError(stream, err)
	}
	return n, nil
}
