package clientapi_test

import (
	"encoding/json"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/testkit/bustest"
)

// record holds the fields of a chat that the tests check.
type record struct {
	ChatID, AppID, Channel, Status, AnsweredBy, ClosedAt string

	Visitor struct{ ChatUserID, Email, Phone string }
}

var nextPage = regexp.MustCompile(`^<(\?.*)>; rel="next"$`)

// list reads all pages of a list.
func list[V any](w *world, token, path string) (all []V) {
	w.t.Helper()
	base, _, _ := strings.Cut(path, "?")
	for range 100 {
		a := w.getAs(token, path)
		var page []V
		if err := json.Unmarshal([]byte(a.Body), &page); err != nil || a.Status != http.StatusOK || a.Header.Get("Cache-Control") != "no-store" {
			w.t.Fatalf("GET %s: got %d %s, want 200 and a list", path, a.Status, a.Body)
		}
		all = append(all, page...)
		link := a.Header.Get("Link")
		if link == "" {
			return all
		}
		target := nextPage.FindStringSubmatch(link)
		if target == nil {
			w.t.Fatalf("GET %s: got the Link %s, want the next page", path, link)
		}
		path = base + target[1]
	}
	w.t.Fatal("the list has no end")
	return nil
}

func (w *world) chats(query string) (ids []string) {
	w.t.Helper()
	for _, c := range list[record](w, w.token, "/chats"+query) {
		ids = append(ids, c.ChatID)
	}
	return ids
}

// Chats are found by the visitor data that integrators have, and the pages together are the whole list.
func TestChats(t *testing.T) {
	t.Parallel()
	w := start(t)
	now := time.Now()
	_, old := w.openChat("Old@Example.com", now.Add(-time.Hour))
	_, closed := w.openChat("closed@example.com", now.Add(-2*time.Hour))
	_, err := w.store.ChangeChat(t.Context(), closed, store.ChatChange{ClosedAt: now})
	w.must(err)
	recipient, err := w.store.Register(t.Context(), store.PushRecipient(companyID, "+989121234567", "Ada", now.Add(-3*time.Hour)))
	w.must(err)
	knownVisitor, err := w.store.Register(t.Context(), store.Registration{Visitor: chat.Visitor{ID: uuid.NewString(), CompanyID: companyID, AppID: appID, UserID: "crm-7", Email: "old@example.com"}})
	known := knownVisitor.Visitor
	w.must(err)
	c, _, err := w.store.OpenChat(t.Context(), known, store.NewChat{Channel: chat.ChannelWidget, Now: now.Add(-4 * time.Hour)})
	w.must(err)
	foreignVisitor, err := w.store.Register(t.Context(), store.Registration{Visitor: chat.Visitor{ID: uuid.NewString(), CompanyID: otherCompanyID, AppID: otherTemplate, Email: "old@example.com"}})
	foreign := foreignVisitor.Visitor
	w.must(err)
	theirs, _, err := w.store.OpenChat(t.Context(), foreign, store.NewChat{Channel: chat.ChannelWidget, Now: now})
	w.must(err)
	all := []string{w.chatID, old, closed, recipient.Chat.ID, c.ID}
	for query, want := range map[string][]string{
		"":                                      all,
		"?limit=2":                              all,
		"?limit=1&status=open":                  {w.chatID, old, recipient.Chat.ID, c.ID},
		"?status=closed":                        {closed},
		"?status=pending&limit=3":               {w.chatID, old, recipient.Chat.ID, c.ID},
		"?appId=" + appID:                       {w.chatID, old, closed, c.ID},
		"?appId=" + otherTemplate:               nil,
		"?email=Old@Example.com":                {old, c.ID},
		"?email=old@example.com&limit=1":        {c.ID},
		"?phone=989121234567":                   {recipient.Chat.ID},
		"?phone=%2B989121234567":                {recipient.Chat.ID},
		"?phone=+989121234567":                  {recipient.Chat.ID}, // a query decodes + to a space
		"?phone=%2B98+(912)+123-4567":           {recipient.Chat.ID},
		"?userId=crm-7":                         {c.ID},
		"?userId=crm-7&email=a@example.com":     nil,
		"?email=nobody@example.com":             nil,
		"?email=closed@example.com&status=open": nil,
	} {
		if got := w.chats(query); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", query, got, want)
		}
	}
	if got := list[record](w, w.other, "/chats?email=old@example.com"); len(got) != 1 || got[0].ChatID != theirs.ID {
		t.Errorf("another company: got %+v, want its own chat only", got)
	}
	one := list[record](w, w.token, "/chats?phone=989121234567")[0]
	if one.AppID != "" || one.Channel != "phone" || one.Status != "pending" || one.AnsweredBy != "bot" || one.Visitor.Phone != "+989121234567" {
		t.Errorf("got %+v, want the recipient's chat", one)
	}
	if got := w.getAs(w.token, "/chats/"+strings.ToUpper(closed)); got.Status != http.StatusOK || !strings.Contains(got.Body, `"status":"closed"`) || !strings.Contains(got.Body, `"closedAt"`) {
		t.Errorf("got %d %s, want the closed chat", got.Status, got.Body)
	}
}

