package storetest

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/store"
)

// answerer returns a bot with everything that one may have.
func answerer(companyID string) bots.Bot {
	temperature := 0.5
	b := bots.Bot{AppID: newID(), CompanyID: companyID}
	b.Publish(bots.Settings{Kind: bots.Webhook, Webhook: bots.WebhookSettings{URL: "https://example.com/?a=<é>"}}, "ada", at(0))
	b.Publish(bots.Settings{
		Kind: bots.Model,
		Model: bots.ModelSettings{
			ConnectionID: newID(), Model: "m", Prompt: "<é>", History: 3, Temperature: &temperature, MaxTokens: 9,
		},
		FailureText: bots.NoFailureText,
		Handover:    bots.Handover{OnFailure: true, Phrases: []string{"agent <é>"}},
	}, "ada", at(time.Hour))
	b.Rotate(at(2*time.Hour), time.Hour)
	b.Draft = bots.Settings{Kind: bots.Demo}
	return b
}

func testBots(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	b := answerer(newID())
	_, err := s.Bot(ctx, b.AppID)
	wantReason(t, "the bot of an application that was never changed", err, apperr.NotFound, "BOT_NOT_FOUND")
	must(t, s.PutBot(ctx, b))
	wantReason(t, "a second new one", s.PutBot(ctx, b), apperr.Conflict, "CHANGED_MEANWHILE")
	b.Revision = 1
	want(t, "a bot", get[bots.Bot](t)(s.Bot(ctx, b.AppID)), b)

	b.Draft.Kind = bots.None
	must(t, s.PutBot(ctx, b))
	wantReason(t, "an update of an old revision", s.PutBot(ctx, b), apperr.Conflict, "CHANGED_MEANWHILE")
	b.Revision = 2
	want(t, "a changed bot", get[bots.Bot](t)(s.Bot(ctx, b.AppID)), b)
	unknown := bots.Bot{AppID: newID(), CompanyID: b.CompanyID, Revision: 7}
	wantReason(t, "an update of an unknown bot", s.PutBot(ctx, unknown), apperr.Conflict, "CHANGED_MEANWHILE")

	other := answerer(b.CompanyID)
	must(t, s.PutBot(ctx, other))
	must(t, s.PutBot(ctx, answerer(newID())))
	other.Revision = 1
	both := []bots.Bot{b, other}
	slices.SortFunc(both, func(a, b bots.Bot) int { return strings.Compare(a.AppID, b.AppID) })
	want(t, "a company's bots", get[[]bots.Bot](t)(s.Bots(ctx, b.CompanyID, store.Page{})), both)
	want(t, "a page", get[[]bots.Bot](t)(s.Bots(ctx, b.CompanyID, store.Page{After: both[0].AppID, Limit: 1})), both[1:])
	want(t, "all bots", len(get[[]bots.Bot](t)(s.Bots(ctx, "", store.Page{}))), 3)
}

func connection(companyID string) bots.Connection {
	return bots.Connection{
		ID: newID(), CompanyID: companyID, Name: "Acme <é>", BaseURL: "https://example.com/v1", APIKey: "key", CreatedAt: at(0),
	}
}

func testModelConnections(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	c := connection(newID())
	_, err := s.ModelConnection(ctx, c.ID)
	wantReason(t, "an unknown connection", err, apperr.NotFound, "CONNECTION_NOT_FOUND")
	must(t, s.PutModelConnection(ctx, c))
	wantReason(t, "a second new one", s.PutModelConnection(ctx, c), apperr.Conflict, "CHANGED_MEANWHILE")
	c.Revision = 1
	want(t, "a connection", get[bots.Connection](t)(s.ModelConnection(ctx, c.ID)), c)
	c.APIKey = ""
	must(t, s.PutModelConnection(ctx, c))
	c.Revision = 2
	must(t, s.PutModelConnection(ctx, connection(newID())))
	want(t, "a company's connections", get[[]bots.Connection](t)(s.ModelConnections(ctx, c.CompanyID, store.Page{})), []bots.Connection{c})
	want(t, "all connections", len(get[[]bots.Connection](t)(s.ModelConnections(ctx, "", store.Page{}))), 2)
	must(t, s.DeleteModelConnection(ctx, c.ID))
	wantReason(t, "one that was deleted", s.DeleteModelConnection(ctx, c.ID), apperr.NotFound, "CONNECTION_NOT_FOUND")
}
