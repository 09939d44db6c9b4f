package parleyctl_test

import (
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/services/parleyctl"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/timetest"
)

func TestCompanies(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ctl("companies", "create", "--name", "Acme", "--id", strings.ToUpper(companyID)).prints(`
id    ` + companyID + `
name  Acme`)
	w.ctl("companies", "create", "--name", "Again", "--id", companyID).fails(parleyctl.ExitRefused, "has the id")
	w.ctl("companies", "create").fails(parleyctl.ExitUsage, "--name required")
	w.ctl("companies", "create", "--name", "x", "--id", "y").fails(parleyctl.ExitUsage, "--id must be a UUID")
	w.ctl("companies", "create", "--name", "Evil\x1b[31m").fails(parleyctl.ExitRefused, "control characters")
	second := decoded[object](w.ctl("companies", "create", "--name", "Evil", "-o", "json"))
	if id, ok := chat.ParseID(second["id"].(string)); !ok || id[14] != '7' {
		t.Errorf("got id %v, want a UUID of version 7", second["id"])
	}
	// before names were validated
	w.must(w.store.PutCompany(t.Context(), chat.Company{ID: second["id"].(string), Name: "Evil\x1b[31m <b>\u202e"}))
	w.ctl("companies", "rename", companyID, "Acme & Sons").done()
	w.ctl("companies", "show", companyID, "-o", "json").prints("{\n  \"id\": \"" + companyID + "\",\n  \"name\": \"Acme & Sons\"\n}")

	list := w.ctl("companies", "list").done()
	if want := "ID                                    NAME\n"; !strings.HasPrefix(list, want) || strings.Count(list, "\n") != 3 ||
		!strings.Contains(list, "Evil [31m <b>\n") || strings.ContainsAny(list, "\x1b\u202e") {
		t.Errorf("got %q, want two companies, and nothing that moves the cursor", list)
	}
	if all := decoded[[]object](w.ctl("companies", "ls", "-o", "json")); len(all) != 2 || all[1]["name"] != "Acme & Sons" {
		t.Errorf("got %v, want both", all)
	}
	first := w.ctl("companies", "list", "--limit", "1")
	if !strings.Contains(first.errors, "--after "+second["id"].(string)) {
		t.Errorf("got %q, want the way to the next page", first.errors)
	}
	w.ctl("companies", "list", "--after", second["id"].(string)).prints(`
ID                                    NAME
` + companyID + `  Acme & Sons`)
	w.ctl("companies", "list", "--after", companyID, "-o", "json").prints("[]")
	w.ctl("companies", "show", appID).fails(parleyctl.ExitNotFound, "Company not found")
	w.ctl("companies", "rename", companyID, "").fails(parleyctl.ExitUsage, "NAME")
	w.ctl("companies", "list", "--limit", "-1").fails(parleyctl.ExitUsage, "--limit")
}

