package chat_test

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/parley-chat/parley/pkg/chat"
)

func TestFilledText(t *testing.T) {
	t.Parallel()
	parameters := []chat.TemplateParameter{{Name: "username", Default: "there"}, {Name: "shop", Default: "our shop"}}
	for name, test := range map[string]struct {
		text   string
		values map[string]string
		want   string
	}{
		"nothing to fill":        {"Hello!", nil, "Hello!"},
		"empty":                  {"", nil, ""},
		"value":                  {"Hello {{username}}!", map[string]string{"username": "Ada"}, "Hello Ada!"},
		"default":                {"Hello {{username}}!", nil, "Hello there!"},
		"an empty value counts":  {"Hello {{username}}!", map[string]string{"username": ""}, "Hello !"},
		"unknown becomes empty":  {"Hello {{nobody}}!", nil, "Hello !"},
		"spaces inside":          {"Hello {{ username }}!", map[string]string{"username": "Ada"}, "Hello Ada!"},
		"several, repeated":      {"{{username}} at {{shop}}, {{username}}", nil, "there at our shop, there"},
		"side by side":           {"{{username}}{{shop}}", nil, "thereour shop"},
		"never closed":           {"Hello {{username", nil, "Hello {{username"},
		"only closed":            {"Hello }} you", nil, "Hello }} you"},
		"single braces":          {"{username}", nil, "{username}"},
		"no name":                {"a{{}}b", nil, "ab"},
		"values are not a text":  {"{{username}}", map[string]string{"username": "{{shop}}"}, "{{shop}}"},
		"other than ASCII":       {"Grüße, {{username}} 👋", map[string]string{"username": "Zoë"}, "Grüße, Zoë 👋"},
		"name is case-sensitive": {"{{Username}}", map[string]string{"username": "Ada"}, ""},
	} {
		template := chat.MessageTemplate{Text: test.text, Parameters: parameters}
		if got, _ := template.Fill("", test.values); got.Text != test.want {
			t.Errorf("%s: got %q, want %q", name, got.Text, test.want)
		}
	}
}

func TestFillReplacesEveryPlaceholder(t *testing.T) {
	t.Parallel()
	literal := rapid.StringMatching(`[^{}]*`)
	rapid.Check(t, func(t *rapid.T) {
		var text, want strings.Builder
		values := map[string]string{}
		for range rapid.IntRange(0, 5).Draw(t, "placeholders") {
			name := rapid.StringMatching(`[a-z]{1,3}`).Draw(t, "name")
			if _, ok := values[name]; !ok {
				values[name] = rapid.String().Draw(t, "value")
			}
			before := literal.Draw(t, "text")
			text.WriteString(before + "{{" + name + "}}")
			want.WriteString(before + values[name])
		}
		if got, _ := (chat.MessageTemplate{Text: text.String()}).Fill("", values); got.Text != want.String() {
			t.Fatalf("%q with %v: got %q, want %q", text.String(), values, got.Text, want.String())
		}
	})
}

func TestFill(t *testing.T) {
	t.Parallel()
	template := chat.MessageTemplate{
		Text:       "Hello {{username}}, {{order}} comes {{ day }}.{{note}}",
		Parameters: []chat.TemplateParameter{{Name: "username", Default: "there"}, {Name: "order"}, {Name: "day", Default: "soon"}},
	}
	for name, test := range map[string]struct {
		username string
		given    map[string]string
		want     string // the text, or the faults
	}{
		"everything":                     {"Ada", map[string]string{"order": "4711", "day": "today", "note": " Bye."}, "Hello Ada, 4711 comes today. Bye."},
		"defaults":                       {"", map[string]string{"order": "4711"}, "Hello there, 4711 comes soon."},
		"the parameter wins":             {"Ada", map[string]string{"username": "A.", "order": "4711"}, "Hello A., 4711 comes soon."},
		"empty instead of the default":   {"", map[string]string{"username": "", "order": "4711", "note": ""}, "Hello , 4711 comes soon."},
		"nothing without a default":      {"Ada", nil, "parameters.order is required"},
		"empty without a default":        {"Ada", map[string]string{"order": ""}, "parameters.order is required"},
		"unknown names, in order":        {"", map[string]string{"z": "1", "Order": "2", "order": "3"}, "parameters.Order is not a parameter of the template; parameters.z is not a parameter of the template"},
		"unknown and missing":            {"", map[string]string{"z": "1"}, "parameters.z is not a parameter of the template; parameters.order is required"},
		"a text of the longest length":   {"", map[string]string{"order": strings.Repeat("å", 4096-len("Hello there,  comes soon."))}, "Hello there, " + strings.Repeat("å", 4096-len("Hello there,  comes soon.")) + " comes soon."},
		"one character more than that":   {"", map[string]string{"order": strings.Repeat("å", 4097-len("Hello there,  comes soon."))}, "parameters must not make the text longer than 4096 characters"},
		"a value that looks like a name": {"", map[string]string{"order": "{{day}}"}, "Hello there, {{day}} comes soon."},
	} {
		filled, faults := template.Fill(test.username, test.given)
		var got []string
		for _, f := range faults {
			got = append(got, f.Field+" "+f.Message)
		}
		if len(faults) == 0 {
			got = []string{filled.Text}
		}
		if text := strings.Join(got, "; "); text != test.want {
			t.Errorf("%s: got %q, want %q", name, text, test.want)
		}
	}
}

