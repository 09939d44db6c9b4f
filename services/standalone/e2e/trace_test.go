package e2e

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	collectorv1 "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	commonv1 "go.opentelemetry.io/proto/otlp/common/v1"
	"google.golang.org/protobuf/proto"

	"github.com/parley-chat/parley/proto-events/subject"
)

// span is a span that a service has exported.
type span struct {
	name, service, instance string
	traceID, id, parent     string
	attributes              map[string]string
}

// who returns the service of a span, with the consumer if the service has several.
func (s span) who() string {
	return strings.TrimSpace(s.service + " " + s.attributes["messaging.consumer.group.name"])
}

// spans is a collector: OTLP over HTTP.
type spans struct {
	url string

	mu   sync.Mutex
	all  []span
	text strings.Builder // all that was received
}

func collectSpans(t *testing.T) *spans {
	t.Helper()
	c := new(spans)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		request := new(collectorv1.ExportTraceServiceRequest)
		if err != nil || proto.Unmarshal(body, request) != nil {
			t.Errorf("the collector got %d bytes at %s (%v), want spans", len(body), r.URL.Path, err)
			return
		}
		c.add(request)
	}))
	t.Cleanup(server.Close)
	c.url = server.URL
	return c
}

func (c *spans) add(request *collectorv1.ExportTraceServiceRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.text.WriteString(request.String())
	for _, r := range request.ResourceSpans {
		process := attributesOf(r.Resource.Attributes)
		for _, scope := range r.ScopeSpans {
			for _, s := range scope.Spans {
				c.all = append(c.all, span{
					name: s.Name, service: process["service.name"], instance: process["service.instance.id"],
					traceID: hex.EncodeToString(s.TraceId), id: hex.EncodeToString(s.SpanId), parent: hex.EncodeToString(s.ParentSpanId),
					attributes: attributesOf(s.Attributes),
				})
			}
		}
	}
}

func attributesOf(list []*commonv1.KeyValue) map[string]string {
	m := make(map[string]string)
	for _, a := range list {
		m[a.Key] = a.Value.GetStringValue()
	}
	return m
}

// trace returns the spans of a trace so far.
func (c *spans) trace(id string) []span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(c.all), func(s span) bool { return s.traceID != id })
}

// path returns the names of a span and its ancestors within the trace.
func path(trace []span, s span) string {
	names := []string{s.name + " (" + s.who() + ")"}
	for {
		i := slices.IndexFunc(trace, func(above span) bool { return above.id == s.parent })
		if i < 0 {
			return strings.Join(append(names, s.parent), " < ")
		}
		s = trace[i]
		names = append(names, s.name+" ("+s.who()+")")
	}
}

const (
	callersTrace = "0af7651916cd43dd8448eb211c80319c"
	callersSpan  = "b7ad6b7169203331"
)

// wholeTrace lists the spans of a visitor's message and the bot's answer, each with its ancestors. Both
// gateways have a socket: one of them reads the answer, and both emit it through Redis.
func wholeTrace() []string {
	posted := "POST /message (widget-api) < " + callersSpan
	asked := "publish INBOUND (widget-api) < " + posted
	answered := "publish REPLIES (processor) < process INBOUND (processor bot) < " + asked
	delivered := "process REPLIES (socket-gateway socket-gateway) < " + answered
	published := "PUBLISH (socket-gateway) < " + delivered
	return []string{
		posted, asked, "process INBOUND (processor recorder) < " + asked, "process INBOUND (processor bot) < " + asked,
		"process INBOUND (processor webhooks) < " + asked,
		answered, "process REPLIES (processor recorder) < " + answered,
		delivered, published, "emit message (socket-gateway) < " + published,
	}
}

// TestTraceOfAMessage runs the services as processes that export their spans to a collector, with
// recognisable personal data.
func TestTraceOfAMessage(t *testing.T) {
	collector := collectSpans(t)
	f := newDeployment(t, 2)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	f.settings = []string{
		"LOG_LEVEL=DEBUG", "OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.url, "OTEL_BSP_SCHEDULE_DELAY=100",
		"OTEL_RESOURCE_ATTRIBUTES=deployment.environment.name=test",
	}
	for _, name := range append([]string{"seed", "nats", "redis"}, f.services...) {
		f.start(t, name)
	}
	f.awaitReady(t, http.StatusOK, f.services...)
	p := newPersonalData(t, f)

	t.Run("one trace", func(t *testing.T) { p.wholeTrace(t, collector) })
	t.Run("what goes wrong", p.invalidInput)
	for _, name := range f.services { // flushes the remaining spans
		code, err := f.run[name].stop()
		if err != nil || code != 0 {
			t.Errorf("%s ended with %d (%v)", name, code, err)
		}
	}
	t.Run("log lines", p.lines)
	t.Run("no personal data", func(t *testing.T) { p.noPersonalData(t, collector) })
}