// The whole history is read page by page, as stored.
func TestMessagesOfAChat(t *testing.T) {
	t.Parallel()
	w := start(t)
	var want []string
	for i := range 5 {
		m := chat.Message{ID: uuid.Must(uuid.NewV7()).String(), CreatedAt: time.Now().Add(time.Duration(i) * time.Second), Type: chat.Text, Data: []byte(`{"text":"a",  "n":1.50}`)}
		w.must(w.store.AppendMessage(t.Context(), w.chatID, m))
		want = append(want, m.ID)
	}
	path := "/chats/" + w.chatID + "/messages"
	if a := w.getAs(w.token, path); strings.Count(a.Body, `"data":{"text":"a",  "n":1.50}`) != 5 || strings.Count(a.Body, `"chatId":"`+w.chatID+`"`) != 5 {
		t.Errorf("got %s, want the data as it was sent, and the chat", a.Body)
	}
	var got []string
	for _, m := range list[chat.Message](w, w.token, path+"?limit=2") {
		got = append(got, m.ID)
	}
	if pages := slices.Concat(want[3:], want[1:3], want[:1]); !slices.Equal(got, pages) {
		t.Errorf("got %q, want the pages from the end, %q", got, pages)
	}
}

func TestTemplatesAreListed(t *testing.T) {
	t.Parallel()
	w := start(t)
	type template struct {
		TemplateID, Status, Text string
		Parameters               []struct {
			Name, Default string
			Required      bool
		}
	}
	ids := func(query string) (ids []string) {
		for _, found := range list[template](w, w.token, "/templates"+query) {
			ids = append(ids, found.TemplateID)
		}
		return ids
	}
	for query, want := range map[string][]string{
		"": {templateID, draftTemplate, orderTemplate}, "?limit=1": {templateID, draftTemplate, orderTemplate},
		"?status=approved&limit=1": {templateID, orderTemplate}, "?status=rejected": nil,
	} {
		if got := ids(query); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", query, got, want)
		}
	}
	order := list[template](w, w.token, "/templates?after="+draftTemplate)[0]
	if len(order.Parameters) != 2 || !order.Parameters[0].Required || order.Parameters[1].Required || order.Parameters[1].Default != "today" {
		t.Errorf("got %+v, want its two parameters, the first of which is required", order)
	}
	if got := list[template](w, w.other, "/templates"); len(got) != 1 || got[0].TemplateID != otherTemplate {
		t.Errorf("another company: got %+v, want its own only", got)
	}
}

// An invalid look-up names its errors, and another company's records are not found.
func TestLookUpErrors(t *testing.T) {
	t.Parallel()
	w := start(t)
	_, elsewhere := w.openChat("elsewhere@example.com", time.Now())
	m := chat.Message{ID: uuid.NewString(), CreatedAt: time.Now(), Type: chat.Text, Data: []byte(`{"text":"a"}`)}
	w.must(w.store.AppendMessage(t.Context(), elsewhere, m))
	for _, test := range []struct {
		token, path   string
		status        int
		code, details string
	}{
		{w.token, "/chats?status=old&limit=0&appId=7&email=&after=x&phone=1&phone=2", 400, "VALIDATION_ERROR",
			"appId must be a UUID; status must be one of open, pending, active, closed; email must not be empty; phone must be given once; " +
				"limit must be a whole number from 1 to 100; after must be a cursor of a Link header"},
		{w.token, "/chats?Email=a@example.com", 400, "VALIDATION_ERROR", "Email is not a parameter of this request (email is)"},
		{w.token, "/chats?phone=0912.1234567", 400, "VALIDATION_ERROR", "phone must be a phone number: " + chat.PhoneRule},
		{w.token, "/chats?userId=" + strings.Repeat("x", 257), 400, "VALIDATION_ERROR", "userId must have at most 256 characters"},
		{w.token, "/templates?after=x&status=APPROVED", 400, "VALIDATION_ERROR", "status must be one of draft, pending, approved, rejected; after must be a UUID"},
		{w.token, "/chats/" + w.chatID + "/messages?before=" + m.ID, 400, "VALIDATION_ERROR", "before must be the id of a message of the chat"},
		{w.token, "/chats/" + w.chatID + "/messages?limit=201", 400, "VALIDATION_ERROR", "limit must be a whole number from 1 to 200"},
		{w.other, "/chats/" + w.chatID, 404, "CHAT_NOT_FOUND", ""},
		{w.other, "/chats/" + w.chatID + "/messages", 404, "CHAT_NOT_FOUND", ""},
		{w.token, "/chats/" + unknownID + "/messages", 404, "CHAT_NOT_FOUND", ""},
		{w.token, "/chats/x", 404, "CHAT_NOT_FOUND", ""},
		{"", "/chats", 401, "TOKEN_MISSING", ""},
		{unknownToken(), "/templates", 401, "UNAUTHORIZED", ""},
	} {
		got := w.getAs(test.token, test.path)
		if p := got.Problem(t); got.Status != test.status || p.Code != test.code || got.Details(t) != test.details {
			t.Errorf("%s: got %d %s, want %d %s %s", test.path, got.Status, got.Body, test.status, test.code, test.details)
		}
	}
}

