package manifests

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/proto-events/subject"
)

// intruder holds the connection of a service, and what an operator sees of it.
type intruder struct {
	t        *testing.T
	user     string
	conn     *nats.Conn
	operator jetstream.JetStream
}

// request sends a request whose answer goes to reply, then the same with an inbox, and returns when the second answer is here or none
// can come: then the server has sent the first answer, too.
func (i intruder) request(subj, reply string, data []byte) {
	i.t.Helper()
	if err := i.conn.PublishRequest(subj, reply, data); err != nil {
		i.t.Fatal(err)
	}
	_, _ = i.conn.Request(subj, data, 300*time.Millisecond)
}

// untouched fails unless INBOUND is as it was declared and holds one event.
func (i intruder) untouched(act string) {
	i.t.Helper()
	stream, err := i.operator.Stream(i.t.Context(), subject.Inbound)
	if err != nil {
		i.t.Fatalf("%s as %s: %v, want the stream still there", act, i.user, err)
	}
	if n := stream.CachedInfo().State.Msgs; n != 1 {
		i.t.Errorf("%s as %s: got %d events, want the one that was there", act, i.user, n)
	}
	if p := stream.CachedInfo().Config.RePublish; p != nil {
		i.t.Errorf("%s as %s: the stream now republishes to %s", act, i.user, p.Destination)
	}
}

const purgeInbound = "$JS.API.STREAM.PURGE." + subject.Inbound

// nats-server does not check the reply subject of a request, the deliver subject of a consumer or the destination of a trace. With them
// a compromised service would have the server call an API that the service itself may not call.
func TestCompromisedServiceStaysInItsAccount(t *testing.T) {
	t.Parallel()
	const id = "11111111-1111-4111-8111-111111111111"
	requests := map[string][]string{
		"client-api": {"$JS.API.STREAM.INFO.SENDS", "$JS.API.DIRECT.GET.SENDS", "chat.in.message." + id + "." + id, "chat.in.push." + id + "." + id},
		"widget-api": {
			"$JS.API.STREAM.INFO.OBJ_FILES", "$JS.API.STREAM.MSG.GET.OBJ_FILES", "$JS.API.DIRECT.GET.REPLIES.chat.reply.a.b", "$O.FILES.C.x", "chat.status.a.b",
		},
		"socket-gateway": {
			"$JS.API.STREAM.INFO.REPLIES", "$JS.API.CONSUMER.LIST.REPLIES", "$JS.API.CONSUMER.INFO.REPLIES.socket-gateway-0",
			"$JS.API.DIRECT.GET.REPLIES", "$JS.API.STREAM.MSG.GET.REPLIES", "chat.status.a.b",
		},
		"processor": {"$JS.API.STREAM.INFO.INBOUND", "$JS.API.CONSUMER.LIST.SENDS", "$JS.API.CONSUMER.INFO.REPLIES.recorder", "chat.reply.a.b"},
	}
	for user, subjects := range requests {
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			s := startParleyNATS(t)
			operator := applyStreams(t, s)
			i := intruder{t, user, natsConn(t, s, user), operator}
			refill := func() {
				stream, err := operator.Stream(t.Context(), subject.Inbound)
				if err != nil {
					t.Fatal(err)
				}
				if stream.CachedInfo().State.Msgs > 0 {
					return
				}
				if _, err := operator.Publish(t.Context(), "chat.in.visitor.message.a.v", []byte("{}")); err != nil {
					t.Fatal(err)
				}
			}
			refill()
			for _, subj := range subjects {
				i.request(subj, purgeInbound, nil)
				i.untouched("the answer of " + subj)
				refill()
				trace := nats.NewMsg(subj)
				trace.Header.Set("Nats-Trace-Dest", purgeInbound)
				if err := i.conn.PublishMsg(trace); err != nil {
					t.Fatal(err)
				}
				_, _ = i.conn.Request(subj, nil, 300*time.Millisecond)
				i.untouched("the trace of " + subj)
				refill()
			}
		})
	}
}