func TestApplications(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seed()
	const configs = `{ "requiredFields":["email"], "big": 12345678901234567890.10, "<":"&" }`
	made := decoded[object](w.ctl("applications", "create", "--company", companyID, "--name", "Help", "--bot-name", "Nora",
		"--widget-configs", w.file(configs), "--origin", "https://WWW.example.com:443", "-o", "json"))
	id := made["id"].(string)
	if made["provider"] != "widget" || made["botName"] != "Nora" || made["verification"] != "session" || made["allowedOrigins"].([]any)[0] != "https://www.example.com" {
		t.Errorf("got %v", made)
	}
	app, err := w.cache.Application(t.Context(), id) // the cache now holds it for an hour
	w.must(err)
	if string(app.WidgetConfigs) != configs {
		t.Errorf("got widgetConfigs %s, want them as they were", app.WidgetConfigs)
	}
	if list := w.ctl("applications", "list", "--company", companyID).done(); strings.Count(list, "\n") != 3 || !strings.Contains(list, "https://www.example.com") {
		t.Errorf("got\n%s, want two applications", list)
	}
	if list := decoded[[]object](w.ctl("apps", "ls", "--company", appID, "-o", "json")); len(list) != 0 {
		t.Errorf("of another company: got %v", list)
	}

	in := func(what string, holds func(chat.Application) bool) {
		t.Helper()
		timetest.Until(t, what, func() bool {
			app, err := w.cache.Application(t.Context(), id)
			return err == nil && holds(app)
		})
	}
	w.ctlIn(`{"greetingMessages":[{"content":"Hi"}]}`, false, "applications", "update", id, "--widget-configs", "-").done()
	in("the services have the new widgetConfigs", func(a chat.Application) bool {
		return string(a.WidgetConfigs) == `{"greetingMessages":[{"content":"Hi"}]}` && a.Name == "Help" && len(a.AllowedOrigins) == 1
	})
	w.ctl("applications", "update", id, "--name", "Desk").done()
	in("the services have the new name", func(a chat.Application) bool { return a.Name == "Desk" && a.BotName == "Nora" })
	w.ctl("applications", "update", id, "--file-retention", "720h").done()
	in("files are kept for a month", func(a chat.Application) bool { return a.FileRetention == 720*time.Hour })
	w.ctl("applications", "update", id, "--file-retention", "-1h").fails(parleyctl.ExitRefused, "fileRetention")
	if shown := w.ctl("applications", "show", id).done(); !strings.Contains(shown, "720h0m0s") {
		t.Errorf("got\n%s, want how long files are kept", shown)
	}
	w.ctl("applications", "origins", id, "--set", "https://*.example.com,https://b.example").done()
	in("the services have the new origins", func(a chat.Application) bool { return len(a.AllowedOrigins) == 2 })
	w.ctl("applications", "origins", id, "--any").done()
	in("every origin may", func(a chat.Application) bool { return len(a.AllowedOrigins) == 0 })
	w.ctl("applications", "support", id, "--set", "../../docs/examples/support.json").done()
	in("the services have the business hours", func(a chat.Application) bool { return a.Support.Rating && len(a.Support.Hours.Week) == 5 })
	w.ctlIn(`{"hours":{"timeZone":"Berlin"}}`, false, "applications", "support", id, "--set", "-").fails(parleyctl.ExitRefused, "hours.timeZone")
	w.ctlIn(`[]`, false, "applications", "support", id, "--set", "-").fails(parleyctl.ExitRefused, "JSON object")
	w.ctlIn(`{"agentOnly":true}`, false, "applications", "support", id, "--set", "-").fails(parleyctl.ExitRefused, "agentOnly")
	w.ctl("applications", "support", id).fails(parleyctl.ExitUsage, "--set")

	w.ctl("applications", "identity", "set", id, "required").fails(parleyctl.ExitRefused, "no identity secret")
	rotated := w.ctl("applications", "identity", "rotate", id, "--overlap", "1h", "-o", "json")
	secret := decoded[object](rotated)["secret"].(string)
	w.ctl("applications", "identity", "set", id, "required").done()
	in("the services verify with the secret", func(a chat.Application) bool {
		return a.Identity.Required() && credential.IsUserHash(a.Identity.ValidSecrets(noon), "u", credential.UserHash(chat.Secret(secret), "u"))
	})
	again := decoded[object](w.ctl("applications", "identity", "rotate", id, "--overlap", "1h", "-o", "json"))
	if again["othersUntil"] != "2026-11-21T13:00:00.000Z" {
		t.Errorf("got %v, want the end of the secret before", again)
	}
	for _, shown := range []result{w.ctl("applications", "show", id), w.ctl("applications", "show", id, "-o", "json"), rotated} {
		if strings.Contains(shown.errors, secret) || shown.args != rotated.args && strings.Contains(shown.done(), secret) {
			t.Errorf("%s shows the secret", shown.args)
		}
	}

	for args, text := range map[string]string{
		"--widget-configs " + w.file(`[1]`):                    "widgetConfigs must be an object",
		"--widget-configs " + w.file(`null`):                   "widgetConfigs must be an object",
		"--widget-configs " + w.file(`{"requiredFields":[1]}`): "widgetConfigs.requiredFields[0] must be the name of a field",
		"--widget-configs " + w.file(``):                       "widgetConfigs must not be empty",
		"--origin https://x/path":                              "rigin",
	} {
		w.ctl(append([]string{"applications", "update", id}, strings.Fields(args)...)...).fails(parleyctl.ExitRefused, text)
	}
	w.ctl("applications", "update", id, "--widget-configs", "/nowhere").fails(parleyctl.ExitUsage, "--widget-configs")
	w.ctl("applications", "update", id).fails(parleyctl.ExitUsage, "nothing to change")
	w.ctl("applications", "origins", id).fails(parleyctl.ExitUsage, "--set")
	w.ctl("applications", "identity", "set", id, "maybe").fails(parleyctl.ExitUsage, "off, session or required")
	w.ctl("applications", "show", companyID).fails(parleyctl.ExitNotFound, "not found")
	w.ctl("applications", "create", "--company", appID, "--name", "x").fails(parleyctl.ExitNotFound, "Company not found")
}

