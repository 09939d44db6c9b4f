package storetest

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/knowledge"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/webhook"
)

// listed is a list of a store, as the cursors after its records.
type listed struct {
	name string
	page func(context.Context, store.Page) ([]string, error)
	// missing reports that an unknown cursor is NotFound.
	missing bool
}

// list returns a list of the contract; id returns the cursor after a record.
func list[V any](name string, read func(context.Context, store.Page) ([]V, error), id func(V) string) listed {
	return listed{name: name, page: func(ctx context.Context, p store.Page) (ids []string, err error) {
		records, err := read(ctx, p)
		for _, r := range records {
			ids = append(ids, id(r))
		}
		return ids, err
	}}
}

// testPages walks every list page by page: it has the records of the whole list, in its order.
func testPages(t *testing.T, open Opener) {
	s := open(t)
	for _, l := range paged(t, s) {
		whole := get[[]string](t)(l.page(t.Context(), store.Page{}))
		if len(whole) != 5 {
			t.Errorf("%s: got %d records, want 5", l.name, len(whole))
		}
		for _, size := range []int{1, 2, 5} {
			want(t, fmt.Sprintf("%s in pages of %d", l.name, size), walkPages(t, l, size), whole)
		}
		if l.missing {
			_, err := l.page(t.Context(), store.Page{After: newID(), Limit: 2})
			wantCode(t, l.name+" after an unknown record", err, apperr.NotFound)
		}
	}
}

func walkPages(t *testing.T, l listed, size int) (all []string) {
	t.Helper()
	for p := (store.Page{Limit: size}); ; p.After = all[len(all)-1] {
		page := get[[]string](t)(l.page(t.Context(), p))
		if len(page) > size {
			t.Fatalf("%s: got a page of %d records, want at most %d", l.name, len(page), size)
		}
		if all = append(all, page...); len(page) < size {
			return all
		}
	}
}

// paged stores five records of each kind that has a list, and returns the lists.
func paged(t *testing.T, s store.Store) []listed {
	t.Helper()
	ctx := t.Context()
	company, user := chat.Company{ID: newID()}, newID()
	must(t, s.PutCompany(ctx, company))
	rater := save(t, s, chat.Visitor{ID: newID(), CompanyID: newID()})
	start := store.UTC(time.Now()) // sessions expire
	for i := range 5 {
		id := newID()
		must(t, s.CreateAccessToken(ctx, chat.AccessToken{
			Hash: id, CompanyID: company.ID, Name: "token", Prefix: "pat_000000", CreatedAt: at(time.Duration(i/2) * time.Hour),
		}))
		must(
			t,
			s.PutApplication(
				ctx,
				chat.Application{ID: id, CompanyID: company.ID, Provider: chat.ProviderWidget, WidgetConfigs: []byte(`{}`)},
			),
		)
		must(t, s.PutTemplate(ctx, chat.MessageTemplate{ID: id, CompanyID: company.ID}))
		must(t, s.CreateUser(ctx, account.NewUser(id+"@example.com", "", account.Agent, company.ID, at(0))))
		must(t, s.CreateSession(ctx, account.Session{
			ID: id, UserID: user, CreatedAt: start.Add(time.Duration(i/2) * time.Second), LastSeenAt: start, ExpiresAt: start.Add(time.Hour),
		}))
		must(
			t,
			s.AppendAuditEntry(ctx, account.AuditEntry{ID: uuid.Must(uuid.NewV7()).String(), CompanyID: company.ID, At: start}),
		)
		hook := endpoint(company.ID)
		must(t, s.CreateWebhookEndpoint(ctx, hook))
		get[bool](t)(s.InsertWebhookDelivery(ctx, webhook.Delivery{
			ID: id, CompanyID: company.ID, EndpointID: hook.ID, CreatedAt: at(time.Duration(i/2) * time.Second), Status: webhook.Failed,
		}))
		must(t, s.PutBot(ctx, bots.Bot{AppID: id, CompanyID: company.ID}))
		must(t, s.PutModelConnection(ctx, connection(company.ID)))
		must(t, s.PutDocument(ctx, document(company.ID), nil))
		must(t, s.PutKnowledgeSettings(ctx, knowledge.Settings{CompanyID: id}))
		must(t, s.AppendBotCall(ctx, call(company.ID, "")))
		must(t, s.PutFile(ctx, chat.StoredFile{ID: id, ChatUserID: rater.ID, CompanyID: company.ID, CreatedAt: at(0)}))
		v := save(t, s, chat.Visitor{ID: newID(), CompanyID: company.ID, AppID: id, FirstName: "Ada"})
		rated := openAs(t, s, v, store.NewChat{Channel: chat.ChannelWidget, Now: noon}).chat
		get[chat.Chat](t)(s.ChangeChat(ctx, rated.ID, store.ChatChange{Rating: chat.Rating{Score: 1 + i, At: at(time.Minute)}}))
	}
	lists := []listed{
		list("tokens", of(s.AccessTokens, company.ID), func(t chat.AccessToken) string { return t.Hash }),
		list("applications", of(s.Applications, company.ID), func(a chat.Application) string { return a.ID }),
		list("ids of applications", of(s.IDs, store.IDFilter{ApplicationsOf: company.ID}), func(id string) string { return id }),
		list("ids of templates", of(s.IDs, store.IDFilter{TemplatesOf: company.ID}), func(id string) string { return id }),
		list("templates", of(s.Templates, company.ID), func(t chat.MessageTemplate) string { return t.ID }),
		list("users", of(s.Users, company.ID), func(u account.User) string { return u.ID }),
		list("sessions", of(s.UserSessions, user), func(s account.Session) string { return s.ID }),
		list("endpoints", of(s.WebhookEndpoints, company.ID), func(e webhook.Endpoint) string { return e.ID }),
		list("bots", of(s.Bots, company.ID), func(b bots.Bot) string { return b.AppID }),
		list("connections", of(s.ModelConnections, company.ID), func(c bots.Connection) string { return c.ID }),
		list("documents", of(s.Documents, company.ID), func(d knowledge.Document) string { return d.ID }),
		list(
			"settings of documents",
			s.AllKnowledgeSettings,
			func(k knowledge.Settings) string { return k.CompanyID },
		),
		list("calls", of(s.BotCalls, company.ID), func(c bots.Call) string { return c.ID }),
		list("files", of(s.IDs, store.IDFilter{FilesOf: rater.ID}), func(id string) string { return id }),
		list(
			"audit entries",
			of(s.AuditEntries, store.AuditFilter{CompanyID: company.ID}),
			func(e account.AuditEntry) string { return e.ID },
		),
		list(
			"deliveries",
			func(ctx context.Context, p store.Page) ([]webhook.Delivery, error) {
				found, _, err := s.WebhookDeliveries(ctx, store.WebhookFilter{CompanyID: company.ID}, p)
				return found, err
			},
			func(d webhook.Delivery) string { return d.ID },
		),
		list("chats", of(s.Chats, store.ChatFilter{CompanyID: company.ID}), func(c chat.Chat) string { return c.ID }),
		list("visitors", func(ctx context.Context, p store.Page) ([]chat.Visitor, error) {
			found, _, err := s.FindVisitors(ctx, company.ID, "ada", p)
			return found, err
		}, func(v chat.Visitor) string { return v.ID }),
		list("ratings", func(ctx context.Context, p store.Page) ([]store.Ratings, error) {
			return s.Ratings(ctx, company.ID, at(0), p)
		}, func(r store.Ratings) string { return r.AppID }),
	}
	for i := range lists {
		lists[i].missing = slices.Contains([]string{"tokens", "sessions", "deliveries", "chats"}, lists[i].name)
	}
	return lists
}