// A pull request delivers what its reader has published itself: with the reply subject of an API it is a request of the reader's choice.
func TestPulledEventIsNoRequest(t *testing.T) {
	t.Parallel()
	s := startParleyNATS(t)
	operator := applyStreams(t, s)
	processor := natsConn(t, s, "processor")
	i := intruder{t, "processor", processor, operator}
	if _, err := operator.Publish(t.Context(), "chat.in.visitor.message.a.v", []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if _, err := operator.CreateConsumer(t.Context(), subject.Replies, jetstream.ConsumerConfig{Durable: "recorder", AckPolicy: jetstream.AckExplicitPolicy}); err != nil {
		t.Fatal(err)
	}
	bent := (bus.StreamSettings{MaxBytes: 1 << 20}).Streams()[0]
	if bent.Name != subject.Inbound {
		t.Fatalf("got %s, want INBOUND first", bent.Name)
	}
	bent.RePublish = &jetstream.RePublish{Source: ">", Destination: "spy.>"}
	update, err := json.Marshal(bent)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := processor.Request("chat.reply.a.v", update, patience); err != nil {
			t.Fatal(err)
		}
	}
	const next = "$JS.API.CONSUMER.MSG.NEXT.REPLIES.recorder"
	i.request(next, "$JS.API.STREAM.UPDATE.INBOUND", []byte(`{"batch":1,"no_wait":true}`))
	i.untouched("a pulled event")
	for range 2 { // the second finds none
		i.request(next, purgeInbound, []byte(`{"batch":1,"no_wait":true}`))
	}
	i.untouched("the end of a pull request")
}

// A consumer that pushes delivers into the account of the streams. nats-server starts it only where somebody subscribes to its literal
// subject there, and nobody subscribes to an API's or a stream's that way.
func TestPushingConsumerReachesNoAPI(t *testing.T) {
	t.Parallel()
	s := startParleyNATS(t)
	operator := applyStreams(t, s)
	for _, subj := range []string{"chat.in.visitor.message.a.v", "chat.reply.a.v", "chat.status.a.v"} {
		if _, err := operator.Publish(t.Context(), subj, []byte("{}")); err != nil {
			t.Fatal(err)
		}
	}
	for user, stream := range map[string]string{"socket-gateway": subject.Replies, "processor": subject.Status} {
		i := intruder{t, user, natsConn(t, s, user), operator}
		js := natsJetStream(t, i.conn)
		for n, target := range []string{purgeInbound, "$JS.API.STREAM.DELETE.INBOUND", "chat.in.visitor.message.a.forged", "chat.in.push.a.b"} {
			name := fmt.Sprintf("spy-%d", n)
			pushing := jetstream.ConsumerConfig{
				Durable: name, DeliverSubject: target, AckPolicy: jetstream.AckExplicitPolicy, IdleHeartbeat: 100 * time.Millisecond, HeadersOnly: true,
			}
			if _, err := js.CreatePushConsumer(t.Context(), stream, pushing); err != nil {
				t.Fatal(err)
			}
			// One that does push, made after it and of the same stream, has delivered by the time the other would have.
			probe, err := i.operatorProbe(stream, name)
			if err != nil {
				t.Fatal(err)
			}
			for range 3 { // the event and two heartbeats
				if _, err := probe.NextMsg(patience); err != nil {
					t.Fatal(err)
				}
			}
			consumer, err := operator.PushConsumer(t.Context(), stream, name)
			if err != nil {
				t.Fatal(err)
			}
			if info := consumer.CachedInfo(); info.PushBound || info.Delivered.Consumer != 0 {
				t.Errorf("%s has a consumer that delivers to %s: got %+v, want it to wait", user, target, info.Delivered)
			}
		}
		i.untouched("a consumer that pushes")
	}
}

// operatorProbe is a consumer of the operator that pushes to a subject which the operator hears.
func (i intruder) operatorProbe(stream, name string) (*nats.Subscription, error) {
	deliver := i.operator.Conn().NewInbox()
	sub, err := i.operator.Conn().SubscribeSync(deliver)
	if err == nil {
		_, err = i.operator.CreatePushConsumer(i.t.Context(), stream, jetstream.ConsumerConfig{
			Name: name + "-probe-" + i.user, DeliverSubject: deliver, AckPolicy: jetstream.AckNonePolicy, IdleHeartbeat: 100 * time.Millisecond, HeadersOnly: true,
		})
	}
	return sub, err
}
