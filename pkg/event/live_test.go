package event_test

import (
	"encoding/json"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"

	eventsv1 "github.com/parley-chat/parley/proto-events/gen/parley/events/v1"
)

// signalSample is a signal in both forms.
type signalSample struct {
	file   string
	signal event.Signal
	proto  func() proto.Message
	decode func(subj string, data []byte) (event.Signal, error)
}

func decodeSignal[E event.Signal, P event.Checked[E]](subj string, data []byte) (event.Signal, error) {
	return event.Decode[E, P](subj, data)
}

func signals() []signalSample {
	return []signalSample{
		{
			file: "typing-visitor", proto: func() proto.Message { return new(eventsv1.Typing) }, decode: decodeSignal[event.Typing],
			signal: event.Typing{CompanyID: companyID, AppID: appID, ChatUserID: chatUserID, Side: subject.SideVisitor, At: at("15:09:26.535")},
		},
		{
			file: "typing-support", proto: func() proto.Message { return new(eventsv1.Typing) }, decode: decodeSignal[event.Typing],
			signal: event.Typing{
				CompanyID: companyID, AppID: appID, ChatUserID: chatUserID, Side: subject.SideSupport, At: at("15:09:26.535"), Name: "Grace", UserID: userID,
			},
		},
		{
			file: "read-cursor-moved", proto: func() proto.Message { return new(eventsv1.ReadCursorMoved) }, decode: decodeSignal[event.ReadCursorMoved],
			signal: event.ReadCursorMoved{
				CompanyID: companyID, AppID: appID, ChatUserID: chatUserID, ChatID: chatID, Side: subject.SideVisitor, MessageID: messageID,
				UpTo: at("15:09:26.535"),
			},
		},
	}
}

// Signals match the contract in both directions and belong to no stream.
func TestSignalsMatchTheContract(t *testing.T) {
	t.Parallel()
	ours := make(map[string]bool)
	for _, s := range signals() {
		m := s.proto()
		ours[string(m.ProtoReflect().Descriptor().FullName())] = true
		if got := string(m.ProtoReflect().Descriptor().FullName()); got != s.signal.Type() {
			t.Errorf("%s: got type %s, want %s as in the contract", s.file, s.signal.Type(), got)
		}
		payload := s.signal.AppendJSON(nil)
		if diff := throughContract(payload, m); diff != "" {
			t.Errorf("%s: %s", s.file, diff)
		}
		back, err := s.decode(s.signal.Subject(), payload)
		if err != nil || back != s.signal {
			t.Errorf("%s: got %+v and %v, want %+v", s.file, back, err, s.signal)
		}
		if stream := subject.StreamOf(s.signal.Subject()); stream != "" {
			t.Errorf("%s: got the stream %s, want none", s.file, stream)
		}
	}
	messages := eventsv1.File_parley_events_v1_live_proto.Messages()
	for i := range messages.Len() {
		if name := string(messages.Get(i).FullName()); !ours[name] {
			t.Errorf("got no sample of %s, want one of every signal of the contract", name)
		}
	}
}

// A signal whose ids differ from its subject's, or with an unknown side, is rejected.
func TestInvalidSignalsAreRejected(t *testing.T) {
	t.Parallel()
	for _, s := range signals() {
		var members map[string]any
		if err := json.Unmarshal(s.signal.AppendJSON(nil), &members); err != nil {
			t.Fatal(err)
		}
		for name, value := range map[string]any{"side": "elsewhere", "chatUserId": companyID, "companyId": "", "at": nil, "upTo": nil} {
			if _, has := members[name]; !has {
				continue
			}
			changed := make(map[string]any, len(members))
			for k, v := range members {
				changed[k] = v
			}
			changed[name] = value
			payload, err := json.Marshal(changed)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := s.decode(s.signal.Subject(), payload); err == nil {
				t.Errorf("%s with %s %v: got %+v, want it rejected", s.file, name, value, got)
			}
		}
	}
}