// personalData has recognisable personal data.
type personalData struct {
	deployment *deployment
	visitor    *visitor
	texts      map[string]string // texts that must not leak
	letters    *nats.Conn
}

func newPersonalData(t *testing.T, f *deployment) *personalData {
	p := &personalData{deployment: f, texts: map[string]string{
		"first name": "Zebulonia", "last name": "Quackenbush", "e-mail": "marmalade@xylophone.example", "phone": "491700081542",
		"text": "gooseberry fool", "company's text": "rhubarb crumble", "user name": "Bartholomew",
	}}
	p.visitor = &visitor{place: f.place, api: f.widgetAPI(t), email: p.texts["e-mail"]}
	body := map[string]string{
		"appId": f.AppID, "firstName": p.texts["first name"], "lastName": p.texts["last name"], "email": p.texts["e-mail"], "phone": p.texts["phone"],
	}
	p.visitor.token = want[struct{ AccessToken string }](t, http.StatusOK, p.visitor.api.call(t, http.MethodPost, "/register", body)).AccessToken
	conn, err := nats.Connect(f.NATSURL)
	check(t, err)
	t.Cleanup(conn.Close)
	p.letters = conn
	return p
}

// wholeTrace writes a message within a caller's trace, and waits for all of its spans.
func (p *personalData) wholeTrace(t *testing.T, collector *spans) {
	sockets := []*socket{
		connected(t, p.deployment.SocketURLs[0], p.visitor.token, "websocket"), connected(t, p.deployment.SocketURLs[1], p.visitor.token, "websocket"),
	}
	body := map[string]any{"type": "TEXT", "data": map[string]string{"text": p.texts["text"]}}
	want[record](t, http.StatusCreated, p.visitor.api.call(t, http.MethodPost, "/message", body, bearer(p.visitor.token),
		header{"traceparent", "00-" + callersTrace + "-" + callersSpan + "-01"}, header{"X-Request-Id", "the-request"}))
	for _, s := range sockets {
		s.next(t)
	}
	eventually(t, "the trace", func() error {
		trace := collector.trace(callersTrace)
		got, emitted := make(map[string]bool), make(map[string]bool) // by gateway
		for _, s := range trace {
			got[path(trace, s)] = true
			if s.name == "emit message" {
				emitted[s.instance] = true
			}
		}
		for _, way := range wholeTrace() {
			if !got[way] {
				return fmt.Errorf("got\n%s\nwant also\n%s", strings.Join(slices.Sorted(maps.Keys(got)), "\n"), way)
			}
		}
		if len(got) != len(wholeTrace()) {
			return fmt.Errorf("got\n%s\nwant no others than\n%s", strings.Join(slices.Sorted(maps.Keys(got)), "\n"), strings.Join(wholeTrace(), "\n"))
		}
		if len(emitted) != 2 {
			return fmt.Errorf("got emits of %v, want one of each gateway", emitted)
		}
		return nil
	})
}

