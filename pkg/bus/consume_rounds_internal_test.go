package bus

import (
	"strconv"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/pkg/embedded"
)

// A sparse round hands each delivery on when it comes, a dense one all that the server has, together.
func TestRounds(t *testing.T) {
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

	r, err := newRounds(conn, "S", "c")
	check(t, err)
	defer r.close()
	check(t, r.next(t.Context()))
	for n := range sparseRound {
		ended := r.take(<-r.incoming)
		if taken := r.taken(ended); len(taken) != 1 || ended != (n == sparseRound-1) {
			t.Fatalf("delivery %d of a sparse round: got %d, ended %v", n, len(taken), ended)
		}
	}
	r.end()

	r.rate = 2 * denseRate
	check(t, r.next(t.Context()))
	taken := 0
	for ended := false; !ended; {
		m := <-r.incoming
		if m.Reply == "" {
			ended, err = r.status(m)
			check(t, err)
		} else {
			ended = r.take(m)
		}
		if n := len(r.taken(ended)); n > 0 && !ended {
			t.Fatalf("got %d deliveries before the round has ended", n)
		} else {
			taken += n
		}
	}
	if taken != count-sparseRound {
		t.Errorf("got %d deliveries together, want %d", taken, count-sparseRound)
	}

	r.window = time.Now().Add(-time.Second)
	if r.end(); r.dense() {
		t.Errorf("got %v deliveries a second, want that %d in a second are not dense", r.rate, count)
	}
}

func TestRoundStatus(t *testing.T) {
	t.Parallel()
	for status, want := range map[int]struct{ ended, failed bool }{
		100: {}, 404: {ended: true}, 408: {ended: true}, 409: {true, true}, 503: {true, true}, 400: {true, true},
	} {
		m := nats.NewMsg("inbox")
		m.Header.Set("Status", strconv.Itoa(status))
		ended, err := new(rounds).status(m)
		if ended != want.ended || (err != nil) != want.failed {
			t.Errorf("%d: got %v, %v", status, ended, err)
		}
	}
}

// Deliveries gather for as long as about gatherDeliveries take, within bounds.
func TestRoundsGather(t *testing.T) {
	t.Parallel()
	for rate, want := range map[float64]time.Duration{denseRate: gatherAtMost, 2500: 8 * time.Millisecond, 20_000: gatherAtLeast} {
		if got := (&rounds{rate: rate}).gather(); got != want {
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