// The answer to a push names the recipient's chat, which the dispatcher finds too; without the store only the
// chat is missing.
func TestPushAnswersTheChat(t *testing.T) {
	t.Parallel()
	w := start(t)
	push := func(key string) (answered struct{ MessageID, ChatID string }) {
		a := w.keyed(key, "/push-message", `{"templateId":"`+templateID+`","source":"+98 912 123 4567","username":"Ada"}`)
		if err := json.Unmarshal([]byte(a.Body), &answered); err != nil || a.Status != http.StatusOK || answered.MessageID == "" {
			t.Fatalf("got %d %s, want 200", a.Status, a.Body)
		}
		return answered
	}
	first := push("one")
	if first.ChatID == "" || push("one") != first {
		t.Errorf("got %+v, want a chat, and the same again with the same key", first)
	}
	if second := push("two"); second.ChatID != first.ChatID || second.MessageID == first.MessageID {
		t.Errorf("got %+v after %+v, want another message in the same chat", second, first)
	}
	dispatched, err := w.store.Register(t.Context(), store.PushRecipient(companyID, "+989121234567", "", time.Now()))
	w.must(err)
	if dispatched.Chat.ID != first.ChatID || dispatched.Opened || dispatched.Visitor.FirstName != "Ada" {
		t.Errorf("the dispatcher: got %+v, want the chat %s of Ada", dispatched, first.ChatID)
	}
	w.engines.Store.Begin()
	defer w.engines.Store.End()
	got := w.post("/push-message", `{"templateId":"`+templateID+`","source":"+989121234567"}`)
	if succeeded(t, got); strings.Contains(got.Body, "chatId") {
		t.Errorf("got %s, want no chat while the store is down", got.Body)
	}
}

// A company sets the sender name of a message, and the name is part of the idempotency fingerprint.
func TestSenderName(t *testing.T) {
	t.Parallel()
	w := start(t)
	heard := bustest.Collect(t, w.engines.NATSURL, "chat.in.message.>")
	body := func(more string) string {
		return `{"type":"TEXT","data":{"text":"hi"},"chatId":"` + w.chatID + `"` + more + `}`
	}
	for more, want := range map[string]string{"": "Bo", `,"senderName":null`: "Bo", `,"senderName":"Sara é"`: "Sara é"} {
		succeeded(t, w.post("/message/send", body(more)))
		var event struct{ Message chat.Message }
		w.must(json.Unmarshal(heard.Next().Data, &event))
		if event.Message.NameOfSender != want {
			t.Errorf("%s: got %q, want %q", more, event.Message.NameOfSender, want)
		}
	}
	for more, want := range map[string]string{
		`,"senderName":" "`: "senderName must not be empty", `,"senderName":7`: "senderName must be a string",
		`,"senderName":"` + strings.Repeat("é", 257) + `"`: "senderName must have at most 256 characters",
	} {
		if got := w.post("/message/send", body(more)); got.Status != 400 || got.Details(t) != want {
			t.Errorf("%s: got %d %s, want %s", more, got.Status, got.Body, want)
		}
	}
	succeeded(t, w.keyed("k", "/message/send", body("")))
	if got := w.keyed("k", "/message/send", body(`,"senderName":"Sara"`)); got.Status != http.StatusUnprocessableEntity {
		t.Errorf("got %d %s for another sender, want 422", got.Status, got.Body)
	}
}
