package bus_test

import (
	"context"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/testkit/bustest"
)

const benchCallers = 64

// BenchmarkPublish compares the bus with the publish functions of nats.go, each with 64 concurrent callers
// that wait for the acknowledgement. NATS_URL selects a server in a separate process; without it the server
// runs in this process, and its cost is included.
func BenchmarkPublish(b *testing.B) {
	url := os.Getenv("NATS_URL")
	if url == "" {
		url = bustest.Start(b).URL()
	}
	bu := bustest.Open(b, url)
	nc, err := nats.Connect(url)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(nc.Close)
	js, err := jetstream.New(nc, jetstream.WithPublishAsyncTimeout(5*time.Second))
	if err != nil {
		b.Fatal(err)
	}
	purge(b, bu, subject.Inbound) // a reused server would fill up
	b.Run("bus", func(b *testing.B) {
		measure(b, func(ctx context.Context, e event.Event) error { return bu.Publish(ctx, event.Derived(), e) })
	})
	b.Run("nats_sync", func(b *testing.B) {
		measure(b, func(ctx context.Context, e event.Event) error {
			_, err := js.PublishMsg(ctx, rawMessage(e))
			return err
		})
	})
	b.Run("nats_async", func(b *testing.B) {
		measure(b, func(ctx context.Context, e event.Event) error {
			future, err := js.PublishMsgAsync(rawMessage(e))
			if err != nil {
				return err
			}
			select {
			case <-future.Ok():
				return nil
			case err := <-future.Err():
				return err
			case <-ctx.Done():
				return ctx.Err()
			}
		})
	})
}

func measure(b *testing.B, publish func(context.Context, event.Event) error) {
	b.ReportAllocs()
	var next atomic.Int64
	var callers sync.WaitGroup
	run := uuid.NewString()
	b.ResetTimer()
	for range benchCallers {
		callers.Go(func() {
			for n := next.Add(1); n <= int64(b.N); n = next.Add(1) {
				if err := publish(b.Context(), benchEvent(run+strconv.FormatInt(n, 36))); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	callers.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

func benchEvent(id string) event.Event {
	return event.CompanyMessageAccepted{
		CompanyID: "0b0f8e1c-6f5e-4a51-8d0a-3f1f4f1d2c33", ChatID: "9c1f0f54-5f35-4d6a-9a53-6a8b1a2a7c11",
		Message: chat.Message{
			ID: id, CreatedAt: time.Now(), Type: chat.Text, NameOfSender: "Acme", IsFromSupport: true,
			Data: []byte(`{"text":"Your order 4711 has left our warehouse and arrives tomorrow."}`),
		},
	}
}

// rawMessage builds the same message as the bus, without its optimisations.
func rawMessage(e event.Event) *nats.Msg {
	return &nats.Msg{Subject: e.Subject(), Data: e.AppendJSON(nil), Header: nats.Header{
		"ce-id": {e.EventID()}, "ce-type": {e.Type()}, "ce-source": {"/test"}, "ce-specversion": {"1.0"},
		"ce-time": {e.OccurredAt().UTC().Format(chat.TimeFormat)}, "ce-datacontenttype": {"application/json"},
		jetstream.MsgIDHeader: {strings.Clone(e.EventID())},
	}}
}

// BenchmarkConsume measures deliveries of 64 keys to a handler that does nothing.
func BenchmarkConsume(b *testing.B) {
	url := os.Getenv("NATS_URL")
	if url == "" {
		url = bustest.Start(b).URL()
	}
	bu := bustest.Open(b, url)
	purge(b, bu, subject.Replies)
	publishAll(b, bu, benchCallers, 0, b.N/benchCallers+1)
	var handled atomic.Int64
	done := make(chan struct{})
	b.ReportAllocs()
	b.ResetTimer()
	consume(b, bu, bus.Consumer{Durable: uuid.NewString(), Handle: func(context.Context, bus.Delivery) error {
		if handled.Add(1) == int64(b.N) {
			close(done)
		}
		return nil
	}})
	receive(b, "all deliveries", done)
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "deliveries/s")
}

func purge(b *testing.B, bu *bus.Bus, name string) {
	b.Helper()
	stream, err := bu.JetStream().Stream(b.Context(), name)
	if err != nil {
		b.Fatal(err)
	}
	if err := stream.Purge(b.Context()); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkConsumeUnordered measures the recorder's way of reading without its store: the number of events
// that one process receives and acknowledges.
func BenchmarkConsumeUnordered(b *testing.B) {
	c := bus.Consumer{Order: bus.Unordered, Concurrency: 256, Key: func(d bus.Delivery) string { return d.ID }}
	bb := bustest.Open(b, bustest.Start(b).URL())
	const keys = 100
	publishAll(b, bb, keys, 0, (b.N+keys-1)/keys)
	all, left := make(chan struct{}), atomic.Int64{}
	left.Store(int64((b.N + keys - 1) / keys * keys))
	c.Handle = func(context.Context, bus.Delivery) error {
		if left.Add(-1) == 0 {
			close(all)
		}
		return nil
	}
	b.ResetTimer()
	consume(b, bb, c)
	<-all
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}
