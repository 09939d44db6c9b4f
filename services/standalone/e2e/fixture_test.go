package e2e

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/secret"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/store/backend"
)

// openStore opens the store of a running Parley, to set up states that no API can.
func openStore(t testing.TB, p place) store.Store {
	t.Helper()
	keys, err := secret.Load(p.Secrets)
	check(t, err)
	s, err := backend.Open(backend.Config{Store: p.store(), Keys: keys, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.Background()) })
	return s
}

// putCompany creates another company with an application, a template and an access token.
func putCompany(t testing.TB, s store.Store) (app chat.Application, template chat.MessageTemplate, secret string) {
	t.Helper()
	company := chat.Company{ID: uuid.NewString(), Name: "Another company"}
	app = chat.Application{
		ID: uuid.NewString(), CompanyID: company.ID, Provider: chat.ProviderWidget, BotName: "Bot", Name: "Chat",
		WidgetConfigs: []byte(`{"requiredFields":["phone"],"unknown":{"big":12345678901234567890.10,"a":[1, 2]}}`),
	}
	template = chat.MessageTemplate{ID: uuid.NewString(), CompanyID: company.ID, Name: "t", Status: chat.TemplateApproved, Text: "Hi"}
	check(t, s.PutCompany(t.Context(), company))
	check(t, s.PutApplication(t.Context(), app))
	check(t, s.PutTemplate(t.Context(), template))
	return app, template, putToken(t, s, company.ID, time.Time{})
}

func putToken(t testing.TB, s store.Store, companyID string, expires time.Time) (secret string) {
	t.Helper()
	secret, token := credential.NewAccessToken(companyID, "e2e", time.Now(), time.Time{})
	check(t, s.CreateAccessToken(t.Context(), token))
	check(t, s.ChangeAccessToken(t.Context(), token.Hash, store.TokenChange{ExpiresAt: expires}))
	return secret
}

// openChat opens a chat of a new visitor of the demo application, at a given time.
func openChat(t testing.TB, s store.Store, p place, opened time.Time) chat.Chat {
	t.Helper()
	registered, err := s.Register(t.Context(), store.Registration{Visitor: chat.Visitor{ID: uuid.NewString(), CompanyID: p.CompanyID, AppID: p.AppID, FirstName: "Old"}})
	v := registered.Visitor
	check(t, err)
	c, _, err := s.OpenChat(t.Context(), v, store.NewChat{Channel: chat.ChannelWidget, Now: opened})
	check(t, err)
	return c
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// until polls for a state that no event announces.
func until(deadline time.Time, done func() bool) {
	for !done() && time.Now().Before(deadline) {
		time.Sleep(50 * time.Millisecond)
	}
}
