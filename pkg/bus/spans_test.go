package bus_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/tracingtest"
)

const (
	caller       = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
	callersTrace = "0af7651916cd43dd8448eb211c80319c"
	callersSpan  = "b7ad6b7169203331"
)

// The publish span of a handler is a child of its process span, which is a child of the first publish, which
// is a child of the caller's span.
func TestSpansOfAnEventAndItsReply(t *testing.T) {
	t.Parallel()
	url := bustest.Start(t).URL()
	tracer, spans := tracingtest.New(t)
	b := bustest.OpenConfig(t, bus.Config{URL: url, Name: "test", Tracer: tracer})
	heard := bustest.Collect(t, url, subject.AllReplies)
	consume(t, b, bus.Consumer{Stream: subject.Sends, Handle: func(ctx context.Context, _ bus.Delivery) error {
		return b.Publish(ctx, event.Derived(), reply("visitor", 1))
	}})
	question := event.CompanyMessageAccepted{CompanyID: "company", ChatID: "chat", Message: reply("visitor", 0).Message}
	ctx := event.WithOrigin(t.Context(), event.Origin{RequestID: "request-1", TraceParent: caller})
	if err := b.Publish(ctx, event.Derived(), question); err != nil {
		t.Fatal(err)
	}
	m := heard.Next()
	send, process, answer := spans.Await(t, "publish SENDS"), spans.Await(t, "process SENDS"), spans.Await(t, "publish REPLIES")
	if send.TraceID != callersTrace || send.ParentID != callersSpan || process.ParentID != send.SpanID || answer.ParentID != process.SpanID {
		t.Errorf("got %+v, %+v, %+v, want each a child of the previous one", send, process, answer)
	}
	if got := m.Header.Get("traceparent"); got != answer.TraceParent() {
		t.Errorf("got traceparent %q in the reply, want that of its publish: %q", got, answer.TraceParent())
	}
	if got := m.Header.Get("ce-requestid"); got != "request-1" {
		t.Errorf("got ce-requestid %q in the reply, want that of the first event", got)
	}
	for key, want := range map[string]string{
		"messaging.system": "nats", "messaging.operation.type": "process", "messaging.destination.name": "chat.in.message.company.chat",
		"messaging.consumer.group.name": "tester", "messaging.message.id": question.EventID(), "messaging.nats.attempt": "1",
	} {
		if process.Attributes[key] != want {
			t.Errorf("process: got %s=%q, want %q", key, process.Attributes[key], want)
		}
	}
	if send.Kind != "producer" || process.Kind != "consumer" || send.Attributes["messaging.operation.type"] != "send" {
		t.Errorf("got kinds %s and %s, want producer and consumer", send.Kind, process.Kind)
	}
}

func TestEachDeliveryOfABatchHasASpan(t *testing.T) {
	t.Parallel()
	tracer, spans := tracingtest.New(t)
	b := bustest.OpenConfig(t, bus.Config{URL: bustest.Start(t).URL(), Name: "test", Tracer: tracer})
	traces := make(chan string, 2)
	consume(t, b, bus.Consumer{HandleBatch: func(_ context.Context, batch []bus.Delivery) []error {
		errs := make([]error, len(batch))
		for i, d := range batch {
			traces <- d.TraceParent
			if d.Subject == reply("b", 0).Subject() {
				errs[i] = apperr.New(apperr.Invalid, "WRONG", "Wrong")
			}
		}
		return errs
	}})
	for _, visitor := range []string{"a", "b"} {
		publish(t, b, reply(visitor, 0))
	}
	got := map[string]bool{receive(t, "a delivery", traces): true, receive(t, "a delivery", traces): true}
	awaitEmpty(t, b, "tester")
	letter := spans.Await(t, "publish DEAD")
	processes := spans.Spans("process REPLIES")
	if len(processes) != 2 {
		t.Fatalf("got %+v, want a span per delivery", processes)
	}
	for _, p := range processes {
		if !got[p.TraceParent()] {
			t.Errorf("got %v in the handler, want %s", got, p.TraceParent())
		}
		if failed := strings.HasSuffix(p.Attributes["messaging.destination.name"], ".b"); failed != (p.StatusText == "WRONG") {
			t.Errorf("got %+v, want only the invalid one failed", p)
		}
		if p.StatusText == "WRONG" && letter.TraceID != p.TraceID {
			t.Errorf("dead letter: got trace %s, want %s", letter.TraceID, p.TraceID)
		}
	}
}

