package mongodb_test

import (
	"fmt"
	"strconv"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/idempotency"
	"github.com/parley-chat/parley/pkg/knowledge"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/webhook"
)

// step is a call of the contract and the maximum number of its commands.
type step struct {
	name  string
	trips int
	call  func() error
}

// allSteps calls every method of the contract that issues a command, in an order that creates the data for the next.
func allSteps(t testing.TB, s store.Store) []step {
	ctx := t.Context()
	company, hash, visitorID := uuid.NewString(), "0123456789abcdef", ""
	token := chat.AccessToken{Hash: hash, CompanyID: company, Name: "ci", Prefix: "parley_0123", CreatedAt: at(0)}
	app := chat.Application{ID: "app", CompanyID: company, Provider: chat.ProviderWidget, WidgetConfigs: []byte(`{}`)}
	identity := []store.Identity{{Scope: "app", Kind: store.KindEmail, Value: "ada@example.com"}}
	var v chat.Visitor
	var c chat.Chat
	open := func() (err error) {
		c, _, err = s.OpenChat(ctx, v, store.NewChat{Channel: chat.ChannelWidget, Now: at(0), Greetings: []chat.Message{text("greeting", at(0), true)}})
		v.ChatNumber = 1
		return err
	}
	save := func() error {
		r, err := s.Register(ctx, store.Registration{Visitor: chat.Visitor{ID: visitorID, CompanyID: company, AppID: "app", FirstName: "Ada"}})
		v = r.Visitor
		return err
	}
	register := func() error {
		r, err := s.Register(ctx, store.Registration{Identities: identity, Visitor: chat.Visitor{CompanyID: company, AppID: "app", FirstName: "Ada"}})
		visitorID = r.Visitor.ID
		return err
	}
	message, answer := text("m", at(1), false), text("a", at(2), true)
	history := func(q store.HistoryQuery) func() error {
		return func() error { _, _, err := s.History(ctx, c.ID, q); return err }
	}
	record := idempotency.Record{ID: "key", Fingerprint: "f", MessageID: "m", At: at(0), LeasedUntil: at(10), ExpiresAt: time.Now().Add(time.Hour)}
	chatsOf := func(f store.ChatFilter, p store.Page) func() error {
		return func() error { _, err := s.Chats(ctx, f, p); return err }
	}
	inbox := func(f store.InboxFilter) func() error {
		return func() error { _, _, err := s.Inbox(ctx, f, store.InboxPage{}); return err }
	}
	hook := webhook.Endpoint{ID: "endpoint", CompanyID: company, URL: "https://example.com", Secrets: []webhook.Secret{webhook.NewSecret(webhook.HMAC, at(0))}}
	delivery := webhook.Delivery{
		ID: "delivery", CompanyID: company, EndpointID: hook.ID, OrderKey: "chat", OrderNumber: 1, CreatedAt: at(0), Status: webhook.Pending, DueAt: at(0),
	}
	used, questions := bots.UsageOf{AppID: "app", Day: bots.Day(time.Now())}, bots.Amount{Questions: 2}
	spend := func(n int) func() error {
		return func() error { _, _, err := s.SpendBot(ctx, used, bots.Amount{Questions: n}, questions); return err }
	}
	call := bots.Call{ID: uuid.Must(uuid.NewV7()).String(), CompanyID: company, AppID: "app", ChatID: "chat", At: time.Now()}
	action := bots.Action{
		ID: "action", CompanyID: company, AppID: "app", ChatID: "chat", Arguments: "{}", AskedAt: time.Now(), State: bots.ActionAsked,
	}
	add := func() error { _, err := s.AddBotAction(ctx, action); return err }
	callsAfter := func(id string) func() error {
		return func() error { _, err := s.BotCalls(ctx, "app", store.Page{After: id, Limit: 10}); return err }
	}
	guide := knowledge.Document{ID: "guide", CompanyID: company, Title: "Guide", Format: knowledge.Text, Text: "ladder", Bytes: 6, Source: knowledge.Source{RefreshHours: 1, DueAt: at(0)}}
	ladder := []knowledge.Passage{{DocumentID: guide.ID, CompanyID: company, Number: 1, Title: guide.Title, Text: guide.Text}}
	ranking := knowledge.Settings{CompanyID: company, ConnectionID: "connection", Model: "small"}
	put := func(revision int64) func() error {
		return func() error {
			guide.Revision = revision
			return s.PutDocument(ctx, guide, ladder)
		}
	}
	conflicting := func(call func() error) func() error {
		return func() error {
			if err := call(); !apperr.Is(err, apperr.Conflict) {
				return fmt.Errorf("got %w, want Conflict", err)
			}
			return nil
		}
	}
	search := func(question string) func() error {
		return func() error { _, err := s.SearchPassages(ctx, company, knowledge.Terms(question), 5); return err }
	}
	session := account.Session{ID: "session", UserID: "user", CreatedAt: at(0), ExpiresAt: time.Now().Add(time.Hour)}
	steps := []step{
		{"ready", 1, func() error { return s.Ready(ctx) }},
		{"put a new company", 2, func() error { return s.PutCompany(ctx, chat.Company{ID: company, Name: "Acme"}) }},
		{"put a known company", 1, func() error { return s.PutCompany(ctx, chat.Company{ID: company, Name: "Acme Ltd"}) }},
		{"company", 1, func() error { _, err := s.Company(ctx, company); return err }},
		{"companies", 1, func() error { _, err := s.Companies(ctx, store.Page{Limit: 10}); return err }},
		{"companies, next page", 1, func() error { _, err := s.Companies(ctx, store.Page{After: "0", Limit: 10}); return err }},

		{"create an access token", 2, func() error { return s.CreateAccessToken(ctx, token) }},
		{"access token", 1, func() error { _, err := s.AccessToken(ctx, hash); return err }},
		{"access tokens", 1, func() error { _, err := s.AccessTokens(ctx, company, store.Page{}); return err }},
		{"access tokens, next page", 2, func() error { _, err := s.AccessTokens(ctx, company, store.Page{After: hash}); return err }},
		{"use an access token", 1, func() error { return s.ChangeAccessToken(ctx, hash, store.TokenChange{UsedAt: at(1)}) }},
		{"expire an access token", 1, func() error { return s.ChangeAccessToken(ctx, hash, store.TokenChange{ExpiresAt: at(1)}) }},
		{"revoke an access token", 1, func() error { return s.ChangeAccessToken(ctx, hash, store.TokenChange{RevokedAt: at(1)}) }},

		{"delete an access token", 1, func() error { return s.DeleteAccessToken(ctx, hash) }},

		{"put a new application", 2, func() error { return s.PutApplication(ctx, app) }},
		{"put a known application", 1, func() error { return s.PutApplication(ctx, app) }},
		{"application", 1, func() error { _, err := s.Application(ctx, "app"); return err }},
		{"applications", 1, func() error { _, err := s.Applications(ctx, company, store.Page{After: "a", Limit: 10}); return err }},
		{"the ids of applications", 1, func() error {
			_, err := s.IDs(ctx, store.IDFilter{ApplicationsOf: company}, store.Page{After: "a"})
			return err
		}},
		{"all applications", 1, func() error { _, err := s.Applications(ctx, "", store.Page{}); return err }},
		{"rotate an identity secret", 2, func() error {
			err := s.ChangeApplication(ctx, "app", store.ApplicationChange{Secrets: store.RotateSecret("secret", at(0), time.Hour)})
			return err
		}},
		{"rotate an identity secret again", 2, func() error {
			err := s.ChangeApplication(ctx, "app", store.ApplicationChange{Secrets: store.RotateSecret("secret 2", at(0), time.Hour)})
			return err
		}},
		{"set the verification", 2, func() error {
			return s.ChangeApplication(ctx, "app", store.ApplicationChange{Verification: chat.VerificationRequired})
		}},

		{"put a new template", 2, func() error { return s.PutTemplate(ctx, chat.MessageTemplate{ID: "template", CompanyID: company}) }},
		{"the ids of templates", 1, func() error {
			_, err := s.IDs(ctx, store.IDFilter{TemplatesOf: company}, store.Page{After: "a"})
			return err
		}},
		{"template", 1, func() error { _, err := s.Template(ctx, "template"); return err }},
		{"templates", 1, func() error { _, err := s.Templates(ctx, company, store.Page{After: "a"}); return err }},

		{"register a new visitor", 5, register},
		{"register a known visitor", 3, register},
		{"find a visitor", 2, func() error { _, err := s.FindVisitor(ctx, identity[0]); return err }},
		{"save a known visitor", 1, save},
		{"visitor", 1, func() error { _, err := s.Visitor(ctx, visitorID); return err }},
		{"revoke a visitor's tokens", 1, func() error { return s.RevokeVisitorTokens(ctx, visitorID, at(0)) }},

		{"open a new chat", 4, open},
		{"open the open chat", 1, open},
		{"inbox", 2, inbox(store.InboxFilter{CompanyID: company})},
		{"waiting chats", 1, inbox(store.InboxFilter{CompanyID: company, Waiting: true})},
		{"inbox of an application", 2, inbox(store.InboxFilter{CompanyID: company, AppID: "app"})},
		{"inbox of a profile that nobody has", 1, inbox(store.InboxFilter{CompanyID: company, Profile: store.Profile{Email: "ada@example.com"}})},
		{"current chat", 1, func() error { _, err := store.CurrentChat(ctx, s, v, at(0)); return err }},
		{"chat", 1, func() error { _, err := s.Chat(ctx, c.ID); return err }},
		{"chats", 1, chatsOf(store.ChatFilter{}, store.Page{Limit: 10})},
		{"chats of a company", 1, chatsOf(store.ChatFilter{CompanyID: company, Status: chat.Pending, Now: at(0)}, store.Page{Limit: 10})},
		{"chats of an application", 1, chatsOf(store.ChatFilter{CompanyID: company, AppID: "app"}, store.Page{})},
		{"chats of a visitor", 1, func() error {
			return chatsOf(store.ChatFilter{CompanyID: company, AppID: "app", ChatUserID: visitorID}, store.Page{})()
		}},
		{"chats, next page", 2, func() error {
			return chatsOf(store.ChatFilter{CompanyID: company}, store.Page{After: c.ID, Limit: 10})()
		}},

		{"append a visitor's message", 2, func() error { return s.AppendMessage(ctx, c.ID, message) }},
		{"append a company's message", 2, func() error { return s.AppendMessage(ctx, c.ID, answer) }},
		{"append a message again", 3, func() error { return s.AppendMessage(ctx, c.ID, message) }},
		{"history", 1, func() error { return history(store.HistoryQuery{})() }},
		{"the newest page", 1, func() error { return history(store.HistoryQuery{Limit: 2})() }},
		{"an earlier page", 2, func() error { return history(store.HistoryQuery{Before: "a", Limit: 10, MaxBytes: 1})() }},
		{"find a message", 1, func() error { _, _, err := s.FindMessage(ctx, "m"); return err }},

		{"join a new status", 2, func() error {
			_, err := s.JoinMessageStatus(ctx, company, "a", chat.MessageStatus{AcceptedAt: at(1)})
			return err
		}},
		{"join a known status", 1, func() error {
			_, err := s.JoinMessageStatus(ctx, company, "a", chat.MessageStatus{ChatID: c.ID, Failure: chat.Failure{At: at(3), Reason: "full"}})
			return err
		}},
		{"message status", 1, func() error { _, err := s.MessageStatus(ctx, company, "a"); return err }},

		{"await the first receipts", 3, func() error { _, err := s.AwaitReceipts(ctx, c.ID, answer, false); return err }},
		{"await receipts", 1, func() error { _, err := s.AwaitReceipts(ctx, c.ID, text("b", at(3), true), false); return err }},
		{"read up to", 2, func() error { _, err := s.ReadUpTo(ctx, c.ID, answer, at(4)); return err }},
		{"a chat's receipts", 1, func() error { _, err := s.ChatReceipts(ctx, c.ID); return err }},
		{"unread", 1, func() error { _, err := s.CountUnread(ctx, c.ID, true, chat.ReadCursor{}, 9); return err }},
		{"note a receipt", 1, func() error { return s.NoteReceipt(ctx, c.ID, "a", true) }},

		{"insert an idempotency record", 1, func() error { _, _, err := s.InsertIdempotencyRecord(ctx, record); return err }},
		{"insert an idempotency record again", 2, func() error { _, _, err := s.InsertIdempotencyRecord(ctx, record); return err }},
		{"lease", 1, func() error { _, err := s.LeaseIdempotencyRecord(ctx, "key", at(20)); return err }},
		{"end a lease", 1, func() error { _, err := s.EndIdempotencyLease(ctx, "key", ""); return err }},
		{"replace", 1, func() error { return s.ReplaceIdempotencyRecord(ctx, record) }},
		{"answer", 1, func() error { _, err := s.EndIdempotencyLease(ctx, "key", "first"); return err }},
		{"answer again", 2, func() error { _, err := s.EndIdempotencyLease(ctx, "key", "second"); return err }},

		{"put a file", 1, func() error {
			return s.PutFile(ctx, chat.StoredFile{ID: "file", AppID: "app", ChatUserID: visitorID, Size: 10, CreatedAt: at(0)})
		}},
		{"a visitor's files", 1, func() error { _, err := s.FileUsage(ctx, store.FileOwner{Sender: visitorID}, at(0)); return err }},
		{"an address's files", 1, func() error { _, err := s.FileUsage(ctx, store.FileOwner{Address: "192.0.2.1"}, at(0)); return err }},
		{"an application's files", 1, func() error { _, err := s.FileUsage(ctx, store.FileOwner{Application: "app"}, at(0)); return err }},
		{"the ids of a visitor's files", 1, func() error {
			_, err := s.IDs(ctx, store.IDFilter{FilesOf: visitorID}, store.Page{After: "a"})
			return err
		}},
		{"delete a file", 1, func() error { return s.DeleteFile(ctx, "file") }},
		{"create a session", 2, func() error { return s.CreateSession(ctx, session) }},
		{"a user's sessions", 1, func() error { _, err := s.UserSessions(ctx, "user", store.Page{}); return err }},
		{"a user's sessions, next page", 2, func() error { _, err := s.UserSessions(ctx, "user", store.Page{After: session.ID}); return err }},
		{"a company's users", 1, func() error { _, err := s.Users(ctx, company, store.Page{After: "a"}); return err }},
		{"the audit log", 1, func() error {
			_, err := s.AuditEntries(ctx, store.AuditFilter{CompanyID: company}, store.Page{After: "a"})
			return err
		}},
		{"find visitors", 1, func() error { _, _, err := s.FindVisitors(ctx, company, "ada", store.Page{After: "a"}); return err }},
		{"ratings", 1, func() error { _, err := s.Ratings(ctx, company, at(0), store.Page{After: "a"}); return err }},
		{"create a webhook endpoint", 2, func() error { return s.CreateWebhookEndpoint(ctx, hook) }},
		{"webhook endpoint", 1, func() error { _, err := s.WebhookEndpoint(ctx, hook.ID); return err }},
		{"webhook endpoints", 1, func() error { _, err := s.WebhookEndpoints(ctx, company, store.Page{}); return err }},
		{"update a webhook endpoint", 1, func() error { return s.UpdateWebhookEndpoint(ctx, hook) }},
		{"insert a webhook delivery", 1, func() error { _, err := s.InsertWebhookDelivery(ctx, delivery); return err }},
		{"webhook delivery", 1, func() error { _, err := s.WebhookDelivery(ctx, delivery.ID); return err }},
		{"webhook deliveries of an endpoint", 2, func() error {
			_, _, err := s.WebhookDeliveries(ctx, store.WebhookFilter{EndpointID: hook.ID, From: at(0), Status: webhook.Pending}, store.Page{Limit: 10})
			return err
		}},
		{"webhook deliveries, next page", 2, func() error {
			_, _, err := s.WebhookDeliveries(ctx, store.WebhookFilter{CompanyID: company}, store.Page{After: delivery.ID, Limit: 10})
			return err
		}},
		{"stored webhook bytes", 1, func() error { _, err := s.StoredWebhookBytes(ctx, company); return err }},
		{"companies with due webhook deliveries", 1, func() error { _, err := s.DueWebhookCompanies(ctx, at(1)); return err }},
		{"due webhook deliveries", 1, func() error {
			_, err := s.DueWebhookDeliveries(ctx, company, at(1), []string{"other"}, 10)
			return err
		}},
		{"claim a webhook delivery", 1, func() error { _, _, err := s.ClaimWebhookDelivery(ctx, delivery.ID, at(1), at(2)); return err }},
		{"postpone a webhook delivery", 1, func() error { return s.EndWebhookAttempt(ctx, delivery.ID, nil, webhook.Postponed(at(3))) }},
		{"first webhook delivery of an order", 1, func() error { _, err := s.FirstWebhookDelivery(ctx, hook.ID, "chat"); return err }},
		{"end a webhook attempt", 1, func() error {
			return s.EndWebhookAttempt(ctx, delivery.ID, &webhook.Attempt{At: at(2)}, webhook.Outcome{Status: webhook.Failed})
		}},
		{"end a late webhook attempt", 2, func() error {
			return s.EndWebhookAttempt(ctx, delivery.ID, &webhook.Attempt{At: at(2)}, webhook.Outcome{Status: webhook.Pending})
		}},
		{"replay a webhook delivery", 1, func() error { _, err := s.ReplayWebhookDelivery(ctx, delivery.ID, at(3)); return err }},
		{"delete a webhook endpoint", 2, func() error { return s.DeleteWebhookEndpoint(ctx, hook.ID) }},
		{"a first question above the bound", 2, spend(3)},
		{"a first question", 2, spend(1)},
		{"a question", 1, spend(1)},
		{"a question above the bound", 3, spend(1)},
		{"an application's usage", 1, func() error { _, err := s.BotUsage(ctx, "app", used.Day); return err }},
		{"append a call", 1, func() error { return s.AppendBotCall(ctx, call) }},
		{"append a call again", 1, func() error { return s.AppendBotCall(ctx, call) }},
		{"ask about an action", 1, add},
		{"ask about an action again", 2, add},
		{"an action", 1, func() error { _, err := s.BotAction(ctx, action.ID); return err }},
		{"move an action", 1, func() error { return s.MoveBotAction(ctx, action, bots.ActionAsked) }},
		{"calls", 1, callsAfter("")},
		{"calls, next page", 1, callsAfter(call.ID)},
		{"put a new document", 3, put(0)},
		{"put a new document again", 5, conflicting(put(0))},
		{"put a known document", 3, put(1)},
		{"put a document of before", 6, conflicting(put(1))},
		{"document", 1, func() error { _, err := s.Document(ctx, guide.ID); return err }},
		{"documents", 1, func() error { _, err := s.Documents(ctx, company, store.Page{}); return err }},
		{"documents, next page", 1, func() error { _, err := s.Documents(ctx, company, store.Page{After: "a"}); return err }},
		{"usage of documents", 1, func() error { _, err := s.DocumentUsage(ctx, company); return err }},
		{"search passages", 4, search("ladder")},
		{"search passages with an unknown word", 5, search("ladder hammer")},
		{"search passages in vain", 1, search("hammer")},
		{"due documents", 1, func() error { _, err := s.DueDocuments(ctx, at(1), []string{"other"}, 10); return err }},
		{"claim a document", 1, func() error { _, _, err := s.ClaimDocument(ctx, guide.ID, at(1), at(2)); return err }},
		{"put the source of a document", 1, func() error { return s.PutDocumentSource(ctx, guide.ID, guide.Revision+1, guide.Source) }},
		{"passages without embeddings", 1, func() error { _, err := s.UnembeddedPassages(ctx, company, "small", 9); return err }},
		{"put embeddings", 1, func() error { return s.PutEmbeddings(ctx, ladder) }},
		{"the progress of embeddings", 2, func() error { _, err := s.EmbeddingProgress(ctx, company, "small"); return err }},
		{"knowledge settings of no company", 1, func() error { _, err := s.KnowledgeSettings(ctx, company); return err }},
		{"put new knowledge settings", 1, func() error { return s.PutKnowledgeSettings(ctx, ranking) }},
		{"knowledge settings", 1, func() error { _, err := s.KnowledgeSettings(ctx, company); return err }},
		{"all knowledge settings", 1, func() error { _, err := s.AllKnowledgeSettings(ctx, store.Page{}); return err }},
		{"all knowledge settings, next page", 1, func() error { _, err := s.AllKnowledgeSettings(ctx, store.Page{After: "a"}); return err }},
		{"claim embeddings", 1, func() error {
			_, err := s.ClaimEmbedding(ctx, company, at(0), knowledge.Work{Until: at(1)})
			return err
		}},
		{"delete a document", 2, func() error { return s.DeleteDocument(ctx, guide.ID) }},
		{"close a chat", 1, func() error { _, err := s.ChangeChat(ctx, c.ID, store.ChatChange{ClosedAt: at(9)}); return err }},
		{"open the next chat", 5, open},
	}
	for _, kind := range store.Kinds() {
		trips := 1
		if kind == "identities" {
			trips = 2
		}
		steps = append(steps,
			step{"read " + string(kind), trips, func() error { _, err := s.ReadRecords(ctx, kind, "", 10); return err }},
			step{"read more " + string(kind), 1, func() error { _, err := s.ReadRecords(ctx, kind, "~", 10); return err }},
		)
	}
	return steps
}

// manyMessages appends enough messages for several of the driver's default batches.
func manyMessages(t testing.TB, s store.Store, chatID string, n int) {
	t.Helper()
	for i := range n {
		ok(t, s.AppendMessage(t.Context(), chatID, text("many-"+strconv.Itoa(i), at(100+i), true)))
	}
}
