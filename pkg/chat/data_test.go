package chat_test

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/parley-chat/parley/pkg/chat"
)

func TestValidateData(t *testing.T) {
	t.Parallel()
	long := func(n int) string { return strings.Repeat("é", n) }
	tests := []struct {
		name string
		kind chat.MessageType
		data string
		want []string
	}{
		{"text", chat.Text, `{"text":"hi","payload":"P","other":[1.0,{"x":null}]}`, nil},
		{"white space around", chat.Text, " {\n\t\"text\" : \"hi\" , \"a\" : [ ] } ", nil},
		{"nothing", chat.Text, ``, []string{"data is required"}},
		{"null", chat.Text, `null`, []string{"data is required"}},
		{"a string", chat.Text, `"hi"`, []string{"data must be an object"}},
		{"an array", chat.Text, `[]`, []string{"data must be an object"}},
		{"a number", chat.Carousel, `7`, []string{"data must be an object"}},
		{"not JSON", chat.Text, `{"text":`, []string{"data must be valid JSON"}},
		{"an unknown type", "POLL", `{"anything":1}`, nil},
		{"an unknown type with no object", "POLL", `1`, []string{"data must be an object"}},
		{"no text", chat.Text, `{}`, []string{"data.text is required"}},
		{"text in another case", chat.Text, `{"Text":"hi"}`, []string{"data.text is required"}},
		{"null text", chat.Text, `{"text":null,"payload":null}`, []string{"data.text is required"}},
		{"empty text", chat.Text, `{"text":""}`, []string{"data.text must not be empty"}},
		{"blank text", chat.Text, `{"text":" \n\u00a0"}`, []string{"data.text must not be empty"}},
		{"a name with escapes", chat.Text, `{"te\u0078t":"\"hi\""}`, nil},
		{"the longest text", chat.Text, `{"text":"` + long(4096) + `"}`, nil},
		{"the longest text in escapes", chat.Text, `{"text":"` + strings.Repeat(`\ud83d\ude00`, 4096) + `"}`, nil},
		{"too long a text", chat.Text, `{"text":"` + long(4097) + `"}`, []string{"data.text must have at most 4096 characters"}},
		{"too much in all", chat.Text, `{"text":"hi","x":"` + strings.Repeat("x", chat.MaxDataBytes) + `"}`, []string{"data must have at most 65536 bytes"}},
		{"wrong types, all at once", chat.Text, `{"text":1,"payload":{}}`, []string{"data.text must be a string", "data.payload must be a string"}},

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
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, f := range chat.ValidateData(test.kind, json.RawMessage(test.data)) {
				got = append(got, f.Field+" "+f.Message)
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// Every type that may be sent must have rules: empty data is rejected.
func TestEveryTypeHasRules(t *testing.T) {
	t.Parallel()
	for _, kind := range append(chat.CompanyTypes(), chat.MultipleChoiceReply, chat.Template) {
		if faults := chat.ValidateData(kind, json.RawMessage(`{}`)); len(faults) == 0 {
			t.Errorf("%s: got no fault for empty data, want one", kind)
		}
	}
}

func TestParseID(t *testing.T) {
	t.Parallel()
	const id = "0d9f5c7e-6c1d-4b7a-8f1e-2a3b4c5d6e7f"
	for _, s := range []string{id, strings.ToUpper(id)} {
		if got, ok := chat.ParseID(s); !ok || got != id {
			t.Errorf("%q: got %q and %v, want %q", s, got, ok, id)
		}
	}
	for _, s := range []string{"", "x", id + "0", "{" + id + "}", "urn:uuid:" + id, strings.ReplaceAll(id, "-", ""), strings.Replace(id, "d", "g", 1), strings.Replace(id, "-", "_", 1), id[:35] + "\n"} {
		if got, ok := chat.ParseID(s); ok {
			t.Errorf("%q: got %q, want it rejected", s, got)
		}
	}
}

func TestParsePhone(t *testing.T) {
	t.Parallel()
	for s, want := range map[string]string{
		"989121234567": "989121234567", "+98 (912) 123-45-67": "+989121234567", "1234567": "1234567", " +123456789012345 ": "+123456789012345",
	} {
		if got, ok := chat.ParsePhone(s); !ok || got != want {
			t.Errorf("%q: got %q and %v, want %q", s, got, ok, want)
		}
	}
	for _, s := range []string{"", "+", "123456", "1234567890123456", "98+9121234567", "98912123456x", "٠١٢٣٤٥٦٧٨٩٠", "-----------"} {
		if got, ok := chat.ParsePhone(s); ok {
			t.Errorf("%q: got %q, want it rejected", s, got)
		}
	}
}

func FuzzValidateData(f *testing.F) {
	for _, seed := range []string{`{"text":"hi"}`, `{"text":"\"}","choices":[{"title":"a","payload":"\\"}]}`, `{"buttons":[{"type":"url","title":"t","url":"http://h"}],"cards":[[],{}]}`, `[`, `{"a":1,"a":"b"}`} {
		f.Add(seed)
	}
	kinds := append(chat.CompanyTypes(), chat.MultipleChoiceReply, chat.Template)
	f.Fuzz(func(t *testing.T, data string) {
		for _, kind := range kinds {
			accepted := len(chat.ValidateData(kind, json.RawMessage(data))) == 0
			if accepted && !json.Valid([]byte(data)) {
				t.Errorf("%s: got %q accepted, which is not JSON", kind, data)
			}
		}
	})
}

func BenchmarkValidateData(b *testing.B) {
	data := json.RawMessage(`{"text":"Your parcel ` + strconv.Itoa(42) + ` is on its way.","payload":"TRACK"}`)
	b.ReportAllocs()
	for b.Loop() {
		if faults := chat.ValidateData(chat.Text, data); faults != nil {
			b.Fatal(faults)
		}
	}
}