func TestTemplates(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seed()
	made := decoded[object](w.ctl("templates", "create", "--company", companyID, "--name", "shipped",
		"--text", "Hello {{username}}, {{ order }} is on its way.", "--param", "username=there", "--param", "order", "-o", "json"))
	id := made["id"].(string)
	if made["status"] != "pending" || len(made["parameters"].([]any)) != 2 {
		t.Errorf("got %v, want it pending, with two parameters", made)
	}
	_, err := w.cache.Template(t.Context(), id)
	w.must(err)
	for verb, status := range map[string]string{"approve": chat.TemplateApproved, "reject": chat.TemplateRejected} {
		w.ctl("templates", verb, id).done()
		timetest.Until(t, "the services know that it is "+status, func() bool {
			known, err := w.cache.Template(t.Context(), id)
			return err == nil && known.Status == status
		})
	}
	if shown := w.ctl("templates", "show", id).done(); !strings.Contains(shown, "username=there, order") {
		t.Errorf("got\n%s, want the parameters", shown)
	}
	if list := decoded[[]object](w.ctl("templates", "list", "--company", companyID, "-o", "json")); len(list) != 2 {
		t.Errorf("got %v, want two", list)
	}
	create := []string{"templates", "create", "--company", companyID, "--name", "x"}
	w.ctl(append(create, "--text", "Hi", "--param", "order")...).fails(parleyctl.ExitRefused, "parameters.order does not occur in the text as {{order}}")
	w.ctl(append(create, "--text", "{{a}}", "--param", "a", "--param", "a=1")...).fails(parleyctl.ExitRefused, "parameters.a is duplicated")
	w.ctl(append(create, "--text", " ")...).fails(parleyctl.ExitRefused, "text must have")
	w.ctl(create...).fails(parleyctl.ExitUsage, "--text or --text-file")
	w.ctl("templates", "approve", companyID).fails(parleyctl.ExitNotFound, "Template not found")
}

