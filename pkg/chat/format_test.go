package chat_test

import (
	"encoding/json"
	"testing"

	"github.com/parley-chat/parley/pkg/chat"
)

func TestWithFormat(t *testing.T) {
	t.Parallel()
	for data, want := range map[string]string{
		` { "text" : "a}" } `:               `{ "text" : "a}","format":"markdown"}`,
		`{"text":"a","format":null}`:        `{"text":"a","format":null,"format":"markdown"}`,
		`{"text":"a","format":"plain"}`:     `{"text":"a","format":"plain"}`,
		`{"text":"a","x":{"format":"own"}}`: `{"text":"a","x":{"format":"own"},"format":"markdown"}`,
		`{ }`:                               `{"format":"markdown"}`,
	} {
		got := chat.WithFormat(json.RawMessage(data), chat.Markdown)
		var decoded struct{ Format string }
		if err := json.Unmarshal(got, &decoded); err != nil || string(got) != want || decoded.Format == "" {
			t.Errorf("%s: got %s (%v), want %s", data, got, err, want)
		}
	}
}
