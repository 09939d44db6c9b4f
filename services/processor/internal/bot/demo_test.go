package bot

import (
	"bytes"
	"encoding/json"
	"image/png"
	"io/fs"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
)

func wrote(t chat.MessageType, data string) event.VisitorMessageAccepted {
	return event.VisitorMessageAccepted{
		CompanyID: "c", AppID: "a", ChatUserID: "u", ChatID: "k",
		Message: chat.Message{
			ID:           "01980a4e-7b1c-7c3e-9a55-3f2d8c1b7a60",
			CreatedAt:    time.Date(2026, 3, 4, 5, 6, 7, 8e6, time.UTC),
			Type:         t,
			Data:         json.RawMessage(data),
			NameOfSender: "Sara Ek",
		},
	}
}

func TestDemoAnswers(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		typ   chat.MessageType
		data  string
		types []chat.MessageType
		holds string // somewhere in the answers' data
	}{
		{"a text", chat.Text, `{"text":"Where is my order"}`, []chat.MessageType{chat.Text}, "Where is my order” (4 words)"},
		{"another text", chat.Text, `{"text":"Thursday"}`, []chat.MessageType{chat.Text}, "Thursday” (1 word)"},
		{"a question", chat.Text, `{"text":"Are you there?"}`, []chat.MessageType{chat.Text}, "You asked"},
		{"menu", chat.Text, `{"text":" Menu! "}`, []chat.MessageType{chat.MultipleChoice}, choicePicture},
		{"help", chat.Text, `{"text":"help"}`, []chat.MessageType{chat.MultipleChoice}, choiceCards},
		{"a question mark", chat.Text, `{"text":"?"}`, []chat.MessageType{chat.MultipleChoice}, choiceTime},
		{"a greeting", chat.Text, `{"text":"Hello"}`, []chat.MessageType{chat.Text, chat.MultipleChoice}, "Hello Sara Ek!"},
		{"a choice", chat.MultipleChoiceReply, `{"text":"Show me a picture","payload":"show-picture"}`, []chat.MessageType{chat.Image}, "parley.png"},
		{"a text with a payload", chat.Text, `{"text":"whatever the title is","payload":"show-cards"}`, []chat.MessageType{chat.Carousel}, cardBot},
		{"a button", chat.MultipleChoiceReply, `{"text":"Tell me more","payload":"card-push"}`, []chat.MessageType{chat.Text}, "/push-message"},
		{"the time", chat.MultipleChoiceReply, `{"text":"x","payload":"tell-time"}`, []chat.MessageType{chat.Text}, "05:06:07 UTC"},
		{"an unknown choice", chat.MultipleChoiceReply, `{"text":"x","payload":"sing"}`, []chat.MessageType{chat.MultipleChoice}, "sing"},
		{"a file", chat.File, `{"url":"https://example.com/f","fileName":"plan.pdf","size":1234}`, []chat.MessageType{chat.Text, chat.MultipleChoice}, "plan.pdf (1234 bytes)"},
	}
	demo := NewDemo("https://chat.example.com/")
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			answers, err := demo.Answer(t.Context(), wrote(tt.typ, tt.data), nil)
			if err != nil {
				t.Fatalf("got %v, want answers", err)
			}
			var types []chat.MessageType
			var all bytes.Buffer
			for _, a := range answers.Messages {
				types = append(types, a.Type)
				if faults := chat.ValidateData(a.Type, a.Data); len(faults) > 0 {
					t.Errorf("got %s, which is invalid: %v", a.Data, faults)
				}
				all.Write(a.Data)
			}
			if len(types) != len(tt.types) || types[0] != tt.types[0] || types[len(types)-1] != tt.types[len(tt.types)-1] {
				t.Errorf("got answers of types %v, want %v", types, tt.types)
			}
			if !strings.Contains(all.String(), tt.holds) {
				t.Errorf("got %s, want it to hold %q", &all, tt.holds)
			}
		})
	}
}

func TestDemoGivesUpMalformedData(t *testing.T) {
	t.Parallel()
	_, err := NewDemo("").Answer(t.Context(), wrote(chat.Text, `{"text":7}`), nil)
	if !apperr.Is(err, apperr.Invalid) {
		t.Errorf("got %v, want invalid", err)
	}
}

func TestDemoWithoutAssetsOffersNoPicture(t *testing.T) {
	t.Parallel()
	demo := NewDemo("")
	for _, data := range []string{`{"text":"menu"}`, `{"text":"cards"}`} {
		answers, err := demo.Answer(t.Context(), wrote(chat.Text, data), nil)
		if err != nil || len(answers.Messages) != 1 {
			t.Fatalf("got %v and %v, want one answer", answers, err)
		}
		if strings.Contains(string(answers.Messages[0].Data), "imageUrl") || strings.Contains(string(answers.Messages[0].Data), choicePicture) {
			t.Errorf("got %s, want nothing that needs the picture", answers.Messages[0].Data)
		}
	}
	answers, err := demo.Answer(t.Context(), wrote(chat.Text, `{"text":"picture"}`), nil)
	if err != nil || answers.Messages[0].Type != chat.Text {
		t.Errorf("got %v and %v, want a text with the reason", answers, err)
	}
}

// The IMAGE has every member of the spec, and they match the file.
func TestPictureMatchesItsDescription(t *testing.T) {
	t.Parallel()
	answers, err := NewDemo("https://chat.example.com").Answer(t.Context(), wrote(chat.Text, `{"text":"picture"}`), nil)
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(answers.Messages[0].Data, &got); err != nil {
		t.Fatal(err)
	}
	content, err := fs.ReadFile(Assets(), "parley.png")
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]any{
		"url": "https://chat.example.com/demo/assets/parley.png", "mime": "image/png", "path": "/demo/assets/parley.png",
		"size": float64(len(content)), "fileName": "parley.png", "extension": "png", "caption": got["caption"],
	}
	for name, value := range want {
		if got[name] != value || value == "" || value == nil {
			t.Errorf("got %s %v, want %v", name, got[name], value)
		}
	}
	if len(got) != len(want) {
		t.Errorf("got members %v, want those of %v", got, want)
	}
	if _, err := png.Decode(bytes.NewReader(content)); err != nil {
		t.Errorf("decoding the picture: %v", err)
	}
}
