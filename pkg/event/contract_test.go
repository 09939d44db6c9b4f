package event_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"pgregory.net/rapid"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/testkit/bustest"

	eventsv1 "github.com/parley-chat/parley/proto-events/gen/parley/events/v1"
)

var update = flag.Bool("update", false, "update the examples")

const examplesDir = "../../proto-events/examples"

// The generated types strictly parse the services' events to the same content.
func TestOursParsesAsTheContract(t *testing.T) {
	t.Parallel()
	for _, s := range samples() {
		t.Run(s.file, func(t *testing.T) {
			t.Parallel()
			if diff := throughContract(s.event.AppendJSON(nil), s.proto()); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// throughContract strictly parses payload into m, and reports where m's JSON differs in content from payload.
func throughContract(payload []byte, m proto.Message) string {
	if err := (protojson.UnmarshalOptions{DiscardUnknown: false}).Unmarshal(payload, m); err != nil {
		return "the contract does not parse " + string(payload) + ": " + err.Error()
	}
	again, err := protojson.MarshalOptions{EmitDefaultValues: true}.Marshal(m)
	if err != nil {
		return "encoding it again: " + err.Error()
	}
	if got, want := content(again), content(payload); !contains(got, want) {
		return "got " + string(again) + " from the contract, want the content of " + string(payload)
	}
	return ""
}

// content decodes a JSON document to maps, with every time in one notation.
func content(document []byte) any {
	var v any
	if err := json.Unmarshal(document, &v); err != nil {
		return "not JSON: " + err.Error()
	}
	return v
}

// contains reports whether got has all members of want and otherwise only empty values.
func contains(got, want any) bool {
	g, gotMap := got.(map[string]any)
	w, wantMap := want.(map[string]any)
	if !gotMap || !wantMap {
		return reflect.DeepEqual(sameTime(got), sameTime(want))
	}
	for name, value := range w {
		if !contains(g[name], value) {
			return false
		}
	}
	for name, value := range g {
		if _, ok := w[name]; !ok && value != "" && value != false && value != nil && value != 0.0 {
			return false
		}
	}
	return true
}

// sameTime normalises a time: protojson omits a zero fraction.
func sameTime(v any) any {
	if s, ok := v.(string); ok {
		return strings.TrimSuffix(strings.TrimSuffix(s, "Z"), ".000")
	}
	return v
}

// The services parse events encoded by the generated types to the same content.
func TestContractParsesAsOurs(t *testing.T) {
	t.Parallel()
	for _, s := range samples() {
		t.Run(s.file, func(t *testing.T) {
			t.Parallel()
			m := s.proto()
			if err := protojson.Unmarshal(s.event.AppendJSON(nil), m); err != nil {
				t.Fatal(err)
			}
			for name, options := range map[string]protojson.MarshalOptions{
				"plain": {}, "with defaults": {EmitDefaultValues: true}, "indented": {Multiline: true},
			} {
				payload, err := options.Marshal(m)
				if err != nil {
					t.Fatal(err)
				}
				got, err := s.into(payload)
				if err != nil {
					t.Errorf("%s: reading %s: %v", name, payload, err)
					continue
				}
				// The ids of these events are in the headers.
				switch e := got.(type) {
				case event.VisitorRegistered:
					e.ID = s.event.EventID()
					got = e
				case event.ChatControlChanged:
					e.ID = s.event.EventID()
					got = e
				}
				if diff := sameEvent(got, s.event); diff != "" {
					t.Errorf("%s: %s", name, diff)
				}
			}
		})
	}
}

func sameEvent(got, want event.Event) string {
	g, w := got.AppendJSON(nil), want.AppendJSON(nil)
	if got.Subject() != want.Subject() || got.EventID() != want.EventID() || !got.OccurredAt().Equal(want.OccurredAt()) ||
		!reflect.DeepEqual(content(g), content(w)) {
		return "got " + got.Subject() + " " + string(g) + ", want " + want.Subject() + " " + string(w)
	}
	return ""
}

// Arbitrary text, times and data survive encoding by us and decoding by the generated types.
func TestAnyContentParsesAsTheContract(t *testing.T) {
	t.Parallel()
	text := rapid.StringOf(rapid.Rune())
	rapid.Check(t, func(t *rapid.T) {
		data, err := json.Marshal(map[string]any{
			"text": text.Draw(t, "text"), "n": rapid.Float64Range(-1e9, 1e9).Draw(t, "n"), "nil": nil, "yes": true,
			"list": rapid.SliceOf(text).Draw(t, "list"),
		})
		if err != nil {
			t.Fatal(err)
		}
		m := message(chat.Text, string(data), text.Draw(t, "sender"), rapid.Bool().Draw(t, "support"))
		m.CreatedAt = at("00:00:00.000").AddDate(0, 0, rapid.IntRange(-5000, 5000).Draw(t, "day"))
		profile := event.VisitorProfile{
			FirstName: text.Draw(t, "first"), LastName: text.Draw(t, "last"), Email: text.Draw(t, "email"),
			Phone: text.Draw(t, "phone"), UserID: text.Draw(t, "user"),
		}
		for _, c := range []struct {
			e event.Event
			m proto.Message
		}{
			{event.CompanyMessageAccepted{CompanyID: companyID, ChatID: chatID, Message: m}, new(eventsv1.CompanyMessageAccepted)},
			{event.Reply{AppID: appID, ChatUserID: chatUserID, Message: m}, new(eventsv1.Reply)},
			{event.VisitorMessageAccepted{AppID: appID, ChatUserID: chatUserID, Message: m}, new(eventsv1.VisitorMessageAccepted)},
			{event.OutboundMessage{
				Channel: chat.ChannelPhone, Message: m,
				Recipient: event.Recipient{Phone: profile.Phone, Name: profile.FirstName},
			}, new(eventsv1.OutboundMessage)},
			{event.VisitorRegistered{RegisteredAt: m.CreatedAt, Profile: profile}, new(eventsv1.VisitorRegistered)},
			{event.PushAccepted{
				CreatedAt: m.CreatedAt, Source: profile.Phone, Username: profile.LastName,
				Parameters: map[string]string{profile.FirstName: profile.Email, "order": profile.UserID},
			}, new(eventsv1.PushAccepted)},
			{event.MessageStatusChanged{
				MessageID: messageID, Status: chat.StatusFailed, At: m.CreatedAt, Reason: profile.FirstName, ChatID: chatID,
			}, new(eventsv1.MessageStatusChanged)},
		} {
			if diff := throughContract(c.e.AppendJSON(nil), c.m); diff != "" {
				t.Error(diff)
			}
		}
	})
}

// A message's data is preserved byte for byte: numbers, escapes, order of members, white space.
func TestDataPassesByteForByte(t *testing.T) {
	t.Parallel()
	const data = `{"z":1.10, "a":12345678901234567890,"html":"<b>&\u003c/b>","e":1e400,"z":2}`
	for _, s := range samples() {
		raw := message(chat.Text, data, "x", true)
		var e event.Event
		switch s.event.(type) {
		case event.CompanyMessageAccepted:
			e = event.CompanyMessageAccepted{Message: raw}
		case event.VisitorMessageAccepted:
			e = event.VisitorMessageAccepted{Message: raw}
		case event.Reply:
			e = event.Reply{Message: raw}
		case event.OutboundMessage:
			e = event.OutboundMessage{Message: raw}
		default:
			continue // has no message
		}
		payload := e.AppendJSON(nil)
		if !bytes.Contains(payload, []byte(`"data":`+data+`,`)) {
			t.Errorf("%s: got %s, want the data unchanged", s.file, payload)
		}
		back, err := s.into(payload)
		if err != nil {
			t.Errorf("%s: reading it back: %v", s.file, err)
			continue
		}
		if got := back.AppendJSON(nil); !bytes.Equal(got, payload) {
			t.Errorf("%s: got %s after reading and writing, want %s", s.file, got, payload)
		}
	}
}

// The contract and the services define the same events with the same names.
func TestEveryTypeOfTheContractHasASample(t *testing.T) {
	t.Parallel()
	ours := make(map[string]bool)
	for _, s := range samples() {
		ours[s.event.Type()] = true
		if got := string(s.proto().ProtoReflect().Descriptor().FullName()); got != s.event.Type() {
			t.Errorf("%s: got type %s, want %s as in the contract", s.file, s.event.Type(), got)
		}
	}
	parts := map[string]bool{"Message": true, "VisitorProfile": true, "Recipient": true, "Handover": true} // of events, not events
	for _, file := range []protoreflect.FileDescriptor{
		eventsv1.File_parley_events_v1_inbound_proto, eventsv1.File_parley_events_v1_reply_proto,
		eventsv1.File_parley_events_v1_outbound_proto, eventsv1.File_parley_events_v1_message_proto,
		eventsv1.File_parley_events_v1_status_proto,
	} {
		for i := range file.Messages().Len() {
			m := file.Messages().Get(i)
			if !parts[string(m.Name())] && !ours[string(m.FullName())] {
				t.Errorf("got no sample of %s, want one of every event of the contract", m.FullName())
			}
		}
	}
}

// example is an event as published over NATS.
type example struct {
	Subject string            `json:"subject"`
	Headers map[string]string `json:"headers,omitempty"`
	Payload json.RawMessage   `json:"payload"`
}

// The committed examples equal what a plain NATS client receives.
func TestExamplesAreCurrent(t *testing.T) {
	t.Parallel()
	url := bustest.Start(t).URL()
	heard := bustest.Collect(t, url, "chat.>")
	buses := make(map[string]*bus.Bus)
	want := make(map[string]bool)
	ctx := event.WithOrigin(t.Context(), event.Origin{
		RequestID: "5f1c2b7e-8d0a-4a3e-9c61-7b2f4e8d1a90", TraceParent: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
	})
	for _, s := range samples() {
		if buses[s.source] == nil {
			buses[s.source] = bustest.OpenConfig(t, bus.Config{URL: url, Name: s.source[1:]})
		}
		if err := buses[s.source].Publish(ctx, event.Derived(), s.event); err != nil {
			t.Fatalf("%s: %v", s.file, err)
		}
		m := heard.Next()
		headers := make(map[string]string)
		for name, values := range m.Header {
			headers[name] = values[0]
		}
		compareExample(t, s.file, example{Subject: m.Subject, Headers: headers, Payload: m.Data})
		want[s.file+".json"] = true
	}
	for _, s := range signals() {
		compareExample(t, s.file, example{Subject: s.signal.Subject(), Payload: s.signal.AppendJSON(nil)})
		want[s.file+".json"] = true
	}
	files, err := os.ReadDir(examplesDir)
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if !want[f.Name()] {
			t.Errorf("%s is an example of no event", f.Name())
		}
	}
}

func compareExample(t *testing.T, name string, e example) {
	t.Helper()
	var got bytes.Buffer
	encoder := json.NewEncoder(&got)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	if err := encoder.Encode(e); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(examplesDir, name+".json")
	if *update {
		if err := os.MkdirAll(examplesDir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, got.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	committed, err := os.ReadFile(path)
	if err != nil {
		t.Fatalf("reading the example (write it with go test ./pkg/event -run TestExamplesAreCurrent -update): %v", err)
	}
	if !bytes.Equal(got.Bytes(), committed) {
		t.Errorf("%s is not current (write it with go test ./pkg/event -run TestExamplesAreCurrent -update): got\n%s\nwant\n%s", path, got.Bytes(), committed)
	}
}

// A reader that uses only the filters gets each kind from its stream.
func TestSubjectsMatchTheirFilters(t *testing.T) {
	t.Parallel()
	streams := make(map[string][]string)
	for _, s := range subject.Streams() {
		streams[s.Name] = s.Subjects
	}
	for _, s := range samples() {
		under := func(filter string) bool {
			prefix, ok := strings.CutSuffix(filter, ">")
			return ok && strings.HasPrefix(s.event.Subject(), prefix)
		}
		if !under(s.filter) {
			t.Errorf("%s: got subject %s, want it under %s", s.file, s.event.Subject(), s.filter)
		}
		if !slices.ContainsFunc(streams[s.stream], under) {
			t.Errorf("%s: got subject %s, want it in stream %s", s.file, s.event.Subject(), s.stream)
		}
		for _, other := range slices.Sorted(maps.Keys(streams)) {
			if other != s.stream && slices.ContainsFunc(streams[other], under) {
				t.Errorf("%s: stream %s matches it too", s.file, other)
			}
		}
	}
}

// A registration's id is only in the headers.
func TestRegistrationIDIsNotInThePayload(t *testing.T) {
	t.Parallel()
	e := event.VisitorRegistered{ID: "the-id", RegisteredAt: at("15:08:00.000")}
	if payload := string(e.AppendJSON(nil)); strings.Contains(payload, "the-id") || e.EventID() != "the-id" {
		t.Errorf("got %s with the id %s, want the id only in the headers", payload, e.EventID())
	}
}

func BenchmarkAppendJSON(b *testing.B) {
	b.ReportAllocs()
	var buffer []byte
	e := samples()[0].event
	for b.Loop() {
		buffer = e.AppendJSON(buffer[:0])
	}
}

func FuzzReadReply(f *testing.F) {
	for _, s := range samples() {
		f.Add(s.event.AppendJSON(nil))
	}
	f.Add([]byte(`{"message":{"data":null}}`))
	f.Fuzz(func(t *testing.T, payload []byte) {
		e, err := read[event.Reply](payload)
		if err != nil {
			return
		}
		r, _ := e.(event.Reply)
		if len(r.Message.Data) == 0 { // omitted by the sender: not a reply that we would write
			return
		}
		written := e.AppendJSON(nil)
		back, err := read[event.Reply](written)
		if err != nil {
			t.Fatalf("got %v reading what we wrote from %q: %q", err, payload, written)
		}
		if again := back.AppendJSON(nil); !bytes.Equal(again, written) {
			t.Fatalf("got %q, want %q", again, written)
		}
	})
}
