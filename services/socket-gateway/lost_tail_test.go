package socketgateway_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-chat/parley/pkg/embedded"
	socketgateway "github.com/parley-chat/parley/services/socket-gateway"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/nettest"
	"github.com/parley-chat/parley/testkit/redistest"
	"github.com/parley-chat/parley/testkit/timetest"
)

// startNATSIn starts a NATS server that can be stopped and started again.
func startNATSIn(t *testing.T, addr, dir string) *embedded.NATS {
	t.Helper()
	n, err := embedded.StartNATS(embedded.NATSConfig{Addr: addr, Dir: dir})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(n.Stop)
	return n
}

// supervise runs a gateway at one address and starts it again when it ends, as a supervisor does. It returns the URL
// and the errors with which it ended.
func (w *world) supervise() (url string, ends <-chan error) {
	w.t.Helper()
	addr := nettest.Addr(w.t)
	ended := make(chan error, 10)
	ctx, stop := context.WithCancel(context.Background())
	var running sync.WaitGroup
	w.t.Cleanup(func() { stop(); running.Wait() })
	running.Go(func() {
		for ctx.Err() == nil {
			cfg := w.config()
			cfg.Listener, cfg.OpsListener, cfg.HTTPAddr = nil, nil, addr
			cfg.DrainTimeout = 0
			cfg.Registerer = prometheus.NewRegistry()
			s, err := socketgateway.New(cfg)
			if err != nil {
				ended <- err
				return
			}
			if err := s.Run(ctx); ctx.Err() == nil {
				ended <- err
			}
		}
	})
	return "http://" + addr, ended
}

// join connects a client once the gateway serves. It returns its pid.
func (w *world) join(url string, auth map[string]string) (c *client, pid string) {
	w.t.Helper()
	timetest.Until(w.t, "the gateway serves", func() bool { return w.get(url+"/socket.io/") != 0 })
	c = connectWith(w.t, url, "", auth)
	var answer struct {
		PID string `json:"pid"`
	}
	if err := json.Unmarshal(c.await("connect").Data, &answer); err != nil || answer.PID == "" {
		w.t.Fatalf("got the answer %+v and %v, want a pid", answer, err)
	}
	return c, answer.PID
}

// After NATS has lost replies and used their sequences again, a client that had stayed, one that comes back with its
// session and a new one all get each new reply once. The first two are told that their session is not recovered.
func TestLostTailSwallowsNoReply(t *testing.T) {
	t.Parallel()
	const lost, fresh = 60, 40
	redis, err := redistest.Start("127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(redis.Stop)
	addr, dir, kept := nettest.Addr(t), t.TempDir(), filepath.Join(t.TempDir(), "kept")
	nats := startNATSIn(t, addr, dir)
	bustest.DeclareSmall(t, nats.URL())
	nats.Stop()
	if err := os.CopyFS(kept, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	nats = startNATSIn(t, addr, dir)
	w := newWorldWith(t, nats.URL(), redis.URL())
	url, ends := w.supervise()
	v := w.visitor()
	stayed, pid := w.join(url, map[string]string{"token": v.token})
	w.replies(v, lost)
	var offset string
	for range lost {
		offset = stayed.await("message").Offset
	}

	nats.Stop()
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(dir, os.DirFS(kept)); err != nil {
		t.Fatal(err)
	}
	nats = startNATSIn(t, addr, dir)
	select {
	case err := <-ends:
		if err == nil || !strings.Contains(err.Error(), "stream REPLIES has lost its messages") {
			t.Errorf("got the end %v, want one because of the lost messages", err)
		}
	case <-time.After(limit):
		t.Fatal("the gateway runs on, want it to end")
	}
	stayed.await("disconnect")
	shown := map[string]string{"token": v.token, "pid": pid, "offset": offset}
	back, again := w.join(url, shown)
	if again == pid {
		t.Error("got a recovered session of the lost epoch, want a new one")
	}
	anew, _ := w.join(url, map[string]string{"token": v.token})

	w.bus = bustest.Open(t, nats.URL())
	want := w.replies(v, fresh)
	for name, c := range map[string]*client{"that came back": back, "that is new": anew} {
		for i, reply := range want {
			if got := string(c.await("message").Data); got != reply {
				t.Fatalf("the client %s: got reply %d %s, want %s", name, i, got, reply)
			}
		}
	}
}
