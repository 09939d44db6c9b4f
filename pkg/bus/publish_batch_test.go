package bus

import (
	"errors"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/nats-io/nats.go"
)

func subjects(messages []*nats.Msg) (all []string) {
	for _, m := range messages {
		all = append(all, m.Subject)
	}
	return all
}

// A publisher that posts during a write does not wait for it; its message is part of the next batch, in order.
func TestOutboxWritesForAll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var handed []*nats.Msg
		gate := make(chan struct{})
		o := outbox{handOver: func(m *nats.Msg) error {
			<-gate
			handed = append(handed, m)
			return nil
		}}
		var leader sync.WaitGroup
		leader.Go(func() { o.post(&nats.Msg{Subject: "1"}) })
		synctest.Wait()
		o.post(&nats.Msg{Subject: "2"}) // would block forever
		o.post(&nats.Msg{Subject: "3"})
		close(gate)
		leader.Wait()
		if got := subjects(handed); !slices.Equal(got, []string{"1", "2", "3"}) {
			t.Errorf("got %v, want 1, 2, 3", got)
		}
		o.post(&nats.Msg{Subject: "4"})
		if len(handed) != 4 {
			t.Errorf("got %v, want the next publisher to lead again", subjects(handed))
		}
	})
}

// A withdrawn message can be reused by its publisher: a waiting message is not written, and withdraw waits
// for a running write.
func TestOutboxWithdraws(t *testing.T) {
	t.Parallel()
	var handed []*nats.Msg
	begun, gate := make(chan struct{}, 1), make(chan struct{})
	o := outbox{handOver: func(m *nats.Msg) error {
		select {
		case begun <- struct{}{}:
		default:
		}
		<-gate
		handed = append(handed, m)
		return nil
	}}
	one, two, three := &nats.Msg{Subject: "1"}, &nats.Msg{Subject: "2"}, &nats.Msg{Subject: "3"}
	var all sync.WaitGroup
	all.Go(func() { o.post(one) })
	<-begun
	o.post(two)
	o.post(three)
	for _, m := range []*nats.Msg{one, two} {
		all.Go(func() {
			o.withdraw(m)
			if len(handed) == 0 { // also checked by the race detector
				t.Errorf("%s was withdrawn during the write of its batch", m.Subject)
			}
		})
	}
	for waiting := 2; waiting == 2; runtime.Gosched() {
		o.mu.Lock()
		waiting = len(o.waiting)
		o.mu.Unlock()
	}
	close(gate)
	all.Wait()
	if got := subjects(handed); !slices.Equal(got, []string{"1", "3"}) {
		t.Errorf("got %v, want 1, 3", got)
	}
}

func TestOutboxReportsRefusals(t *testing.T) {
	t.Parallel()
	reason := errors.New("too large")
	refused := map[string]error{}
	o := outbox{
		handOver: func(m *nats.Msg) error {
			if m.Subject == "2" {
				return reason
			}
			return nil
		},
		refused: func(m *nats.Msg, why error) { refused[m.Subject] = why },
	}
	for _, s := range []string{"1", "2", "3"} {
		o.post(&nats.Msg{Subject: s})
	}
	if len(refused) != 1 || !errors.Is(refused["2"], reason) {
		t.Errorf("got %v, want 2 refused as too large", refused)
	}
}
