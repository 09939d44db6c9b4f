package bus

import (
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/pkg/embedded"
)

// A sparse batch returns each delivery as it arrives, a dense batch all available ones together.
func TestBatchPuller(t *testing.T) {
	t.Parallel()
	server, err := embedded.StartNATS(embedded.NATSConfig{Dir: t.TempDir()})
	check(t, err)
	t.Cleanup(server.Stop)
	conn, err := nats.Connect(server.URL())
	check(t, err)
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	check(t, err)
	_, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: "S", Subjects: []string{"s"}})
	check(t, err)
	_, err = js.CreateConsumer(t.Context(), "S", jetstream.ConsumerConfig{Name: "c", AckPolicy: jetstream.AckNonePolicy})
	check(t, err)
	const count = 100
	for range count {
		_, err := js.Publish(t.Context(), "s", nil)
		check(t, err)
	}

	r, err := newBatchPuller(conn, "S", "c")
	check(t, err)
	defer r.close()
	check(t, r.next(t.Context()))
	for n := range sparseBatch {
		ended := r.add(<-r.incoming)
		if ready := r.ready(ended); len(ready) != 1 || ended != (n == sparseBatch-1) {
			t.Fatalf("delivery %d of a sparse batch: got %d ready, ended %v", n, len(ready), ended)
		}
	}
	r.end()

	r.rate = 2 * denseRate
	check(t, r.next(t.Context()))
	ready := 0
	for ended := false; !ended; {
		m := <-r.incoming
		if m.Reply == "" {
			ended, err = r.status(m)
			check(t, err)
		} else {
			ended = r.add(m)
		}
		if n := len(r.ready(ended)); n > 0 && !ended {
			t.Fatalf("got %d deliveries before the end of the batch, want none", n)
		} else {
			ready += n
		}
	}
	if ready != count-sparseBatch {
		t.Errorf("got %d deliveries at the end of the batch, want %d", ready, count-sparseBatch)
	}

	r.window = time.Now().Add(-time.Second)
	if r.end(); r.dense() {
		t.Errorf("got %v deliveries per second, want %d in a second not to be dense", r.rate, count)
	}
}

func TestPullStatus(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]struct{ ended, failed bool }{
		100: {}, 404: {ended: true}, 408: {ended: true}, 409: {true, true}, 503: {true, true}, 400: {true, true},
	} {
		m := nats.NewMsg("inbox")
		m.Header.Set("Status", strconv.Itoa(status))
		ended, err := new(batchPuller).status(m)
		if ended != want.ended || (err != nil) != want.failed {
			t.Errorf("%d: got %v, %v", status, ended, err)
		}
	}
}

// The pause is the time in which about gatherDeliveries arrive, within bounds.
func TestBatchPullerGathers(t *testing.T) {
	t.Parallel()
	for rate, want := range map[float64]time.Duration{denseRate: gatherAtMost, 2500: 8 * time.Millisecond, 20_000: gatherAtLeast} {
		if got := (&batchPuller{rate: rate}).gather(); got != want {
			t.Errorf("at %v/s: got %v, want %v", rate, got, want)
		}
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
