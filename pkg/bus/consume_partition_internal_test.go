package bus

import (
	"testing"

	"github.com/parley-chat/parley/pkg/chat"
)

// What all partitions have requested comes on top of what is held, before its size is known. Of the largest messages it
// is no more memory than what may be held.
func TestRequestedDeliveriesAreBounded(t *testing.T) {
	t.Parallel()
	for partitions := 1; partitions <= 32; partitions++ {
		requested := partitions * batchOf(partitions)
		if bytes := requested * chat.MaxDataBytes; bytes > maxHeldBytes {
			t.Errorf("%d partitions request %d deliveries, up to %d MiB, want at most 32", partitions, requested, bytes>>20)
		}
	}
	if got := batchOf(64); got != minBatch {
		t.Errorf("64 partitions: got batches of %d, want %d", got, minBatch)
	}
}
