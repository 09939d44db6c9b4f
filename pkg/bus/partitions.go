package bus

// The number of partitions of each stream, which decides the stored form of subjects.

import (
	"context"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/proto-events/subject"
)

// partitionTable caches the number of partitions of each stream, which is fixed when the stream is created.
type partitionTable struct {
	bus *Bus

	mu     sync.Mutex // guards counts
	counts map[string]int
}

func newPartitionTable(b *Bus) *partitionTable {
	return &partitionTable{bus: b, counts: make(map[string]int)}
}

// get returns the number of partitions of a stream. Errors are those of nats.go.
func (t *partitionTable) get(ctx context.Context, stream string) (int, error) {
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
	return t.store(stream, s.CachedInfo().Config), nil
}

func (t *partitionTable) store(stream string, config jetstream.StreamConfig) int {
	n := 1
	if config.SubjectTransform != nil {
		n = subject.Partitions(config.SubjectTransform.Destination)
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.counts[stream] = n
	return n
}

// forget drops a cache entry: the stream may have been recreated.
func (t *partitionTable) forget(stream string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	delete(t.counts, stream)
}

// forgetAll clears the cache after a reconnect, which may lead to another server.
func (t *partitionTable) forgetAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	clear(t.counts)
}

// await retries until the server responds or ctx is done.
func (t *partitionTable) await(ctx context.Context, stream string) (int, error) {
	for wait := minSessionWait; ; wait = min(2*wait, maxSessionWait) {
		up := t.bus.connUp.wait()
		request, cancel := t.bus.state.request(ctx, apiTimeout)
		n, err := t.get(request, stream)
		cancel()
		if err == nil {
			return n, nil
		}
		t.bus.streams.check()
		pauseUntil(ctx, wait, up)
		if ctx.Err() != nil {
			return 0, ctx.Err()
		}
	}
}

// Stored returns the stored form of a published subject or filter, which depends on the partitions of the stream.
func (b *Bus) Stored(ctx context.Context, stream, subj string) (string, error) {
	n, err := b.Partitions(ctx, stream)
	if err != nil {
		return "", err
	}
	return subject.Stored(subj, n), nil
}

// Partitions returns the number of partitions of a stream; 1 if it is not partitioned. Errors: NotFound if
// the stream does not exist, Unavailable while NATS is disconnected.
func (b *Bus) Partitions(ctx context.Context, stream string) (int, error) {
	ctx, cancel := b.state.request(ctx, apiTimeout)
	defer cancel()
	n, err := b.partitions.get(ctx, stream)
	if err != nil {
		return 0, readError(stream, err)
	}
	return n, nil
}
