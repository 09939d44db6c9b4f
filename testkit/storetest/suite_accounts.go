package storetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

func testCompanies(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	_, err := s.Company(ctx, newID())
	wantReason(t, "an unknown company", err, apperr.NotFound, "COMPANY_NOT_FOUND")
	var all []chat.Company
	for i := range 5 {
		all = append(all, chat.Company{ID: fmt.Sprintf("0000000%d-0000-4000-8000-000000000000", i), Name: "Company\x01 é😀"})
	}
	for _, c := range slices.Backward(all) {
		must(t, s.PutCompany(ctx, chat.Company{ID: c.ID, Name: "before"}))
		must(t, s.PutCompany(ctx, c))
	}
	want(t, "a company that was written twice", get[chat.Company](t)(s.Company(ctx, all[3].ID)), all[3])
	want(t, "all companies", get[[]chat.Company](t)(s.Companies(ctx, store.Page{})), all)
	want(t, "a page", get[[]chat.Company](t)(s.Companies(ctx, store.Page{After: all[1].ID, Limit: 2})), all[2:4])
	if past := get[[]chat.Company](t)(s.Companies(ctx, store.Page{After: all[4].ID})); len(past) != 0 {
		t.Errorf("after the last: got %v, want nothing", past)
	}
}

func testAccessTokens(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	company := chat.Company{ID: newID()}
	must(t, s.PutCompany(ctx, company))
	hash := func(n int) string { return strings.Repeat(fmt.Sprint(n), 64) }
	token := func(n int) chat.AccessToken {
		return chat.AccessToken{
			Hash: hash(n), CompanyID: company.ID, Name: "token", Prefix: fmt.Sprintf("pat_%06d", n), CreatedAt: at(time.Duration(-n) * time.Hour),
		}
	}
	first, second := token(1), token(2)
	first.ExpiresAt = at(time.Hour)

	_, err := s.AccessToken(ctx, hash(1))
	wantReason(t, "an unknown token", err, apperr.NotFound, "ACCESS_TOKEN_NOT_FOUND")
	homeless := token(3)
	homeless.CompanyID = newID()
	wantReason(t, "a token of no company", s.CreateAccessToken(ctx, homeless), apperr.NotFound, "COMPANY_NOT_FOUND")
	wantCode(t, "a token without a name", s.CreateAccessToken(ctx, chat.AccessToken{Hash: hash(3), CompanyID: company.ID}), apperr.Invalid)
	must(t, s.CreateAccessToken(ctx, first))
	wantReason(t, "a token again", s.CreateAccessToken(ctx, first), apperr.Conflict, "ACCESS_TOKEN_EXISTS")
	must(t, s.CreateAccessToken(ctx, second))
	want(t, "a token", get[chat.AccessToken](t)(s.AccessToken(ctx, hash(1))), first)

	want(t, "a company's tokens", get[[]chat.AccessToken](t)(s.AccessTokens(ctx, company.ID, store.Page{})), []chat.AccessToken{second, first})
	_, err = s.AccessTokens(ctx, newID(), store.Page{After: first.Hash})
	wantCode(t, "a page after another company's token", err, apperr.NotFound)

	for _, hours := range []int{3, 2, 4} {
		must(t, s.ChangeAccessToken(ctx, hash(1), store.TokenChange{UsedAt: noon.Add(time.Duration(hours) * time.Hour)}))
		must(t, s.ChangeAccessToken(ctx, hash(1), store.TokenChange{RevokedAt: noon.Add(time.Duration(hours) * time.Hour)}))
	}
	first.LastUsedAt, first.RevokedAt = at(4*time.Hour), at(2*time.Hour)
	want(t, "a token that was used and revoked", get[chat.AccessToken](t)(s.AccessToken(ctx, hash(1))), first)
	wantCode(t, "use of an unknown token", s.ChangeAccessToken(ctx, hash(9), store.TokenChange{UsedAt: noon}), apperr.NotFound)
	must(t, s.DeleteAccessToken(ctx, hash(1)))
	wantCode(t, "a deleted token", errorOf(s.AccessToken(ctx, hash(1))), apperr.NotFound)
	wantCode(t, "deleting it again", s.DeleteAccessToken(ctx, hash(1)), apperr.NotFound)
	wantCode(t, "revocation of an unknown token", s.ChangeAccessToken(ctx, hash(9), store.TokenChange{RevokedAt: noon}), apperr.NotFound)
}

