package event

import (
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
)

const messageID = "01980a4e-7b1c-7c3e-9a55-3f2d8c1b7a60"

func aMessage() chat.Message {
	return chat.Message{
		ID: messageID, CreatedAt: time.Date(2026, 3, 4, 5, 6, 7, 8e6, time.UTC), Type: chat.Text,
		Data: []byte(`{"text":"å <b>", "n":1.50, "deep":{"z":1,"a":[]}}`), NameOfSender: "Sara", IsFromSupport: true,
	}
}

// roundTrip compares Decode with AppendJSON.
func roundTrip[E Event, P Checked[E]](e E) func(*testing.T) {
	return func(t *testing.T) {
		t.Parallel()
		encoded := e.AppendJSON(nil)
		got, err := Decode[E, P](e.Subject(), encoded)
		if err != nil {
			t.Fatalf("got %v, want the event back", err)
		}
		if again := string(got.AppendJSON(nil)); again != string(encoded) {
			t.Errorf("got %s, want %s", again, encoded)
		}
	}
}

func TestDecodeReadsWhatAppendJSONWrites(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 4, 5, 6, 7, 8e6, time.UTC)
	t.Run("CompanyMessageAccepted", roundTrip(CompanyMessageAccepted{CompanyID: "c", ChatID: "k", Message: aMessage()}))
	t.Run("PushAccepted", roundTrip(PushAccepted{
		CompanyID: "c", TemplateID: "t", MessageID: messageID, CreatedAt: at, Source: "+49151234567", Username: "Sara",
		Parameters: map[string]string{"order": "\"4711\" <å>", "empty": ""},
	}))
	t.Run("VisitorRegistered", roundTrip(VisitorRegistered{
		CompanyID: "c", AppID: "a", ChatUserID: "u", ChatID: "k", ChatOpened: true, RegisteredAt: at, Profile: VisitorProfile{Email: "s@example.com"},
	}))
	t.Run("VisitorMessageAccepted", roundTrip(VisitorMessageAccepted{CompanyID: "c", AppID: "a", ChatUserID: "u", ChatID: "k", Message: aMessage()}))
	t.Run("ChatControlChanged", roundTrip(ChatControlChanged{
		CompanyID: "c", ChatID: "k", ChatUserID: "u", Control: ControlBot, AssigneeID: "ada", ByUserID: "bob", ChangedAt: at, ClosedAt: at,
	}))
	t.Run("ChatRated", roundTrip(ChatRated{
		CompanyID: "c", AppID: "a", ChatUserID: "u", ChatID: "k", Score: 5, Comment: "\"Good\" <å>", RatedAt: at,
	}))
	t.Run("Reply", roundTrip(Reply{CompanyID: "c", AppID: "a", ChatUserID: "u", ChatID: "k", Message: aMessage()}))
	t.Run("Reply with a receipt", roundTrip(Reply{CompanyID: "c", AppID: "a", ChatUserID: "u", ChatID: "k", Message: aMessage(), Receipt: true}))
	t.Run("MessageStatusChanged", roundTrip(MessageStatusChanged{
		CompanyID: "c", MessageID: messageID, Status: chat.StatusFailed, At: at, Reason: "no <å>", ChatID: "k",
	}))
	t.Run("OutboundMessage", roundTrip(OutboundMessage{
		CompanyID: "c", Channel: chat.ChannelPhone, ChatID: "k", ChatUserID: "u", Recipient: Recipient{Phone: "+49"}, Message: aMessage(),
	}))
}

func TestDecodeRejectsInvalidReplies(t *testing.T) {
	t.Parallel()
	e := Reply{CompanyID: "c", AppID: "a", ChatUserID: "u", ChatID: "k", Message: aMessage()}
	good := string(e.AppendJSON(nil))
	tests := []struct{ name, old, new, names string }{
		{"no JSON", good, "hello", "malformed"},
		{"another JSON", good, "[1]", "malformed"},
		{"half of it", good, good[:len(good)-1], "malformed"},
		{"a wrong type", `"chatId":"k"`, `"chatId":7`, "malformed"},
		{"no chat", `"chatId":"k"`, `"chatId":""`, "chatId"},
		{"an id that is no token", `"companyId":"c"`, `"companyId":"c.*"`, "companyId"},
		{"a message id that is no UUID", messageID, "m.$id", "message.id"},
		{"a message id in another form", messageID, strings.ReplaceAll(messageID, "-", ""), "message.id"},
		{"no time", `"createdAt":"2026-03-04T05:06:07.008Z",`, ``, "message.createdAt"},
		{"no type", `"type":"TEXT"`, `"type":""`, "message.type"},
		{"data that is no object", `"data":`, `"data":[],"was":`, "message.data"},
		{"no data", `"data":`, `"was":`, "message.data"},
		{"an unknown type", `"type":"TEXT"`, `"type":"text"`, "message.type"},
		{"a visitor's type", `"type":"TEXT"`, `"type":"MULTIPLE_CHOICE_REPLY"`, "message.type"},
		{"a text that is null", `"text":"å <b>"`, `"text":null`, "message.data.text is required"},
		{"a picture without its address", `"type":"TEXT"`, `"type":"IMAGE"`, "message.data.url is required"},
		{"an address that is a script", `"data":{`, `"data":{"cards":[{"title":"x","imageUrl":"javascript:x"}],`, "message.data.cards[0].imageUrl"},
		{"too much data", `"å <b>"`, `"` + strings.Repeat("x", chat.MaxDataBytes) + `"`, "message.data must have at most"},
		{"another visitor than the subject's", `"chatUserId":"u"`, `"chatUserId":"v"`, "subject"},
		{"another application than the subject's", `"appId":"a"`, `"appId":"b"`, "subject"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			bad := strings.Replace(good, tt.old, tt.new, 1)
			if strings.Contains(tt.new, "cards") {
				bad = strings.Replace(bad, `"TEXT"`, `"CAROUSEL"`, 1)
			}
			if bad == good {
				t.Fatalf("%q is not in %s", tt.old, good)
			}
			_, err := Decode[Reply](e.Subject(), []byte(bad))
			if !apperr.Is(err, apperr.Invalid) || !strings.Contains(err.Error(), tt.names) {
				t.Errorf("got %v, want invalid with %q", err, tt.names)
			}
		})
	}
}