func TestTokens(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seed()
	made := w.ctl("tokens", "create", "--company", companyID, "--name", "CRM", "--expires", "90d", "-o", "json")
	view := decoded[object](made)
	secret := view["secret"].(string)
	hash, ok := credential.HashAccessToken(secret)
	if !ok || view["id"] != hash || view["expiresAt"] != "2027-02-19T12:00:00.000Z" || strings.Contains(made.errors, secret) {
		t.Fatalf("got %v and %q", view, made.errors)
	}
	table := w.ctl("tokens", "create", "--company", companyID, "--name", "ERP", "--expires", "2027-01-31").done()
	if !strings.Contains(table, "secret   pat_") || !strings.Contains(table, "2027-01-31T00:00:00.000Z") {
		t.Errorf("got\n%s, want the secret and the end", table)
	}
	known, err := w.cache.AccessToken(t.Context(), hash)
	if err != nil || !known.Valid(noon) || known.Name != "CRM" {
		t.Fatalf("got %+v, %v, want a token that holds", known, err)
	}
	for _, r := range []result{w.ctl("tokens", "list", "--company", companyID), w.ctl("tokens", "list", "--company", companyID, "-o", "json")} {
		if strings.Contains(r.done(), secret) || !strings.Contains(r.out, known.Prefix) || !strings.Contains(r.out, "active") {
			t.Errorf("%s: got %s, want the prefix and not the secret", r.args, r.out)
		}
	}

	w.ctl("tokens", "revoke", known.Prefix).fails(parleyctl.ExitUsage, "--yes")
	if r := w.ctlIn("n\n", true, "tokens", "revoke", known.Prefix); r.code != parleyctl.ExitFailed || !strings.Contains(r.errors, "Revoke the token "+known.Prefix+" (CRM)") {
		t.Errorf("declined: got code %d, %q", r.code, r.errors)
	}
	if still, err := w.store.AccessToken(t.Context(), hash); err != nil || !still.Valid(noon) {
		t.Fatalf("got %+v, %v, want it to hold still", still, err)
	}
	if out := w.ctlIn("yes\n", true, "tokens", "revoke", hash[:8]).done(); !strings.Contains(out, "revoked") {
		t.Errorf("got %s, want it revoked", out)
	}
	timetest.Until(t, "the services refuse it", func() bool {
		known, err := w.cache.AccessToken(t.Context(), hash)
		return err == nil && !known.Valid(noon)
	})
	for _, name := range []string{hash[:7], "%%%%%%%%"} {
		w.ctl("tokens", "revoke", name, "-y").fails(parleyctl.ExitNotFound, "No access token is named "+name)
	}
	w.ctl("tokens", "revoke", "pat_nobody", "-y").fails(parleyctl.ExitNotFound, "No access token is named pat_nobody")
	w.ctl("tokens", "create", "--company", companyID, "--name", "x", "--expires", "2020-01-01").fails(parleyctl.ExitRefused, "expiresAt must be in the future")
	w.ctl("tokens", "create", "--company", companyID, "--name", "x", "--expires", "soon").fails(parleyctl.ExitUsage, "--expires")
	w.ctl("tokens", "create", "--company", appID, "--name", "x").fails(parleyctl.ExitNotFound, "Company not found")
}

