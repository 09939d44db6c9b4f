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
	checkData(t, []dataCase{
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
		{"Markdown", chat.Text, `{"text":"**hi**","format":"markdown"}`, nil},
		{"plain", chat.Text, `{"text":"**hi**","format":"plain"}`, nil},
		{"no format", chat.Text, `{"text":"**hi**","format":null}`, nil},
		{"an unknown format", chat.Text, `{"text":"hi","format":"html"}`, []string{"data.format must be one of markdown, plain"}},
		{"an empty format", chat.Text, `{"text":"hi","format":""}`, []string{"data.format must not be empty"}},
		{"a format that is no string", chat.Text, `{"text":"hi","format":{}}`, []string{"data.format must be a string"}},
		{"a format of another type", chat.Interactive, `{"body":"hi","format":"own"}`, nil},
		{"wrong types, all at once", chat.Text, `{"text":1,"payload":{}}`, []string{"data.text must be a string", "data.payload must be a string"}},
	})
}

// dataCase is data of a message, and what is wrong with it.
type dataCase struct {
	name string
	kind chat.MessageType
	data string
	want []string
}

func checkData(t *testing.T, tests []dataCase) {
	t.Helper()
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
	kinds := allTypes()
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