// The time of a visitor's message is its order, in microseconds; other times have milliseconds.
func TestDecodeTruncatesTimes(t *testing.T) {
	t.Parallel()
	e := VisitorMessageAccepted{CompanyID: "c", AppID: "a", ChatUserID: "u", ChatID: "k", Message: aMessage()}
	e.Message.CreatedAt = e.Message.CreatedAt.Add(50 * time.Microsecond)
	encoded := strings.Replace(string(e.AppendJSON(nil)), "05:06:07.008050Z", "07:06:07.008050999+02:00", 1)
	got, err := Decode[VisitorMessageAccepted](e.Subject(), []byte(encoded))
	if err != nil || !got.Message.CreatedAt.Equal(e.Message.CreatedAt) {
		t.Errorf("got %v and %v, want %v", got.Message.CreatedAt, err, e.Message.CreatedAt)
	}
	s := MessageStatusChanged{CompanyID: "c", MessageID: messageID, Status: chat.StatusRead, At: e.Message.CreatedAt}
	encoded = strings.Replace(string(s.AppendJSON(nil)), "07.008Z", "07.008999Z", 1)
	report, err := Decode[MessageStatusChanged](s.Subject(), []byte(encoded))
	if want := s.At.Truncate(time.Millisecond); err != nil || !report.At.Equal(want) {
		t.Errorf("got %v and %v, want %v", report.At, err, want)
	}
}

// A message for the visitor enters its chat when its stream stores it, whatever its writer's clock says.
func TestDecodeStored(t *testing.T) {
	t.Parallel()
	stored := time.Date(2026, 3, 4, 5, 6, 6, 1_234_567, time.UTC)
	want := time.Date(2026, 3, 4, 5, 6, 6, 1_234_000, time.UTC)
	e := Reply{CompanyID: "c", AppID: "a", ChatUserID: "u", ChatID: "k", Message: aMessage()}
	got, err := DecodeStored[Reply](e.Subject(), e.AppendJSON(nil), stored)
	if err != nil || !got.Message.CreatedAt.Equal(want) || !got.WrittenAt.Equal(e.Message.CreatedAt) {
		t.Errorf("a reply: got %v, written at %v, %v, want %v", got.Message.CreatedAt, got.WrittenAt, err, want)
	}
	v := VisitorMessageAccepted{CompanyID: "c", AppID: "a", ChatUserID: "u", ChatID: "k", Message: aMessage()}
	kept, err := DecodeStored[VisitorMessageAccepted](v.Subject(), v.AppendJSON(nil), stored)
	if err != nil || !kept.Message.CreatedAt.Equal(v.Message.CreatedAt) {
		t.Errorf("a visitor's message: got %v, %v, want the time that its response had", kept.Message.CreatedAt, err)
	}
}

func TestDecodeRejectsInvalidReports(t *testing.T) {
	t.Parallel()
	e := MessageStatusChanged{CompanyID: "c", MessageID: messageID, Status: chat.StatusRead, At: time.Unix(1, 0), ChatID: "k"}
	good := string(e.AppendJSON(nil))
	for old, replacement := range map[string]string{
		`"companyId":"c"`: `"companyId":"d"`,
		`"k"`:             `"k.>"`,
		messageID:         "m",
		`"read"`:          `"stored"`, // only the recorder reports that
		`"occurredAt"`:    `"then"`,
	} {
		bad := strings.Replace(good, old, replacement, 1)
		if _, err := Decode[MessageStatusChanged](e.Subject(), []byte(bad)); bad == good || !apperr.Is(err, apperr.Invalid) {
			t.Errorf("got %v for %s, want invalid", err, bad)
		}
	}
}

func TestDecodeTruncatesLongReasons(t *testing.T) {
	t.Parallel()
	e := MessageStatusChanged{
		CompanyID: "c", MessageID: messageID, Status: chat.StatusFailed, At: time.Unix(1, 0), Reason: strings.Repeat("å", 400),
	}
	got, err := Decode[MessageStatusChanged](e.Subject(), e.AppendJSON(nil))
	if err != nil || got.Reason != strings.Repeat("å", 256) {
		t.Errorf("got %d bytes and %v, want 512 of whole characters", len(got.Reason), err)
	}
}
