package e2e

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	eventsv1 "github.com/parley-chat/parley/proto-events/gen/parley/events/v1"
)

// record is a message in the history and on the socket.
type record struct {
	ID            string          `json:"id"`
	CreatedAt     string          `json:"createdAt"`
	Type          string          `json:"type"`
	Data          json.RawMessage `json:"data"`
	NameOfSender  string          `json:"nameOfSender"`
	IsFromSupport bool            `json:"isFromSupport"`
}

func (r record) same(other record) bool {
	return r.ID == other.ID && r.CreatedAt == other.CreatedAt && r.Type == other.Type && string(r.Data) == string(other.Data) &&
		r.NameOfSender == other.NameOfSender && r.IsFromSupport == other.IsFromSupport
}

// member returns a string member of the message's data.
func (r record) member(t testing.TB, name string) string {
	t.Helper()
	var data map[string]any
	if err := json.Unmarshal(r.Data, &data); err != nil {
		t.Fatalf("decoding %s: %v", r.Data, err)
	}
	s, _ := data[name].(string)
	return s
}

// visitor is a registered visitor.
type visitor struct {
	place place
	api   *api
	token string
	email string
}

// register registers a new visitor of the demo application.
func register(t testing.TB, p place, a *api) *visitor {
	t.Helper()
	v := &visitor{place: p, api: a, email: uuid.NewString() + "@example.com"}
	v.token = v.registerAgain(t)
	return v
}

func (v *visitor) registerAgain(t testing.TB) string {
	t.Helper()
	body := map[string]string{"appId": v.place.AppID, "firstName": "Ada", "email": v.email}
	answer := v.api.call(t, http.MethodPost, "/register", body)
	return want[struct{ AccessToken string }](t, http.StatusOK, answer).AccessToken
}

// history returns the whole history, also if it is longer than a page.
func (v *visitor) history(t testing.TB) []record {
	t.Helper()
	const fullPage = 1000
	read := func(query string) []record {
		return want[[]record](t, http.StatusOK, v.api.call(t, http.MethodGet, "/message"+query, nil, bearer(v.token)))
	}
	all := read("")
	for page := all; len(page) == fullPage; {
		page = read(fmt.Sprintf("?limit=%d&before=%s", fullPage, all[0].ID))
		all = append(page, all...)
	}
	return all
}

func (v *visitor) write(t testing.TB, text string) record {
	t.Helper()
	return v.send(t, "TEXT", map[string]string{"text": text})
}

func (v *visitor) send(t testing.TB, kind string, data map[string]string) record {
	t.Helper()
	body := map[string]any{"type": kind, "data": data}
	return want[record](t, http.StatusCreated, v.api.call(t, http.MethodPost, "/message", body, bearer(v.token)))
}

// choose answers a menu of the bot.
func (v *visitor) choose(t testing.TB, menu record, payload string) record {
	t.Helper()
	return v.send(t, "MULTIPLE_CHOICE_REPLY", map[string]string{"text": "a choice", "payload": payload, "replyTo": menu.ID})
}

// sent is the success body of the Client API.
type sent struct {
	Message         string `json:"message"`
	MessageID       string `json:"messageId"`
	WindowExpiresAt string `json:"windowExpiresAt"`
}

func TestSession(t *testing.T) {
	s := commonStandalone(t)
	for name, transports := range map[string][]string{
		"websocket": {"websocket"},
		"polling":   {"polling"},
		"upgrade":   {"polling", "websocket"},
	} {
		t.Run(name, func(t *testing.T) { session(t, s.place, transports...) })
	}
}