// of returns the list of one owner or filter.
func of[F, V any](
	read func(context.Context, F, store.Page) ([]V, error),
	f F,
) func(context.Context, store.Page) ([]V, error) {
	return func(ctx context.Context, p store.Page) ([]V, error) { return read(ctx, f, p) }
}

// testExamined lists records of which only the last matches, beyond what one page examines: the first page is empty
// and has a next one. All of them have the same time, which the cursor must not repeat.
func testExamined(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	hook := endpoint(newID())
	company, matching := hook.CompanyID, fmt.Sprintf("r%04d", store.MaxExamined)
	write := func(kind store.Kind, record func(id string) any) {
		t.Helper()
		var records []store.Record
		for n := range store.MaxExamined + 1 {
			id := fmt.Sprintf("r%04d", n)
			records = append(records, store.Record{Key: id, Value: record(id)})
		}
		must(t, s.WriteRecords(ctx, kind, records))
	}
	write("visitors", func(id string) any {
		return chat.Visitor{ID: id, CompanyID: company, AppID: "app", Email: id + "@example.com"}
	})
	write("webhookDeliveries", func(id string) any {
		d := webhook.Delivery{ID: id, CompanyID: company, EndpointID: hook.ID, CreatedAt: at(0), Status: webhook.Delivered}
		if id == matching {
			d.Status = webhook.Failed
		}
		return d
	})
	walk := func(of string, read func(after string) (ids []string, next string)) {
		t.Helper()
		found, next := read("")
		if len(found) > 0 || next == "" {
			t.Fatalf("%s: got %v and the cursor %q, want an empty page with a next one", of, found, next)
		}
		found, next = read(next)
		want(t, of+", the next page", found, []string{matching})
		want(t, of+", the cursor of the last page", next, "")
	}
	walk("visitors", func(after string) (ids []string, next string) {
		found, next, err := s.FindVisitors(ctx, company, matching, store.Page{After: after, Limit: 2})
		must(t, err)
		for _, v := range found {
			ids = append(ids, v.ID)
		}
		return ids, next
	})
	walk("deliveries", func(after string) (ids []string, next string) {
		failed := store.WebhookFilter{EndpointID: hook.ID, Status: webhook.Failed}
		found, next, err := s.WebhookDeliveries(ctx, failed, store.Page{After: after, Limit: 2})
		must(t, err)
		for _, d := range found {
			ids = append(ids, d.ID)
		}
		return ids, next
	})
}

// testMaxPage asks for more than a page may have.
func testMaxPage(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	visitor := newID()
	const stored = store.MaxPage + 1
	for i := range stored {
		must(t, s.PutFile(ctx, chat.StoredFile{ID: fmt.Sprintf("file-%04d", i), ChatUserID: visitor, CreatedAt: at(0)}))
	}
	for _, limit := range []int{0, stored, 1 << 30} {
		page := get[[]string](t)(s.IDs(ctx, store.IDFilter{FilesOf: visitor}, store.Page{Limit: limit}))
		want(t, fmt.Sprintf("the length of a page with the limit %d", limit), len(page), store.MaxPage)
	}
	walked := 0
	for id, err := range store.All(ctx, of(s.IDs, store.IDFilter{FilesOf: visitor}), func(id string) string { return id }) {
		must(t, err)
		want(t, "a walked record", id, fmt.Sprintf("file-%04d", walked))
		walked++
	}
	want(t, "walked records", walked, stored)
}
