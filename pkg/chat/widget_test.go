package chat_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/parley-chat/parley/pkg/chat"
)

func TestCheckWidgetConfigs(t *testing.T) {
	t.Parallel()
	for configs, want := range map[string]string{
		``:                         "",
		` { } `:                    "",
		`{"requiredFields":null}`:  "",
		`{"RequiredFields":"own"}`: "", // names have a case
		`{"requiredFields":["e\u006dail"],"greetingMessages":[{},{"content":null},{"content":"é","own":1}]}`:    "",
		`{"greetingMessages":[{"content":"Hi","translations":{"de":"Hallo","fr":null}},{"translations":null}]}`: "",
		`{"greetingMessages":[{"translations":[]},{"translations":{"de":1}}]}`: "widgetConfigs.greetingMessages[0].translations must be an object; " +
			"widgetConfigs.greetingMessages[1].translations.de must be a string",
		`{`:                     "widgetConfigs must be JSON",
		"{\"a\":\"\xff\"}":      "widgetConfigs must be JSON",
		`[]`:                    "widgetConfigs must be an object",
		`null`:                  "widgetConfigs must be an object",
		`{"requiredFields":{}}`: "widgetConfigs.requiredFields must be an array",
		`{"requiredFields":["",  5, "email", null]}`: "widgetConfigs.requiredFields[0] must be the name of a field; " +
			"widgetConfigs.requiredFields[1] must be the name of a field; widgetConfigs.requiredFields[3] must be the name of a field",
		`{"greetingMessages":"Hi","requiredFields":"email"}`: "widgetConfigs.requiredFields must be an array; widgetConfigs.greetingMessages must be an array",
		`{"greetingMessages":["Hi",{"content":["Hi"]}]}`: "widgetConfigs.greetingMessages[0] must be an object; " +
			"widgetConfigs.greetingMessages[1].content must be a string",
		`{"greetingMessages":[{"content":"` + strings.Repeat("é", 4097) + `"}]}`: "widgetConfigs.greetingMessages[0].content must have at most 4096 characters",
		`{"greetingMessages":[` + strings.Repeat(`{},`, 50) + `{}]}`:             "widgetConfigs.greetingMessages must have at most 50 items",
		`{"requiredFields":[` + strings.Repeat(`"a",`, 100) + `"a"]}`:            "widgetConfigs.requiredFields must have at most 100 items",
	} {
		var got []string
		for _, fault := range chat.CheckWidgetConfigs([]byte(configs)) {
			got = append(got, fault.Field+" "+fault.Message)
		}
		if g := strings.Join(got, "; "); g != want {
			t.Errorf("%.80s: got %q, want %q", configs, g, want)
		}
		if _, err := (chat.Application{WidgetConfigs: []byte(configs)}).Rules(); (err == nil) != (want == "") {
			t.Errorf("%.80s: got the rules with %v, want both to agree", configs, err)
		}
	}
}

// The widget's own keys have the documented types; unknown keys may have any.
func TestCheckWidgetConfigsOfTheWidget(t *testing.T) {
	t.Parallel()
	for configs, want := range map[string]string{
		`{"primaryTextColor":"#fff","formInputs":["email"],"own":[1]}`: "",
		`{"primaryTextColor":["#fff"]}`:                                "widgetConfigs.primaryTextColor must be a string",
		`{"aiIconUrl":null}`:                                           "widgetConfigs.aiIconUrl must be a string",
		`{"formInputs":"email"}`:                                       "widgetConfigs.formInputs must be an array",
		`{"formInputs":["email",{}]}`:                                  "widgetConfigs.formInputs[1] must be a string",
	} {
		got := ""
		for _, fault := range chat.CheckWidgetConfigs([]byte(configs)) {
			got += fault.Field + " " + fault.Message
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", configs, got, want)
		}
	}
}

// Configs that pass the check decode with encoding/json, with case-sensitive names.
func FuzzCheckWidgetConfigs(f *testing.F) {
	for _, seed := range []string{`{"requiredFields":["email"],"greetingMessages":[{"content":"Hi \u00e9"}]}`, `{"greetingMessages":[{},null]}`, `[`, `{"a":[{]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, configs []byte) {
		if faults := chat.CheckWidgetConfigs(configs); len(faults) > 0 || len(configs) == 0 {
			return
		}
		rules, err := chat.Application{WidgetConfigs: configs}.Rules()
		if err != nil {
			t.Fatalf("got %v, want what passed to be readable", err)
		}
		var members map[string]json.RawMessage
		if json.Unmarshal(configs, &members) != nil {
			return // blanks only
		}
		var required []string
		if err := json.Unmarshal(members["requiredFields"], &required); members["requiredFields"] != nil && err != nil {
			t.Fatalf("requiredFields: %v", err)
		}
		if fmt.Sprintf("%q", rules.RequiredFields) != fmt.Sprintf("%q", required) {
			t.Fatalf("got %q, want %q", rules.RequiredFields, required)
		}
	})
}
