package socketgateway_test

import (
	"testing"
	"time"

	socketgateway "github.com/parley-chat/parley/services/socket-gateway"
	"github.com/parley-chat/parley/testkit/opstest"
)

// A gateway that stops takes nobody new, and closes its sockets one after the other.
func TestDrainingSpreadsTheEnd(t *testing.T) {
	t.Parallel()
	const sockets, within = 20, 2 * time.Second
	w := newWorld(t)
	g := w.start(func(c *socketgateway.Config) { c.DrainTimeout = within })
	ends := make(chan time.Time, sockets)
	for range sockets {
		c := connect(t, g.url, w.visitor().token)
		c.await("connect")
		go func() {
			for h := range c.happens {
				if h.Event == "disconnect" {
					ends <- time.Now()
					return
				}
			}
		}()
	}
	began := time.Now()
	stopped := make(chan struct{})
	go func() { defer close(stopped); g.stop() }()
	opstest.AwaitUnready(w.t, g.ops)
	status := w.get(g.url + "/socket.io/?EIO=4&transport=polling")
	var first, last time.Duration
	early := 0
	for i := range sockets {
		last = (<-ends).Sub(began)
		if i == 0 {
			first = last
		}
		if last < within/2 {
			early++
		}
	}
	<-stopped
	if status != 503 {
		t.Errorf("got %d for a new connection while it drains, want 503", status)
	}
	if last-first < within/2 || early < sockets/4 || early > sockets*3/4 {
		t.Errorf("got disconnects between %s and %s, %d of %d in the first half, want them spread over %s", first, last, early, sockets, within)
	}
}
