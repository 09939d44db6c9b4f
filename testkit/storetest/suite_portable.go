package storetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/idempotency"
	"github.com/parley-chat/parley/pkg/knowledge"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/webhook"
)

// Fill writes records of every kind.
func Fill(t testing.TB, s store.Store) {
	t.Helper()
	ctx := t.Context()
	company := chat.Company{ID: newID(), Name: "Company <é>", WebhookRetention: time.Hour}
	must(t, s.PutCompany(ctx, company))
	for range 2 {
		must(t, s.PutBot(ctx, answerer(company.ID)))
		must(t, s.PutModelConnection(ctx, connection(company.ID)))
		must(t, s.PutKnowledgeSettings(ctx, knowledge.Settings{CompanyID: newID(), ConnectionID: newID(), Model: "small <é>"}))
		d := document(company.ID)
		must(t, s.PutDocument(ctx, d, knowledge.Cut(d)))
		e := endpoint(company.ID)
		must(t, s.CreateWebhookEndpoint(ctx, e))
		e.ID, e.Events, e.DisabledAt, e.DisabledReason = newID(), []string{webhook.TypeChatOpened}, noon, webhook.DisabledGone
		e.Headers = map[string]string{"X-A": "a", "B": "<"}
		must(t, s.CreateWebhookEndpoint(ctx, e))
		sent := delivery(e, 7)
		get[bool](t)(s.InsertWebhookDelivery(ctx, sent))
		sent.ID, sent.OrderKey, sent.ChatID = newID(), "chat", "chat"
		get[bool](t)(s.InsertWebhookDelivery(ctx, sent))
		must(t, s.EndWebhookAttempt(ctx, sent.ID, &webhook.Attempt{At: noon, URL: e.URL, Duration: time.Second, Error: "é"},
			webhook.Outcome{Status: webhook.Failed, Reason: webhook.ReasonGone, ExpiresAt: time.Now().Add(time.Hour)}))
	}
	for i := range 3 {
		must(t, s.CreateAccessToken(ctx, chat.AccessToken{Hash: newID(), CompanyID: company.ID, Name: "t", Prefix: fmt.Sprint("pat_", i), CreatedAt: noon, CreatedBy: "ada@example.com"}))
	}
	for range 3 {
		app := chat.Application{ID: newID(), CompanyID: company.ID, WidgetConfigs: json.RawMessage(`{"n":1e999, "x":1,"x":"\u00e9"}`)}
		must(t, s.PutApplication(ctx, app))
		app.ID, app.AllowedOrigins, app.FileRetention = newID(), []string{"https://a.example"}, time.Hour
		must(t, s.PutApplication(ctx, app))
		must(t, s.ChangeApplication(ctx, app.ID, store.ApplicationChange{Secrets: store.RotateSecret("first", noon, time.Hour)}))
		must(t, s.ChangeApplication(ctx, app.ID, store.ApplicationChange{Secrets: store.RotateSecret("second", noon, time.Hour)}))
		must(t, s.ChangeApplication(ctx, app.ID, store.ApplicationChange{Verification: chat.VerificationSession}))
	}
	must(t, s.PutTemplate(ctx, chat.MessageTemplate{ID: newID(), CompanyID: company.ID, Parameters: []chat.TemplateParameter{{Name: "a", Default: "b"}}}))
	must(t, s.PutTemplate(ctx, chat.MessageTemplate{ID: newID(), CompanyID: company.ID}))
	for i := range 4 {
		user := account.NewUser(fmt.Sprintf("%d@%s.example", i, company.ID), "Ada <é>", account.Agent, company.ID, noon)
		user.InvitationHash, user.InvitationExpiresAt = "h", noon
		must(t, s.CreateUser(ctx, user))
		entry := uuid.Must(uuid.NewV7()).String() // a random id may be that of an expired entry
		must(t, s.AppendAuditEntry(ctx, account.AuditEntry{ID: entry, CompanyID: company.ID, At: time.Now(), User: "ada", After: json.RawMessage(`{"n":1e999, "x":1}`)}))
		v := get[store.Registered](t)(s.Register(ctx, store.Registration{Identities: []store.Identity{{Scope: newID(), Kind: store.KindEmail, Value: fmt.Sprintf("%d@é.example", i), Proved: i%2 == 0}}, Visitor: chat.Visitor{CompanyID: company.ID, AppID: newID(), FirstName: "Ada", VerifiedBy: store.KindEmail}})).Visitor
		must(t, s.RevokeVisitorTokens(ctx, v.ID, noon))
		for number := range 2 { // the second stays open
			c := openAs(t, s, v, store.NewChat{Channel: chat.ChannelWidget, Now: noon, Greetings: []chat.Message{fromCompany(newID(), noon)}}).chat
			m := text(newID(), noon.Add(time.Second))
			m.Data = json.RawMessage(`{"n":1e999, "x":1,"x":"\u00e9<é>"}`)
			appendAll(t, s, c.ID, m, fromCompany("odd $.|é "+newID(), noon))
			get[time.Time](t)(s.AwaitReceipts(ctx, c.ID, fromCompany("b", noon.Add(time.Second)), true))
			get[time.Time](t)(s.AwaitReceipts(ctx, c.ID, fromCompany("a.$", noon.Add(time.Minute)), false))
			if number == 0 {
				get[chat.Chat](t)(s.ChangeChat(ctx, c.ID, store.ChatChange{Control: chat.Control{
					Agent: true, Assignee: "ada", ChangedAt: noon, Handover: chat.Handover{By: chat.ByVisitor, Reason: "é", Note: "n", At: noon},
				}}))
				get[chat.Chat](t)(s.ChangeChat(ctx, c.ID, store.ChatChange{Rating: chat.Rating{Score: 4, Comment: "é", At: noon}}))
				get[chat.Chat](t)(s.ChangeChat(ctx, c.ID, store.ChatChange{Rating: chat.Rating{Score: 5, Comment: "é!", At: noon.Add(time.Minute)}}))
				get[chat.Chat](t)(s.ChangeChat(ctx, c.ID, store.ChatChange{AgentsReadAt: noon}))
				get[chat.Chat](t)(s.ChangeChat(ctx, c.ID, store.ChatChange{ClosedAt: noon}))
				get[[]string](t)(s.ReadUpTo(ctx, c.ID, m, noon))
			}
		}
		get[chat.MessageStatus](t)(s.JoinMessageStatus(ctx, company.ID, newID(), chat.MessageStatus{ReadAt: noon, Failure: chat.Failure{At: noon, Reason: "a b"}}))
		insertRecord(t, s, idempotency.Record{
			ID: newID(), Fingerprint: "f", MessageID: newID(), At: noon, ExpiresAt: time.Now().Add(time.Hour),
		})
		insertRecord(t, s, idempotency.Record{
			ID: newID(), At: noon, Leases: 2, LeasedUntil: noon, ExpiresAt: time.Now().Add(time.Hour), Answer: `{"é":1e999}`,
		})
		must(t, s.PutFile(ctx, chat.StoredFile{ID: newID(), CompanyID: company.ID, AppID: newID(), ChatUserID: v.ID, Size: 1 << 40, CreatedAt: noon}))
		must(t, s.PutFile(ctx, chat.StoredFile{ID: newID(), ChatUserID: v.ID, Address: "2001:db8::/64", ExpiresAt: time.Now().Add(time.Hour)}))
	}
}

