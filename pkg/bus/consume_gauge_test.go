package bus_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/testkit/bustest"
)

// value returns the value of the metric with the given labels; -1 if it does not exist.
func value(t *testing.T, registry *prometheus.Registry, name string, labels map[string]string) float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
		for _, m := range f.GetMetric() {
			matching := 0
			for _, l := range m.GetLabel() {
				if labels[l.GetName()] == l.GetValue() {
					matching++
				}
			}
			if matching == len(labels) {
				return m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	return -1
}

// awaitValue polls a metric until its value matches: measurements have no notification.
func awaitValue(t *testing.T, registry *prometheus.Registry, name string, labels map[string]string, right func(float64) bool) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(5 * time.Millisecond) {
		got := value(t, registry, name, labels)
		if right(got) {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s%v: got %v, want another value", name, labels, got)
		}
	}
}

func exactly(want float64) func(float64) bool { return func(got float64) bool { return got == want } }

func TestGauges(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	b := bustest.OpenConfig(t, bus.Config{URL: bustest.StartSized(t, bus.StreamSettings{MaxBytes: 1 << 20}).URL(), Registerer: registry})
	publishAll(t, b, 3, 0, 1)
	inHand, goOn := make(chan struct{}), make(chan struct{})
	tester := map[string]string{"stream": subject.Replies, "consumer": "tester"}
	r := consume(t, b, bus.Consumer{Handle: func(_ context.Context, d bus.Delivery) error {
		if d.Attempt == 1 {
			inHand <- struct{}{}
			<-goOn
			return errors.New("try again")
		}
		return nil
	}})
	for range 3 {
		<-inHand
	}
	awaitValue(t, registry, "parley_bus_consumer_lag", tester, exactly(3))
	close(goOn)
	awaitValue(t, registry, "parley_bus_consumer_lag", tester, exactly(0))
	if got := value(t, registry, "parley_bus_redeliveries_total", tester); got != 3 {
		t.Errorf("got %v redeliveries, want one per delivery", got)
	}
	r.end()
	if got := value(t, registry, "parley_bus_consumer_lag", tester); got != -1 {
		t.Errorf("got a lag of %v after the consumer has stopped, want none", got)
	}
	for _, s := range subject.Streams() {
		if s.LastOnly { // not an event stream
			continue
		}
		labels := map[string]string{"stream": s.Name}
		awaitValue(t, registry, "parley_bus_stream_limit_bytes", labels, exactly(1<<20))
		if got := value(t, registry, "parley_bus_stream_bytes", labels); (got > 0) != (s.Name == subject.Replies) {
			t.Errorf("%s: got %v bytes", fmt.Sprint(labels), got)
		}
	}
}
