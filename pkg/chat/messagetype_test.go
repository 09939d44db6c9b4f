package chat_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/parley-chat/parley/pkg/chat"
)

// allTypes returns every type: those of companies and visitors, and templates.
func allTypes() []chat.MessageType {
	types := append(chat.CompanyTypes(), chat.VisitorTypes()...)
	slices.Sort(types)
	return append(slices.Compact(types), chat.Template)
}

func TestTypesBySender(t *testing.T) {
	t.Parallel()
	for _, messageType := range allTypes() {
		company := messageType != chat.MultipleChoiceReply && messageType != chat.Template
		if got := messageType.In(chat.CompanyTypes()); got != company {
			t.Errorf("%s from a company: got %v, want %v", messageType, got, company)
		}
		visitor := messageType == chat.Text || messageType == chat.MultipleChoiceReply
		if got := messageType.In(chat.VisitorTypes()); got != visitor {
			t.Errorf("%s from a visitor: got %v, want %v", messageType, got, visitor)
		}
	}
	for _, unknown := range []chat.MessageType{"", "text", "TEXT ", "POLL"} {
		if unknown.In(allTypes()) {
			t.Errorf("%q: got a known type, want none", unknown)
		}
	}
}

func TestDataOfEachType(t *testing.T) {
	t.Parallel()
	checkData(t, []dataCase{
		{"image", chat.Image, `{"url":"HTTPS://example.com/a.png","mime":"image/png","path":"a","size":12,"caption":"","fileName":"a.png","extension":"png"}`, nil},
		{"video without a url", chat.Video, `{"caption":"x"}`, []string{"data.url is required"}},
		{"audio with a path", chat.Audio, `{"url":"/a.ogg"}`, []string{"data.url must be an http or https URL"}},
		{"a script", chat.File, `{"url":"javascript:alert(1)"}`, []string{"data.url must be an http or https URL"}},
		{"no host", chat.File, `{"url":"https:///x"}`, []string{"data.url must be an http or https URL"}},
		{"sizes", chat.File, `{"url":"http://h/x","size":-1}`, []string{"data.size must be a non-negative integer"}},
		{"a fraction as size", chat.File, `{"url":"http://h/x","size":1.5}`, []string{"data.size must be a non-negative integer"}},
		{"a string as size", chat.File, `{"url":"http://h/x","size":"1"}`, []string{"data.size must be a non-negative integer"}},

		{"choices", chat.MultipleChoice, `{"text":"?","choices":[{"title":"a","payload":"A"}]}`, nil},
		{"no choices", chat.MultipleChoice, `{"text":"?"}`, []string{"data.choices is required"}},
		{"empty choices", chat.MultipleChoice, `{"text":"?","choices":[]}`, []string{"data.choices must have at least 1 item"}},
		{"choices of another type", chat.MultipleChoice, `{"text":"?","choices":{}}`, []string{"data.choices must be an array"}},
		{"wrong choices", chat.MultipleChoice, `{"text":"?","choices":[{"title":"a","payload":"A"},{"title":""},3]}`,
			[]string{"data.choices[1].title must not be empty", "data.choices[1].payload is required", "data.choices[2] must be an object"}},
		{"too many choices", chat.MultipleChoice, `{"text":"?","choices":[` + strings.TrimSuffix(strings.Repeat(`{"title":"a","payload":"A"},`, 51), ",") + `]}`,
			[]string{"data.choices must have at most 50 items"}},

		{"reply", chat.MultipleChoiceReply, `{"text":"a","payload":"A","replyTo":"x"}`, nil},
		{"empty reply", chat.MultipleChoiceReply, `{"replyTo":7}`, []string{"data.text is required", "data.payload is required", "data.replyTo must be a string"}},

		{"interactive", chat.Interactive, `{"body":"b","header":"h","footer":"f","buttons":[{"type":"reply","title":"a","payload":"A"},{"type":"url","title":"a","url":"https://h"},{"type":"phone","title":"a","phone":"+98 (21) 1234-567"}]}`, nil},
		{"interactive without buttons", chat.Interactive, `{"body":"b"}`, nil},
		{"wrong buttons", chat.Interactive, `{"buttons":[{"title":"a"},{"type":"fax","title":"a"},{"type":"url","title":"a"},{"type":"phone","title":"a","phone":"call me"},[],{"type":3}]}`,
			[]string{"data.body is required", "data.buttons[0].type is required", "data.buttons[1].type must be one of reply, url, phone",
				"data.buttons[2].url is required", "data.buttons[3].phone must be a phone number: " + chat.PhoneRule, "data.buttons[4] must be an object",
				"data.buttons[5].type must be one of reply, url, phone"}},

		{"carousel", chat.Carousel, `{"cards":[{"title":"a","subtitle":"s","imageUrl":null,"buttons":[]}]}`, nil},
		{"no cards", chat.Carousel, `{}`, []string{"data.cards is required"}},
		{"a wrong card", chat.Carousel, `{"cards":[{"imageUrl":"ftp://x","buttons":[{"type":"reply","title":"a"}]}]}`,
			[]string{"data.cards[0].title is required", "data.cards[0].imageUrl must be an http or https URL", "data.cards[0].buttons[0].payload is required"}},

		{"template", chat.Template, `{"templateId":"x","name":"n","text":"t","parameters":{"a":1}}`, nil},
		{"a wrong template", chat.Template, `{"name":"n","text":"t","parameters":[]}`, []string{"data.templateId is required", "data.parameters must be an object"}},
	})
}

// Every type that may be sent must have rules: empty data is rejected.
func TestEveryTypeHasRules(t *testing.T) {
	t.Parallel()
	for _, kind := range allTypes() {
		if faults := chat.ValidateData(kind, json.RawMessage(`{}`)); len(faults) == 0 {
			t.Errorf("%s: got no fault for empty data, want one", kind)
		}
	}
}

func TestTextOf(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{
		`{"text":"Hello","choices":[]}`:                    "Hello",
		`{"header":"Order","body":"Choose"}`:               "Choose",
		`{"url":"https://h/x","caption":"A cat"}`:          "A cat",
		`{"cards":[{"title":"Blue"},{"title":"Red"}]}`:     "Blue, Red",
		`{"text":5,"caption":"A cat","cards":{"title":1}}`: "A cat",
		`{"url":"https://h/x"}`:                            "",
		`[]`:                                               "",
		`{"text":`:                                         "",
		``:                                                 "",
	} {
		if got := chat.TextOf(json.RawMessage(data)); got != want {
			t.Errorf("%s: got %q, want %q", data, got, want)
		}
	}
}