// session is the session flow of the specification, from the settings to a push.
func session(t *testing.T, p place, transports ...string) {
	company, widget := p.clientAPI(t), p.widgetAPI(t)
	events := watch(t, p)
	botName := checkSettings(t, p, widget)

	v := register(t, p, widget)
	received := v.history(t)
	checkGreetings(t, received, botName)
	registered, _ := nextEvent(t, events, func(e *eventsv1.VisitorRegistered) bool { return e.GetProfile().GetEmail() == v.email })

	var listening []*socket
	for _, url := range p.SocketURLs {
		listening = append(listening, connected(t, url, v.token, transports...))
	}
	// nextOnAll returns the next message, which every socket of the visitor receives alike.
	nextOnAll := func() delivery {
		t.Helper()
		first := listening[0].next(t)
		for _, other := range listening[1:] {
			if d := other.next(t); !d.same(first.record) {
				t.Errorf("another socket got %+v, want %+v", d, first)
			}
		}
		if first.ChatID != registered.GetChatId() {
			t.Errorf("socket: got chatId %s, want %s", first.ChatID, registered.GetChatId())
		}
		received = append(received, first.record)
		return first
	}

	var fastest time.Duration
	for i := range 5 {
		text := fmt.Sprintf("number %d of “%s”", i, t.Name())
		begun := time.Now()
		mine := v.write(t, text)
		received = append(received, mine)
		reply := nextOnAll()
		if took := time.Since(begun); fastest == 0 || took < fastest {
			fastest = took
		}
		if mine.IsFromSupport || mine.NameOfSender != "Ada" || mine.member(t, "text") != text {
			t.Errorf("POST /message: got %+v, want the visitor's text", mine)
		}
		if !reply.IsFromSupport || reply.NameOfSender != botName || !strings.Contains(reply.member(t, "text"), text) {
			t.Errorf("bot: got %+v (%s), want an answer to %q by %s", reply, reply.Data, text, botName)
		}
	}
	t.Logf("from POST /message to the bot's answer on the socket: %v", fastest)
	if fastest > 2*time.Second {
		t.Errorf("the bot answered in %v, want less than 2s", fastest)
	}

	received = append(received, v.write(t, "menu"))
	menu := nextOnAll()
	received = append(received, v.choose(t, menu.record, "show-picture"))
	image := nextOnAll()
	received = append(received, v.choose(t, menu.record, "show-cards"))
	cards := nextOnAll()
	if menu.Type != "MULTIPLE_CHOICE" || image.Type != "IMAGE" || cards.Type != "CAROUSEL" {
		t.Errorf("bot: got %s, %s, %s, want MULTIPLE_CHOICE, IMAGE, CAROUSEL", menu.Type, image.Type, cards.Type)
	}
	checkPicture(t, image.record)

	message := checkCompanyMessage(t, p, company, registered.GetChatId())
	if d := nextOnAll(); d.ID != message || !d.IsFromSupport || d.member(t, "text") != "from the company" {
		t.Errorf("socket: got %+v (%s), want the company's message %s", d, d.Data, message)
	}
	nextEvent(t, events, func(e *eventsv1.Reply) bool { return e.GetMessage().GetId() == message })
	awaitStatus(t, p, company, message, "delivered")
	if got := widget.call(t, http.MethodPost, "/message/"+message+"/read", nil, bearer(v.token)); got.Status != http.StatusNoContent {
		t.Errorf("read: got %d %s, want 204", got.Status, got.Body)
	}
	awaitStatus(t, p, company, message, "read")

	checkHistory(t, v, received)
	checkPush(t, p, company)
	outbound, m := nextEvent(t, events, func(e *eventsv1.OutboundMessage) bool { return e.GetMessage().GetType() == "TEMPLATE" })
	if m.Subject != "chat.out.phone."+p.CompanyID || outbound.GetRecipient().GetPhone() != "491701234567" {
		t.Errorf("push: got %s to %q, want chat.out.phone.%s to the phone", m.Subject, outbound.GetRecipient().GetPhone(), p.CompanyID)
	}
	if text := outbound.GetMessage().GetData().GetFields()["text"].GetStringValue(); !strings.Contains(text, "Grace") || strings.Contains(text, "{{") {
		t.Errorf("push: got text %q, want the rendered template", text)
	}
}

func checkSettings(t *testing.T, p place, widget *api) (botName string) {
	t.Helper()
	type settings struct {
		ID            string
		BotName       string
		Name          string
		WidgetConfigs map[string]json.RawMessage
	}
	s := want[settings](t, http.StatusOK, widget.call(t, http.MethodGet, "/settings/"+p.AppID, nil))
	if s.ID != p.AppID || s.BotName == "" || s.Name == "" {
		t.Errorf("settings: got %+v", s)
	}
	for _, key := range []string{
		"requiredFields", "greetingMessages", "formInputs", "primaryBackgroundColor", "primaryTextColor", "inputTextColor",
		"inputBackgroundColor", "footerBackgroundColor", "contentBackgroundColor", "sentMessageBubbleBgColor",
		"sentMessageBubbleTextColor", "receivedMessageBubbleBgColor", "receivedMessageBubbleTextColor", "formBackgroundColor",
		"aiIconUrl", "widgetIconUrl", "userIconUrl",
	} {
		if len(s.WidgetConfigs[key]) == 0 {
			t.Errorf("settings: widgetConfigs has no %s", key)
		}
	}
	return s.BotName
}