// invalidInput sends invalid requests and events that contain personal data.
func (p *personalData) invalidInput(t *testing.T) {
	company, widget, f := p.deployment.clientAPI(t), p.deployment.widgetAPI(t), p.deployment
	key, chatID := accessToken(f.AccessToken), chatOf(t, f.place, p.visitor)
	text := func(s string) map[string]any {
		return map[string]any{"type": "TEXT", "chatId": chatID, "data": map[string]string{"text": s}}
	}
	company.call(t, http.MethodPost, "/message/send", text(p.texts["company's text"]), key)
	push := map[string]string{"templateId": f.TemplateID, "source": p.texts["phone"], "username": p.texts["user name"]}
	company.call(t, http.MethodPost, "/push-message", push, key)
	for _, body := range []string{
		`{"type":"` + p.texts["text"] + `","data":{"text":"` + p.texts["text"] + `"}}`, `{"type":"TEXT","data":"` + p.texts["text"] + `"}`,
		`{"type":"TEXT","data":{"text":` + p.texts["phone"] + `}}`, `{"` + p.texts["text"] + `":`, p.texts["text"],
		`{"appId":"` + f.AppID + `","firstName":` + p.texts["phone"] + `,"email":"` + p.texts["first name"] + `","phone":"` + p.texts["e-mail"] + `"}`,
		`{"chatId":"` + p.texts["e-mail"] + `","type":"TEXT","data":{"text":"a"},"source":` + p.texts["phone"] + `,"username":{"a":"` + p.texts["user name"] + `"}}`,
	} {
		for _, path := range []string{"/register", "/message", "/" + p.texts["e-mail"], "/message?before=" + p.texts["e-mail"]} {
			widget.call(t, http.MethodPost, path, body, bearer(p.visitor.token))
		}
		for _, path := range []string{"/message/send", "/push-message", "/message/" + p.texts["phone"]} {
			company.call(t, http.MethodPost, path, body, key)
		}
	}
	// And invalid events of a processing layer.
	id := uuid.NewString()
	for n, broken := range []string{
		`{"appId":` + p.texts["phone"] + `}`, `{"message":{"data":"` + p.texts["text"], p.texts["e-mail"], `{"` + p.texts["first name"] + `":1}`,
		`{"companyId":"` + p.texts["last name"] + `","message":{"createdAt":"` + p.texts["phone"] + `"}}`,
	} {
		m := nats.NewMsg(subject.Reply(id, id))
		m.Data = []byte(broken)
		m.Header.Set("Nats-Msg-Id", fmt.Sprint("broken-", n))
		m.Header.Set("ce-requestid", "broken-request")
		m.Header.Set("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
		_, err := p.letters.RequestMsg(m, limit)
		check(t, err)
	}
	for _, consumer := range []string{"socket-gateway", "recorder"} {
		eventually(t, "dead letters", func() error {
			if got := strings.Count(p.logs(), `"consumer":"`+consumer+`"`); got < 5 {
				return fmt.Errorf("got %d lines about %s, want one for each", got, consumer)
			}
			return nil
		})
	}
}

// logs returns the logs of all services.
func (p *personalData) logs() string {
	var all strings.Builder
	for _, name := range p.deployment.services {
		all.WriteString(p.deployment.run[name].stderr.String())
	}
	return all.String()
}

// lines: every log line is JSON; a request and a failed event have one each, with their ids.
func (p *personalData) lines(t *testing.T) {
	var request, failures int
	for line := range strings.Lines(p.logs()) {
		var l map[string]any
		if err := json.Unmarshal([]byte(line), &l); err != nil || l["service"] == nil || l["time"] == nil || l["level"] == nil {
			t.Errorf("got line %q, want JSON with time, level and service", line)
			continue
		}
		switch l["msg"] {
		case "request":
			if l["requestId"] == nil || l["trace_id"] == nil || l["span_id"] == nil || l["route"] == nil || l["status"] == nil {
				t.Errorf("got %s, want the request's ids", line)
			}
			if l["requestId"] == "the-request" {
				request++
				if l["trace_id"] != callersTrace || l["span_id"] == callersSpan || l["status"] != 201.0 {
					t.Errorf("got %s, want a span of the caller's trace", line)
				}
			}
		case "gave up on a delivery":
			failures++
			if l["requestId"] != "broken-request" || l["trace_id"] != "4bf92f3577b34da6a3ce929d0e0e4736" || l["eventId"] == nil || l["consumer"] == nil {
				t.Errorf("got %s, want the event's ids", line)
			}
		}
	}
	if request != 1 || failures != 10 {
		t.Errorf("got %d lines of the request and %d of failed events, want 1, and 5 of each of two consumers", request, failures)
	}
}

// noPersonalData: neither the debug logs nor the spans contain texts or names of people.
func (p *personalData) noPersonalData(t *testing.T, collector *spans) {
	collector.mu.Lock()
	spans := collector.text.String()
	collector.mu.Unlock()
	if !strings.Contains(p.logs(), `"level":"DEBUG"`) && !strings.Contains(p.logs(), `"status":400`) {
		t.Error("got no errors in the logs, want some to check")
	}
	for place, text := range map[string]string{"the logs": p.logs(), "the spans": spans} {
		for what, data := range p.texts {
			if at := strings.Index(text, data); at >= 0 {
				t.Errorf("the %s can be seen in %s: ...%s...", what, place, text[max(0, at-300):min(len(text), at+100)])
			}
		}
	}
}