func testApplications(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	app := chat.Application{
		ID: newID(), CompanyID: newID(), Provider: chat.ProviderWidget, BotName: "Bot", Name: "Shop",
		WidgetConfigs:  json.RawMessage(` {"x":1.50e+2, "x":12345678901234567890123, "u":"\u00e9<\u0000>" }`),
		AllowedOrigins: []string{"https://shop.example"}, FileRetention: 90 * time.Second,
	}
	_, err := s.Application(ctx, app.ID)
	wantReason(t, "an unknown application", err, apperr.NotFound, "APPLICATION_NOT_FOUND")
	must(t, s.PutApplication(ctx, app))
	want(t, "an application", get[chat.Application](t)(s.Application(ctx, app.ID)), app)
	wrong := app
	wrong.FileRetention, wrong.WidgetConfigs = -1, json.RawMessage(`[]`)
	wantCode(t, "an application with faults", s.PutApplication(ctx, wrong), apperr.Invalid)

	other := chat.Application{ID: newID(), CompanyID: newID(), WidgetConfigs: json.RawMessage(`{}`)}
	must(t, s.PutApplication(ctx, other))
	want(t, "a company's applications", get[[]chat.Application](t)(s.Applications(ctx, app.CompanyID, store.Page{})), []chat.Application{app})
	both := []string{app.ID, other.ID}
	slices.Sort(both)
	listed := get[[]chat.Application](t)(s.Applications(ctx, "", store.Page{Limit: 1}))
	listed = append(listed, get[[]chat.Application](t)(s.Applications(ctx, "", store.Page{After: listed[0].ID, Limit: 9}))...)
	if len(listed) != 2 || listed[0].ID != both[0] || listed[1].ID != both[1] {
		t.Errorf("all applications in pages: got %v, want %v", listed, both)
	}

	t.Run("identity verification", func(t *testing.T) {
		wantCode(t, "an unknown mode", s.ChangeApplication(ctx, app.ID, store.ApplicationChange{Verification: "maybe"}), apperr.Invalid)
		wantReason(t, "a mode without a secret", s.ChangeApplication(ctx, app.ID, store.ApplicationChange{Verification: chat.VerificationRequired}), apperr.Invalid, "NO_IDENTITY_SECRET")
		wantCode(t, "an unknown application", s.ChangeApplication(ctx, newID(), store.ApplicationChange{Verification: chat.VerificationOff}), apperr.NotFound)
		err := s.ChangeApplication(ctx, newID(), store.ApplicationChange{Secrets: store.RotateSecret("x", noon, 0)})
		wantCode(t, "a secret of an unknown application", err, apperr.NotFound)

		const rotations = 5 // as many secrets as an application keeps
		together(t, rotations, func(n int) (struct{}, error) {
			for {
				err := s.ChangeApplication(ctx, app.ID, store.ApplicationChange{Secrets: store.RotateSecret(chat.Secret(fmt.Sprint("secret", n)), noon, time.Hour)})
				if !apperr.Is(err, apperr.Conflict) { // documented as: retry
					return struct{}{}, err
				}
			}
		})
		must(t, s.ChangeApplication(ctx, app.ID, store.ApplicationChange{Verification: chat.VerificationRequired}))
		changed := app
		changed.Name = "Renamed"
		must(t, s.PutApplication(ctx, changed))
		got := get[chat.Application](t)(s.Application(ctx, app.ID))
		if got.Identity.Mode != chat.VerificationRequired || len(got.Identity.Secrets) != rotations || got.Name != "Renamed" {
			t.Fatalf("after %d rotations at once and a change: got %+v, want all secrets, the mode and the change", rotations, got)
		}
		must(t, s.ChangeApplication(ctx, app.ID, store.ApplicationChange{Secrets: store.RotateSecret("last", noon.Add(2*time.Hour), time.Hour)}))
		v := get[chat.Application](t)(s.Application(ctx, app.ID)).Identity
		if len(v.Secrets) != 2 || v.Secrets[0].Value != "last" || !v.Secrets[1].ExpiresAt.Equal(at(3*time.Hour)) {
			t.Errorf("got %d secrets, want the new one, and the one before for an hour", len(v.Secrets))
		}
	})
}

func testTemplates(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	template := chat.MessageTemplate{
		ID: newID(), CompanyID: newID(), Name: "hello", Status: chat.TemplateApproved, Text: "Hello {{name}}",
		Parameters: []chat.TemplateParameter{{Name: "name", Default: "you"}, {Name: "x"}},
	}
	_, err := s.Template(ctx, template.ID)
	wantReason(t, "an unknown template", err, apperr.NotFound, "TEMPLATE_NOT_FOUND")
	must(t, s.PutTemplate(ctx, chat.MessageTemplate{ID: template.ID, CompanyID: newID()}))
	must(t, s.PutTemplate(ctx, template))
	plain := chat.MessageTemplate{ID: newID(), CompanyID: newID(), Text: "x"}
	must(t, s.PutTemplate(ctx, plain))
	want(t, "a template that was written twice", get[chat.MessageTemplate](t)(s.Template(ctx, template.ID)), template)
	want(t, "a template without parameters", get[chat.MessageTemplate](t)(s.Template(ctx, plain.ID)), plain)
	want(t, "a company's templates", get[[]chat.MessageTemplate](t)(s.Templates(ctx, template.CompanyID, store.Page{})), []chat.MessageTemplate{template})
	if all := get[[]chat.MessageTemplate](t)(s.Templates(ctx, "", store.Page{Limit: 3})); len(all) != 2 || all[0].ID > all[1].ID {
		t.Errorf("all templates: got %v, want two, by id", all)
	}
}
