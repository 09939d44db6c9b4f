package main

import (
	"testing"
	"time"

	"github.com/parley-chat/parley/testkit/needs"
)

// TestNodeGatewayIsMeasured runs everything on real servers: the Node peer accepts every connection, and two of its
// gateways deliver every reply. It does not check speed.
func TestNodeGatewayIsMeasured(t *testing.T) {
	t.Chdir("../..")
	needs.Program(t, "redis-server")
	needs.Packages(t)
	o := options{contenders: "node,node-sharded", peer: "bench/peer/gateway.mjs"}
	contenders, err := o.contendersToMeasure()
	if err != nil {
		t.Fatal(err)
	}
	b, err := newBench(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	defer b.close()
	b.idle, b.settle, b.rooms, b.redis = 50, time.Millisecond, 50, pace{500, 200 * time.Millisecond}
	for _, c := range contenders {
		var f figures
		if err := measureHandshakes(t.Context(), b, c, &f); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if f.idle.lost() != 0 || f.idle.after <= 0 {
			t.Errorf("%s: got %+v, want no connection lost, and memory measured", c.name, *f.idle)
		}
		perReply, err := b.redisBytes(t.Context(), c, 2) // fails if a reply is lost
		if err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		if perReply < 100 {
			t.Errorf("%s: got %.0f bytes from Redis for a reply, want more than the reply's text", c.name, perReply)
		}
	}
}