func TestFailedPublishFailsTheSpan(t *testing.T) {
	t.Parallel()
	tracer, spans := tracingtest.New(t)
	b := bustest.OpenConfig(t, bus.Config{URL: bustest.Start(t).URL(), Name: "test", Tracer: tracer})
	if err := b.Publish(t.Context(), event.Derived(), reply("a visitor", 0)); err == nil {
		t.Fatal("invalid subject: got no error, want one")
	}
	if got := spans.Await(t, "publish REPLIES"); got.Status != "Error" || got.StatusText != "INVALID_EVENT" {
		t.Errorf("got %+v, want INVALID_EVENT", got)
	}
}

// Without a tracer the caller's traceparent is forwarded unchanged, also to HandleBatch.
func TestTraceparentIsForwardedWithoutATracer(t *testing.T) {
	t.Parallel()
	b := bustest.Open(t, bustest.Start(t).URL())
	got := make(chan string, 1)
	consume(t, b, bus.Consumer{HandleBatch: func(_ context.Context, batch []bus.Delivery) []error {
		got <- batch[0].TraceParent
		return nil
	}})
	if err := b.Publish(event.WithTraceParent(t.Context(), caller), event.Derived(), reply("visitor", 0)); err != nil {
		t.Fatal(err)
	}
	if trace := receive(t, "a delivery", got); trace != caller {
		t.Errorf("got %q, want %q", trace, caller)
	}
}

// A log line about a failed event contains its id, its request id and its trace id, but no content from the sender.
func TestFailuresInTheLog(t *testing.T) {
	t.Parallel()
	book := new(logbook)
	log := slog.New(slog.NewJSONHandler(book, &slog.HandlerOptions{Level: slog.LevelDebug}))
	b := bustest.OpenConfig(t, bus.Config{URL: bustest.Start(t).URL(), Name: "test", Logger: log})
	cause := errors.New("ada@example.org is not a number")
	consume(t, b, bus.Consumer{Handle: func(_ context.Context, d bus.Delivery) error {
		if d.Attempt == 1 {
			return apperr.New(apperr.NotFound, "CHAT_NOT_FOUND", "Chat not found").Wrap(cause)
		}
		return apperr.New(apperr.Invalid, "MALFORMED_EVENT", "Event is malformed").Wrap(cause)
	}})
	e := reply("visitor", 0)
	ctx := event.WithOrigin(t.Context(), event.Origin{RequestID: "request-1", TraceParent: caller})
	if err := b.Publish(ctx, event.Derived(), e); err != nil {
		t.Fatal(err)
	}
	awaitEmpty(t, b, "tester")
	found := make(map[string]bool)
	for line := range strings.Lines(book.String()) {
		var got map[string]any
		if err := json.Unmarshal([]byte(line), &got); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if got["eventId"] == nil {
			continue
		}
		found[got["msg"].(string)+" "+got["level"].(string)] = true
		if got["eventId"] != e.EventID() || got["requestId"] != "request-1" || got["trace_id"] != callersTrace || got["span_id"] != callersSpan {
			t.Errorf("got %s, want the ids of the event, the request and the trace", line)
		}
	}
	if !found["gave up on a delivery ERROR"] || !found["delivery failed, retrying DEBUG"] {
		t.Errorf("got lines %v, want one per failure", found)
	}
	if strings.Contains(book.String(), "ada@example.org") {
		t.Errorf("got %s, want no content from the sender", book)
	}
}