func TestChats(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seed()
	ada := w.open(chat.Visitor{AppID: appID, FirstName: "Ada", Email: "ada@example.com"}, chat.ChannelWidget, noon.Add(-time.Hour))
	old := w.open(chat.Visitor{AppID: appID, FirstName: "Bo"}, chat.ChannelWidget, noon.Add(-48*time.Hour))
	for i, m := range []chat.Message{
		message(noon.Add(-30*time.Minute), "Where is my order?", false), message(noon.Add(-29*time.Minute), "On its way\x1b[2J\nnow", true),
	} {
		m.ID = "01939f3c-8a4e-7c7b-9a53-00000000000" + string(rune('0'+i))
		w.must(w.store.AppendMessage(t.Context(), ada.ID, m))
	}
	w.ctl("chats", "list", "--app", appID).prints(`
ID                                    STATUS   CHANNEL  APPLICATION                           VISITOR                               CREATED                   WINDOW
` + ada.ID + `  active   widget   ` + appID + `  ` + ada.ChatUserID + `  2026-11-21T11:00:00.000Z  open until 2026-11-22T11:30:00.000Z
` + old.ID + `  pending  widget   ` + appID + `  ` + old.ChatUserID + `  2026-11-19T12:00:00.000Z  expired 2026-11-20T12:00:00.000Z`)
	for args, want := range map[string]string{
		"--company " + companyID:        ada.ID + old.ID,
		"--company " + appID:            "",
		"--visitor " + old.ChatUserID:   old.ID,
		"--status active":               ada.ID,
		"--status closed":               "",
		"--limit 1":                     ada.ID,
		"--limit 1 --after " + ada.ID:   old.ID,
		"--app " + appID + " --limit 0": ada.ID + old.ID,
	} {
		got := ""
		for _, c := range decoded[[]object](w.ctl(append([]string{"chats", "list", "-o", "json"}, strings.Fields(args)...)...)) {
			got += c["id"].(string)
		}
		if got != want {
			t.Errorf("%s: got %q, want %q", args, got, want)
		}
	}
	w.ctl("chats", "list", "--app", appID, "--email", "nobody@example.com").fails(parleyctl.ExitNotFound, "Visitor not found")
	w.ctl("chats", "list", "--email", "ada@example.com").fails(parleyctl.ExitUsage, "--app")
	w.ctl("chats", "list", "--status", "open").fails(parleyctl.ExitUsage, "--status")

	w.ctl("chats", "show", ada.ID).prints(`
id               ` + ada.ID + `
status           active
channel          widget
company          ` + companyID + `
application      ` + appID + `
visitor          ` + ada.ChatUserID + `
name             Ada
email            ada@example.com
created          2026-11-21T11:00:00.000Z
visitor wrote    2026-11-21T11:30:00.000Z
windowExpiresAt  2026-11-22T11:30:00.000Z
in window        yes
idle closes      2026-12-21T11:30:00.000Z

TIME                      ID                                    FROM             TYPE  TEXT
2026-11-21T11:30:00.000Z  01939f3c-8a4e-7c7b-9a53-000000000000  Ada              TEXT  Where is my order?
2026-11-21T11:31:00.000Z  01939f3c-8a4e-7c7b-9a53-000000000001  Polly (support)  TEXT  On its way [2J now`)
	shown := decoded[object](w.ctl("chats", "show", ada.ID, "--messages", "1", "-o", "json"))
	if messages := shown["messages"].([]any); len(messages) != 1 || shown["messageCount"] != 2.0 || shown["windowExpiresAt"] != "2026-11-22T11:30:00.000Z" ||
		shown["inWindow"] != true || messages[0].(object)["isFromSupport"] != true {
		t.Errorf("got %v, want the window and the last message", shown)
	}

	if _, err := w.cache.Chat(t.Context(), ada.ID); err != nil {
		t.Fatal(err)
	}
	w.ctl("chats", "close", ada.ID).fails(parleyctl.ExitUsage, "--yes")
	if out := w.ctl("chats", "close", ada.ID, "--yes").done(); !strings.Contains(out, "closed") {
		t.Errorf("got %s, want it closed", out)
	}
	timetest.Until(t, "the services know that it is closed", func() bool {
		c, err := w.cache.Chat(t.Context(), ada.ID)
		return err == nil && !c.Open(noon)
	})
	w.ctl("chats", "close", companyID, "--yes").fails(parleyctl.ExitNotFound, "Chat not found")
	w.ctl("reply", ada.ID, "too late").fails(parleyctl.ExitRefused, "The chat is closed")
}

