package manifests

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/proto-events/subject"
)

// intruder has the connection of a service, and an operator's view of it.
type intruder struct {
	t        *testing.T
	user     string
	conn     *nats.Conn
	operator jetstream.JetStream
}

// request sends a request with reply as its reply subject, then the same with an inbox, and returns when the second
// reply has arrived or none can arrive: by then the server has sent the first reply, too.
func (i intruder) request(subj, reply string, data []byte) {
	i.t.Helper()
	if err := i.conn.PublishRequest(subj, reply, data); err != nil {
		i.t.Fatal(err)
	}
	_, _ = i.conn.Request(subj, data, 100*time.Millisecond)
}

// untouched fails unless INBOUND has its declared configuration and one event.
func (i intruder) untouched(act string) {
	i.t.Helper()
	stream, err := i.operator.Stream(i.t.Context(), subject.Inbound)
	if err != nil {
		i.t.Fatalf("%s as %s: %v, want the stream to exist", act, i.user, err)
	}
	if n := stream.CachedInfo().State.Msgs; n != 1 {
		i.t.Errorf("%s as %s: got %d events, want the original one", act, i.user, n)
	}
	if p := stream.CachedInfo().Config.RePublish; p != nil {
		i.t.Errorf("%s as %s: the stream now republishes to %s", act, i.user, p.Destination)
	}
}

const purgeInbound = "$JS.API.STREAM.PURGE." + subject.Inbound

var (
	serviceAccount = regexp.MustCompile(`(?ms)^  ([A-Z_]+): \{$(.*?)^  \}$`)
	serviceImport  = regexp.MustCompile(`\{ service: \{ account: [A-Z_]+, subject: "([^"]+)" \} \}`)
)

// requestsOf returns the subjects that the account of each user imports, with a word for each wildcard.
func requestsOf(t *testing.T) map[string][]string {
	t.Helper()
	requests := map[string][]string{}
	for _, account := range serviceAccount.FindAllStringSubmatch(accounts(t), -1) {
		user := strings.ToLower(strings.ReplaceAll(account[1], "_", "-"))
		for _, imported := range serviceImport.FindAllStringSubmatch(account[2], -1) {
			requests[user] = append(requests[user], strings.NewReplacer("*", spy, ">", spy+".b").Replace(imported[1]))
		}
	}
	delete(requests, "parley")
	if len(requests) != 4 || len(requests["processor"]) < 40 {
		t.Fatalf("got the requests %v, want those of four services", requests)
	}
	return requests
}

// spy is the consumer of each stream used in the requests.
const spy = "spy"

// nats-server does not check the reply subject of a request or the destination of a trace. Through them a compromised
// service could make the server call an API that the service itself may not call. The test tries all permitted
// requests.
func TestCompromisedServiceStaysInItsAccount(t *testing.T) {
	t.Parallel()
	for user, subjects := range requestsOf(t) {
		t.Run(user, func(t *testing.T) {
			t.Parallel()
			s := startParleyNATS(t)
			operator := applyStreams(t, s)
			for _, stream := range (bus.StreamSettings{}).Streams() {
				if _, err := operator.CreateConsumer(t.Context(), stream.Name, jetstream.ConsumerConfig{Durable: spy, AckPolicy: jetstream.AckExplicitPolicy}); err != nil {
					t.Fatal(err)
				}
			}
			answerSyncs(t, s)
			i := intruder{t, user, natsConn(t, s, user), operator}
			refill := func() {
				stream, err := operator.Stream(t.Context(), subject.Inbound)
				if err != nil {
					t.Fatal(err)
				}
				if err := stream.Purge(t.Context()); err != nil { // of events the service may write
					t.Fatal(err)
				}
				if _, err := operator.Publish(t.Context(), "chat.in.visitor.message.a.v", []byte("{}")); err != nil {
					t.Fatal(err)
				}
			}
			for _, subj := range subjects {
				if strings.HasPrefix(subj, "chat.in.visitor.") || strings.HasPrefix(subj, "chat.in.control.") {
					continue // the request writes to the stream; all other publishes are acknowledged in the same way
				}
				refill()
				for range 2 { // the second finds what the first left
					i.request(subj, purgeInbound, []byte(`{"batch":1,"no_wait":true}`))
				}
				i.request(subj, "$JS.API.STREAM.DELETE.INBOUND", nil)
				i.untouched("the answer of " + subj)
				trace := nats.NewMsg(subj)
				trace.Header.Set("Nats-Trace-Dest", purgeInbound)
				if err := i.conn.PublishMsg(trace); err != nil {
					t.Fatal(err)
				}
				i.request(subj, i.conn.NewInbox(), nil)
				i.untouched("the trace of " + subj)
			}
		})
	}
}

// A pull request delivers what its reader has published: with an API's subject as reply subject it is a request chosen
// by the reader.
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
	for range 2 { // the second finds no message
		i.request(next, purgeInbound, []byte(`{"batch":1,"no_wait":true}`))
	}
	i.untouched("the end of a pull request")
}

// A push consumer delivers into the account of the streams. nats-server starts it only if that account has a
// subscription to its literal subject, and no subscription to an API or a stream has that form.
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
			// A push consumer created after it on the same stream has delivered by the time the other would have.
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
		i.untouched("a push consumer")
	}
}

// operatorProbe is a push consumer of the operator to a subject with a subscription.
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
