package http

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/testkit/httpapitest"
)

// An accepted message has a type that visitors may send, and its data is that of the body.
func FuzzWriteRequest(f *testing.F) {
	for _, seed := range []string{
		`{"type":"TEXT","data":{"text":"hi","x":1e3}}`, `{"type":"MULTIPLE_CHOICE_REPLY","data":{"choice":"a"}}`,
		`{"type":"MULTIPLE_CHOICE_REPLY","data":{"messageId":"0d9f5c7e-6c1d-4b7a-8f1e-2a3b4c5d6e7f","choiceId":"1","title":"One"}}`,
		`{"type":"IMAGE","data":{"url":"https://a.b/c"}}`, `{"type":"TEXT","data":"hi"}`, `{"type":["TEXT"],"data":null}`, `{}`, `[`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		var r writeRequest
		if !httpapitest.Accepts(t, body, &r) {
			return
		}
		if !chat.MessageType(r.Type).In(chat.VisitorTypes()) {
			t.Fatalf("%q: got the type %q accepted", body, r.Type)
		}
		var data map[string]any
		if json.Unmarshal(r.Data, &data) != nil || len(data) == 0 || !strings.Contains(body, string(r.Data)) {
			t.Fatalf("%q: got the data %q, want an object of the body", body, r.Data)
		}
	})
}

// An accepted registration has an application and an identity, and keeps the application's own fields.
func FuzzRegisterRequest(f *testing.F) {
	for _, seed := range []string{
		`{"appId":"3f0e6e1a-2f57-4f0c-8a35-5c6f2a1b9d84","firstName":"Sara","lastName":"","email":"sara@example.com","phone":"989121234567","userId":"crm-1042"}`,
		`{"appId":"3F0E6E1A-2F57-4F0C-8A35-5C6F2A1B9D84","userId":"7","userHash":"00","company":{"name":"Shop","size":[1,2]}}`,
		`{"appId":"3f0e6e1a-2f57-4f0c-8a35-5c6f2a1b9d84","email":null,"phone":12}`, `{"appId":null}`, `{"":"","userId":"x"}`, `{}`, `[`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, body string) {
		var r registerRequest
		if !httpapitest.Accepts(t, body, &r) {
			return
		}
		form := r.form()
		if _, isID := chat.ParseID(form.AppID); !isID || form.Email == nil && form.Phone == nil && form.UserID == nil {
			t.Fatalf("%q: got %+v accepted", body, form)
		}
		for name, value := range form.Others {
			if !json.Valid(value) || !strings.Contains(body, string(value)) {
				t.Fatalf("%q: got %q as the field %q, want JSON of the body", body, value, name)
			}
		}
	})
}