// insertRecord adds a new record.
func insertRecord(t testing.TB, s store.Store, r idempotency.Record) {
	t.Helper()
	_, inserted, err := s.InsertIdempotencyRecord(t.Context(), r)
	must(t, err)
	want(t, "inserted", inserted, true)
}

// Records returns all records of a kind, read in small pages.
func Records(t testing.TB, s store.Store, kind store.Kind) (all []store.Record) {
	t.Helper()
	for after := ""; ; after = all[len(all)-1].Key {
		page := get[[]store.Record](t)(s.ReadRecords(t.Context(), kind, after, 3))
		all = append(all, page...)
		if len(page) < 3 {
			return all
		}
	}
}

func testPortable(t *testing.T, open Opener) {
	from, to, ctx := open(t), open(t), t.Context()
	Fill(t, from)
	RoundTrip(t, from, to)
	if _, err := from.ReadRecords(ctx, "unknown", "", 1); err == nil {
		t.Error("an unknown kind: got no error, want one")
	}

	// The copy works as before: an open chat is found, and accepts messages.
	chats := get[[]chat.Chat](t)(to.Chats(ctx, store.ChatFilter{Status: chat.Pending, Now: noon}, store.Page{}))
	active := get[[]chat.Chat](t)(to.Chats(ctx, store.ChatFilter{Status: chat.Active, Now: noon}, store.Page{}))
	for _, c := range append(chats, active...) {
		v := get[chat.Visitor](t)(to.Visitor(ctx, c.ChatUserID))
		want(t, "a copied chat", openAs(t, to, v, store.NewChat{Channel: chat.ChannelWidget, Now: noon}), opening{chat: c})
		appendAll(t, to, c.ID, text(newID(), noon.Add(time.Hour)))
		want(t, "the copied history", walk(t, to, c.ID, store.HistoryQuery{Limit: 2})[:3], walk(t, from, c.ID, store.HistoryQuery{}))
	}
	if len(chats)+len(active) != 4 {
		t.Errorf("got %d open chats, want 4", len(chats)+len(active))
	}
}

// RoundTrip copies everything from one store to an empty one, and fails the test if they differ. Copying
// twice changes nothing.
func RoundTrip(t testing.TB, from, to store.Store) {
	t.Helper()
	ctx := t.Context()
	for _, kind := range store.Kinds() {
		records := Records(t, from, kind)
		if len(records) == 0 {
			t.Fatalf("%s: got no records, want some", kind)
		}
		if !slices.IsSortedFunc(records, func(a, b store.Record) int { return slices.Compare([]byte(a.Key), []byte(b.Key)) }) {
			t.Errorf("%s: got records out of the order of their keys", kind)
		}
		for range 2 {
			must(t, to.WriteRecords(ctx, kind, records[:1]))
			must(t, to.WriteRecords(ctx, kind, records))
		}
		want(t, string(kind)+" in the copy", Records(t, to, kind), records)
	}
}

// testCallers checks that every operation returns the context's error of a cancelled caller.
func testCallers(t *testing.T, open Opener) {
	s := open(t)
	must(t, s.Ready(t.Context()))
	c := openChat(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, call := range map[string]func() error{
		"a read":  func() error { return second(s.Chat(ctx, c.ID)) },
		"a page":  func() error { _, _, err := s.History(ctx, c.ID, store.HistoryQuery{}); return err },
		"a list":  func() error { return second(s.Companies(ctx, store.Page{})) },
		"a write": func() error { return s.AppendMessage(ctx, c.ID, text(newID(), noon)) },
		"Ready":   func() error { return s.Ready(ctx) },
	} {
		if err := call(); !errors.Is(err, context.Canceled) || apperr.Is(err, apperr.Unavailable) {
			t.Errorf("%s of a cancelled caller:  got %v, want its context's error", name, err)
		}
	}
	if all := walk(t, s, c.ID, store.HistoryQuery{}); len(all) != 0 {
		t.Errorf("a write of a cancelled caller:  got %d messages, want none", len(all))
	}
}

func second[V any](_ V, err error) error { return err }