func TestReply(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seed()
	c := w.open(chat.Visitor{AppID: appID}, chat.ChannelWidget, noon.Add(-48*time.Hour))
	phone := w.open(chat.Visitor{Phone: "+491701234567", FirstName: "Bo"}, chat.ChannelPhone, noon)
	heard := bustest.Collect(t, w.natsURL, "chat.>")

	r := w.ctl("reply", c.ID, "I am looking into it.", "--name", "Grace", "-o", "json")
	sent := decoded[object](r)
	if !strings.Contains(r.errors, "The window expired at 2026-11-20T12:00:00.000Z") {
		t.Errorf("got %q, want a note about the window", r.errors)
	}
	m := heard.Next()
	e, err := event.Decode[event.Reply](m.Subject, m.Data)
	w.must(err)
	if e.ChatID != c.ID || e.Message.ID != sent["messageId"] || e.Message.NameOfSender != "Grace" || !e.Message.IsFromSupport ||
		string(e.Message.Data) != `{"text":"I am looking into it."}` || m.Header.Get("ce-source") != "/parleyctl" || m.Subject != subject.Reply(appID, c.ChatUserID) {
		t.Errorf("got %s with %v", m.Data, m.Header)
	}

	const data = `{"body":"Pick", "buttons":[{"type":"reply","title":"A","payload":"a"}], "own": 1.50}`
	w.ctl("reply", phone.ID, "--type", "INTERACTIVE", "--data", w.file(data+"\n")).done()
	m = heard.Next()
	out, err := event.Decode[event.OutboundMessage](m.Subject, m.Data)
	w.must(err)
	if out.Recipient != (event.Recipient{Phone: "+491701234567", Name: "Bo"}) || string(out.Message.Data) != data || out.Message.Type != chat.Interactive {
		t.Errorf("got %s", m.Data)
	}

	w.ctlIn(`{"text":"x","choices":[{"title":""}]}`, false, "reply", c.ID, "--type", "MULTIPLE_CHOICE", "--data", "-").fails(parleyctl.ExitRefused, "data.choices[0].title")
	w.ctl("reply", c.ID, " ").fails(parleyctl.ExitRefused, "data.text")
	w.ctl("reply", c.ID, "x", "--type", "TEMPLATE").fails(parleyctl.ExitUsage, "--type")
	w.ctl("reply", c.ID).fails(parleyctl.ExitUsage, "TEXT")
	w.ctl("reply", c.ID, "x", "--data", "y").fails(parleyctl.ExitUsage, "TEXT")
	w.ctl("reply", companyID, "x").fails(parleyctl.ExitNotFound, "Chat not found")
	if n := heard.Pending(); n != 0 {
		t.Errorf("got %d more events, want none", n)
	}
}

// A revocation is in the store, in the stream for the gateways, and announced to the caches.
func TestVisitors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.seed()
	registered, err := w.store.Register(t.Context(), store.Registration{Identities: []store.Identity{{Scope: appID, Kind: store.KindEmail, Value: "ada@example.com"}}, Visitor: chat.Visitor{CompanyID: companyID, AppID: appID, FirstName: "Ada", Email: "ada@example.com"}})
	id := registered.Visitor.ID
	w.must(err)
	if _, err := w.cache.Visitor(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	shown := decoded[object](w.ctl("visitors", "show", id, "-o", "json"))
	if shown["email"] != "ada@example.com" || shown["tokensValidFrom"] != nil {
		t.Errorf("got %v, want Ada, with no token revoked", shown)
	}
	w.ctl("visitors", "revoke", id).fails(parleyctl.ExitUsage, "--yes")
	revoked := decoded[object](w.ctl("visitors", "revoke", id, "--yes", "-o", "json"))
	if want := "2026-11-21T12:00:01.000Z"; revoked["tokensValidFrom"] != want {
		t.Errorf("got %v, want tokens to hold from %s: iat counts in seconds", revoked["tokensValidFrom"], want)
	}
	stream, err := w.bus.Stream(t.Context(), subject.Revocations)
	w.must(err)
	kept, err := stream.GetLastMsgForSubject(t.Context(), subject.Revocation(companyID, id))
	w.must(err)
	if string(kept.Data) != "2026-11-21T12:00:01Z" {
		t.Errorf("got %s in the stream, want the same time", kept.Data)
	}
	timetest.Until(t, "the services receive it", func() bool {
		v, err := w.cache.Visitor(t.Context(), id)
		w.must(err)
		return !v.TokensValidFrom.IsZero()
	})
	w.ctl("visitors", "revoke", appID, "--yes").fails(parleyctl.ExitNotFound, "isitor not found")
	w.ctl("visitors", "show", "x").fails(parleyctl.ExitUsage, "UUID")
}
