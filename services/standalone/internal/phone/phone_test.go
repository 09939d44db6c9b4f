package phone_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/service"
	"github.com/parley-chat/parley/services/standalone/internal/phone"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/servicetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m, bustest.LeftByNATS()...) }

func get(t *testing.T, h http.Handler, path string) *httptest.ResponseRecorder {
	t.Helper()
	answer := httptest.NewRecorder()
	h.ServeHTTP(answer, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
	return answer
}

// The page has the messages of its company to phone numbers, which are delivered when they arrive and read when they
// are shown.
func TestMessagesArrive(t *testing.T) {
	t.Parallel()
	url := bustest.Start(t).URL()
	b := bustest.Open(t, url)
	p := phone.New(service.Base{NATS: config.NATS{NATSURL: url}, Logger: slog.New(slog.DiscardHandler)}, "company")
	stop := servicetest.Run(t, p.Run)
	statuses := bustest.Collect(t, url, "chat.status.>")
	h := p.Handler()
	send := func(company, id, text string) {
		t.Helper()
		err := b.Publish(t.Context(), event.Derived(), event.OutboundMessage{
			CompanyID: company, Channel: chat.ChannelPhone, ChatID: "chat", ChatUserID: "visitor",
			Recipient: event.Recipient{Phone: "+989121234567", Name: "Ada"},
			Message: chat.Message{
				ID: id, CreatedAt: time.Now(), Type: chat.Text, Data: json.RawMessage(`{"text":"` + text + `"}`),
				NameOfSender: "Acme", IsFromSupport: true,
			},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	type shown struct {
		Number                  int
		ID, Phone, Name, Sender string
		Text                    string
	}
	list := func(path string) (messages []shown) {
		t.Helper()
		if err := json.Unmarshal(get(t, h, path).Body.Bytes(), &messages); err != nil {
			t.Fatal(err)
		}
		return messages
	}
	status := func(id, want string) {
		t.Helper()
		var e struct{ MessageID, Status string }
		if err := json.Unmarshal(statuses.Next().Data, &e); err != nil || e.MessageID != id || e.Status != want {
			t.Errorf("got %+v and %v, want %s of %s", e, err, want, id)
		}
	}

	m1, m2 := chat.NewID(), chat.NewID()
	send("other", chat.NewID(), "not here")
	send("company", m1, "Your order is ready.")
	status(m1, chat.StatusDelivered)
	got := list("/demo/phone/messages")
	want := shown{Number: 1, ID: m1, Phone: "+989121234567", Name: "Ada", Sender: "Acme", Text: "Your order is ready."}
	if len(got) != 1 || got[0] != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	status(m1, chat.StatusRead)
	arrived := make(chan []shown)
	go func() { arrived <- list("/demo/phone/messages?from=2") }()
	send("company", m2, "It is sent.")
	if got := <-arrived; len(got) != 1 || got[0].ID != m2 {
		t.Errorf("got %+v, want the second message when it arrives", got)
	}
	status(m2, chat.StatusDelivered)
	status(m2, chat.StatusRead)

	go func() { arrived <- list("/demo/phone/messages?from=3") }()
	stop()
	if got := <-arrived; len(got) != 0 {
		t.Errorf("got %+v at the end, want nothing", got)
	}
}

func TestThePageHasAStrictPolicy(t *testing.T) {
	t.Parallel()
	h := phone.New(service.Base{}, "company").Handler()
	nonce := regexp.MustCompile(`script-src 'nonce-(\w+)'`)
	first, second := get(t, h, "/demo/phone"), get(t, h, "/demo/phone")
	policy := first.Header().Get("Content-Security-Policy")
	found := nonce.FindStringSubmatch(policy)
	isStrict := strings.Contains(policy, "default-src 'none'")
	if found == nil || !isStrict || !strings.Contains(first.Body.String(), found[1]) {
		t.Errorf("got the policy %q", policy)
	}
	if second.Header().Get("Content-Security-Policy") == policy {
		t.Error("the nonce is the same twice")
	}
}
