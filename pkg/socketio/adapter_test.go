package socketio_test

import (
	"testing"

	"github.com/parley-chat/parley/pkg/socketio/adaptertest"
)

// TestSingleNode runs the adapter contract without an adapter. Package redisadapter runs it on Redis.
func TestSingleNode(t *testing.T) {
	t.Parallel()
	adaptertest.Test(t, adaptertest.Broker{})
}