func checkGreetings(t *testing.T, received []record, botName string) {
	t.Helper()
	if len(received) == 0 {
		t.Fatal("history right after the registration: got nothing, want the greetings")
	}
	for _, r := range received {
		if !r.IsFromSupport || r.NameOfSender != botName || r.Type != "TEXT" || r.member(t, "text") == "" {
			t.Errorf("greeting: got %+v (%s)", r, r.Data)
		}
	}
}

// checkPicture loads the picture as a browser would.
func checkPicture(t *testing.T, r record) {
	t.Helper()
	for _, member := range []string{"url", "mime", "path", "caption", "fileName", "extension"} {
		if r.member(t, member) == "" {
			t.Errorf("IMAGE has no %s: %s", member, r.Data)
		}
	}
	url := r.member(t, "url")
	if strings.HasPrefix(url, "data:") {
		return
	}
	answer, err := http.Get(url)
	if err != nil {
		t.Fatalf("reading the picture: %v", err)
	}
	defer http.DefaultClient.CloseIdleConnections()
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != r.member(t, "mime") {
		t.Errorf("picture: got %s %s, want 200 %s", answer.Status, answer.Header.Get("Content-Type"), r.member(t, "mime"))
	}
}

func checkCompanyMessage(t *testing.T, p place, company *api, chatID string) (messageID string) {
	t.Helper()
	body := map[string]any{"type": "TEXT", "chatId": chatID, "data": map[string]string{"text": "from the company"}}
	answer := want[sent](t, http.StatusOK, company.call(t, http.MethodPost, "/message/send", body, accessToken(p.AccessToken)))
	expires, err := time.Parse("2006-01-02T15:04:05.000Z", answer.WindowExpiresAt)
	if err != nil || time.Until(expires) < 23*time.Hour || time.Until(expires) > 24*time.Hour {
		t.Errorf("windowExpiresAt: got %q (%v), want in 24 hours", answer.WindowExpiresAt, err)
	}
	if !strings.HasPrefix(answer.Message, "Message sent successfully") || answer.MessageID == "" {
		t.Errorf("POST /message/send: got %+v", answer)
	}
	return answer.MessageID
}

// awaitStatus waits until the company sees that status of its message.
func awaitStatus(t *testing.T, p place, company *api, messageID, status string) {
	t.Helper()
	eventually(t, "the message is "+status, func() error {
		got := want[map[string]string](t, http.StatusOK, company.call(t, http.MethodGet, "/message/"+messageID, nil, accessToken(p.AccessToken)))
		if got["status"] != status || got[status+"At"] == "" || got["storedAt"] == "" {
			return fmt.Errorf("got %v, want it %s and stored", got, status)
		}
		return nil
	})
}

func checkPush(t *testing.T, p place, company *api) {
	t.Helper()
	body := map[string]string{"templateId": p.TemplateID, "source": "491701234567", "username": "Grace"}
	answer := want[sent](t, http.StatusOK, company.call(t, http.MethodPost, "/push-message", body, accessToken(p.AccessToken)))
	if !strings.HasPrefix(answer.Message, "Message sent successfully") || answer.MessageID == "" {
		t.Errorf("POST /push-message: got %+v", answer)
	}
}

// checkHistory waits until the history is exactly the visitor's messages, in order.
func checkHistory(t *testing.T, v *visitor, received []record) {
	t.Helper()
	var got []record
	eventually(t, "the history", func() error {
		if got = v.history(t); len(got) < len(received) {
			return fmt.Errorf("got %d messages, want %d", len(got), len(received))
		}
		return nil
	})
	if !slices.EqualFunc(got, received, record.same) {
		t.Errorf("history: got %s, want what was received: %s", ids(got), ids(received))
	}
}

func ids(records []record) string {
	var b strings.Builder
	for _, r := range records {
		fmt.Fprintf(&b, "\n%s %s %s %s", r.CreatedAt, r.ID, r.Type, r.Data)
	}
	return b.String()
}