// Fill ignores a name that the template does not have.
func TestFillIgnoresUnknownNames(t *testing.T) {
	t.Parallel()
	filled, faults := chat.MessageTemplate{Text: "Hi"}.Fill("Ada", nil)
	if len(filled.Values) != 0 || len(faults) != 0 {
		t.Errorf("got %v and %v, want nothing", filled, faults)
	}
}

// A short text with many placeholders and a long value would be a thousand times as long.
func TestFillIsBounded(t *testing.T) {
	t.Parallel()
	const characters = 4096
	for name, template := range map[string]chat.MessageTemplate{
		"a long text":    {Text: strings.Repeat("{{a}}", 4<<10), Parameters: []chat.TemplateParameter{{Name: "a"}}},
		"a long default": {Text: strings.Repeat("{{a}}", 4<<10), Parameters: []chat.TemplateParameter{{Name: "a", Default: strings.Repeat("å", 9<<10)}}},
	} {
		values := map[string]string{}
		if template.Parameters[0].Required() {
			values["a"] = strings.Repeat("å", 9<<10)
		}
		var filled chat.Filled
		var faults []chat.DataFault
		bytes := testing.Benchmark(func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				filled, faults = template.Fill("", values)
			}
		}).AllocedBytesPerOp()
		if most := int64(8 * characters); bytes > most {
			t.Errorf("%s: got %d bytes allocated, want at most %d", name, bytes, most)
		}
		if n := utf8.RuneCountInString(filled.Text); n != characters || len(faults) != 1 || !strings.Contains(faults[0].Message, "longer than 4096") {
			t.Errorf("%s: got %d characters and %v, want %d and that it is too long", name, n, faults, characters)
		}
	}
}

func TestTemplateSizes(t *testing.T) {
	t.Parallel()
	many := make([]chat.TemplateParameter, 51)
	values := map[string]string{}
	for i := range many {
		values[strings.Repeat("a", i+1)] = ""
	}
	for name, test := range map[string]struct {
		faults []chat.DataFault
		want   string
	}{
		"a long text":     {chat.MessageTemplate{Text: strings.Repeat("å", 4097)}.Check(), "text must have at most 4096 characters"},
		"many parameters": {chat.MessageTemplate{Parameters: many}.Check(), "parameters must be at most 50"},
		"no name":         {chat.MessageTemplate{Parameters: many[:1]}.Check(), "parameters must have names of 1 to 64 characters"},
		"a long default": {
			chat.MessageTemplate{Parameters: []chat.TemplateParameter{{Name: "a", Default: strings.Repeat("å", 1025)}}}.Check(),
			"parameters.a must have a default of at most 1024 characters",
		},
		"many values":  {chat.CheckValues(values), "parameters must have at most 50 members"},
		"a long name":  {chat.CheckValues(map[string]string{strings.Repeat("a", 65): ""}), "parameters must have names of 1 to 64 characters"},
		"a long value": {chat.CheckValues(map[string]string{"a": strings.Repeat("å", 1025)}), "parameters.a must have at most 1024 characters"},
		"all is well":  {chat.CheckValues(map[string]string{"a": strings.Repeat("å", 1024)}), ""},
	} {
		var got []string
		for _, f := range test.faults {
			got = append(got, f.Field+" "+f.Message)
		}
		if text := strings.Join(got, "; "); text != test.want {
			t.Errorf("%s: got %q, want %q", name, text, test.want)
		}
	}
}
