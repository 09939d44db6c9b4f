package http

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/testkit/httpapitest"
)

// An accepted message has a chat and a type, and its data is that of the body.
func FuzzSendRequest(f *testing.F) {
	for _, seed := range []string{
		`{"type":"TEXT","data":{"text":"hi"},"chatId":"0d9f5c7e-6c1d-4b7a-8f1e-2a3b4c5d6e7f"}`, `{"type":"IMAGE","data":{"url":"https://a.b/c","x":1e3},"chatId":"0d9f5c7e-6c1d-4b7a-8f1e-2a3b4c5d6e7f"}`,
		`{"type":"CAROUSEL","data":{"cards":[{"title":"a","buttons":[{"type":"url","title":"t","url":"https://a.b"}]}]},"chatId":"0D9F5C7E-6C1D-4B7A-8F1E-2A3B4C5D6E7F"}`, `{"type":1,"data":[],"chatId":null}`, `{}`, `[`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		var r sendRequest
		if !httpapitest.Accepts(t, body, &r) {
			return
		}
		if _, isID := chat.ParseID(r.ChatID); !isID || !chat.MessageType(r.Type).In(chat.CompanyTypes()) {
			t.Fatalf("%q: got the type %q and the chat %q accepted", body, r.Type, r.ChatID)
		}
		var data map[string]any
		if json.Unmarshal(r.Data, &data) != nil || len(data) == 0 || !strings.Contains(body, string(r.Data)) {
			t.Fatalf("%q: got the data %q, want an object of the body", body, r.Data)
		}
	})
}

// An accepted push has a template and a phone number, and its parameters are strings.
func FuzzPushRequest(f *testing.F) {
	for _, seed := range []string{
		`{"templateId":"5b0f3f4e-1d5f-4a8f-9c38-1f1f3d6a2b10","source":"+989121234567","username":"Sara","parameters":{"order":"4711","x":null}}`,
		`{"templateId":"5b0f3f4e-1d5f-4a8f-9c38-1f1f3d6a2b10","source":"(0) 912 - 123","parameters":{"":"x"}}`, `{"parameters":{"a":1},"username":""}`, `{"source":"++98 9121234567"}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		var r pushRequest
		if !httpapitest.Accepts(t, body, &r) {
			return
		}
		o, faults := r.read()
		_, isID := chat.ParseID(o.TemplateID)
		_, isPhone := chat.ParsePhone(o.Source)
		if len(faults) > 0 || !isID || !isPhone || len(o.Source) < 11 || o.Username != nil && utf8.RuneCountInString(*o.Username) < 3 {
			t.Fatalf("%q: got %+v with %v accepted", body, o, faults)
		}
		var sent struct{ Parameters map[string]*string }
		if err := json.Unmarshal([]byte(body), &sent); err != nil {
			t.Fatalf("%q: accepted, but %v", body, err)
		}
		for name, value := range o.Parameters {
			if sent.Parameters[name] == nil || *sent.Parameters[name] != value || utf8.RuneCountInString(value) > chat.MaxParameterLength {
				t.Fatalf("%q: got the parameter %q as %q", body, name, value)
			}
		}
	})
}
