package dispatcher

import (
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTemplateMessage(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 3, 4, 5, 6, 7, 8e6, time.UTC)
	template := chat.MessageTemplate{
		ID: "t", Name: "ready", Text: "Hello {{username}}, {{ what }} is ready.{{nothing}}",
		Parameters: []chat.TemplateParameter{{Name: "username", Default: "you"}, {Name: "what", Default: "your order"}},
	}
	tests := map[string]struct {
		username string
		given    map[string]string
		want     string
	}{
		"defaults":   {"", nil, `{"templateId":"t","name":"ready","text":"Hello you, your order is ready.","parameters":{"username":"you","what":"your order"}}`},
		"a username": {`Sara "S" Ek`, nil, `{"templateId":"t","name":"ready","text":"Hello Sara \"S\" Ek, your order is ready.","parameters":{"username":"Sara \"S\" Ek","what":"your order"}}`},
		"parameters": {"Sara", map[string]string{"what": "4711", "nothing": " Bye."},
			`{"templateId":"t","name":"ready","text":"Hello Sara, 4711 is ready. Bye.","parameters":{"nothing":" Bye.","username":"Sara","what":"4711"}}`},
	}
	for name, tt := range tests {
		m, err := templateMessage(event.PushAccepted{MessageID: "m", CreatedAt: at, Username: tt.username, Parameters: tt.given}, template, "Acme")
		if err != nil || string(m.Data) != tt.want {
			t.Errorf("%s: got %s and %v, want %s", name, m.Data, err, tt.want)
		}
		if m.ID != "m" || !m.CreatedAt.Equal(at) || m.Type != chat.Template || m.NameOfSender != "Acme" || !m.IsFromSupport {
			t.Errorf("got %+v, want the push's id and time, TEMPLATE, from Acme and support", m)
		}
	}
	plain, err := templateMessage(event.PushAccepted{}, chat.MessageTemplate{ID: "t", Name: "n", Text: "Hi"}, "Acme")
	if want := `{"templateId":"t","name":"n","text":"Hi"}`; err != nil || string(plain.Data) != want {
		t.Errorf("got %s and %v, want %s", plain.Data, err, want)
	}
}

// The template may have been edited between the acceptance and the sending.
func TestTemplateMessageOfAChangedTemplate(t *testing.T) {
	t.Parallel()
	for name, given := range map[string]map[string]string{"is required": nil, "is not a parameter": {"order": "1", "gone": "2"}} {
		template := chat.MessageTemplate{Text: "{{order}}", Parameters: []chat.TemplateParameter{{Name: "order"}}}
		_, err := templateMessage(event.PushAccepted{Parameters: given}, template, "Acme")
		if !apperr.Is(err, apperr.Invalid) || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want invalid with %q", err, name)
		}
	}
}
