package storetest

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/secret"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/store/encrypted"
	"github.com/parley-chat/parley/pkg/webhook"
)

// kept are records with every kind of secret, as the contract returns them.
type kept struct {
	app      chat.Application
	user     account.User
	endpoint webhook.Endpoint

	bot        bots.Bot
	connection bots.Connection
}

// keep writes records with secrets; name is in all secrets that may have any text.
func keep(t testing.TB, s store.Store, name string) kept {
	t.Helper()
	ctx := t.Context()
	k := kept{app: chat.Application{ID: newID(), CompanyID: newID(), Name: "App of " + name}}
	must(t, s.PutApplication(ctx, k.app))
	for _, value := range []chat.Secret{chat.Secret("pis_first-" + name), chat.Secret("pis_second-" + name)} {
		must(t, s.ChangeApplication(ctx, k.app.ID, store.ApplicationChange{Secrets: store.RotateSecret(value, noon, time.Hour)}))
	}
	k.user = account.NewUser(name+"@example.com", "", account.Agent, k.app.CompanyID, at(0))
	k.user.TOTPSecret, k.user.TOTPPending = account.NewTOTPSecret(), account.NewTOTPSecret()
	must(t, s.CreateUser(ctx, k.user))
	k.endpoint = webhook.Endpoint{
		ID: newID(), CompanyID: k.app.CompanyID, URL: "https://example.com/" + name, CreatedAt: at(0),
		Headers: map[string]string{"X-Api-Key": "header-" + name, "X-Tenant": "tenant-" + name},
		Secrets: []webhook.Secret{webhook.NewSecret(webhook.HMAC, at(0)), webhook.NewSecret(webhook.Ed25519, at(0))},
	}
	must(t, s.CreateWebhookEndpoint(ctx, k.endpoint))
	k.bot = answerer(k.app.CompanyID)
	must(t, s.PutBot(ctx, k.bot))
	k.connection = connection(k.app.CompanyID)
	k.connection.APIKey = "key-of-" + name
	must(t, s.PutModelConnection(ctx, k.connection))
	k.bot.Revision, k.connection.Revision = 1, 1
	k.app = get[chat.Application](t)(s.Application(ctx, k.app.ID))
	return k
}

// secrets returns all texts that must not be in the database.
func (k kept) secrets() []string {
	all := []string{k.user.TOTPSecret, k.user.TOTPPending}
	for _, s := range k.app.Identity.Secrets {
		all = append(all, string(s.Value))
	}
	all = append(all, k.connection.APIKey)
	for _, s := range slices.Concat(k.endpoint.Secrets, k.bot.Secrets) {
		all = append(all, s.Value, s.Value[strings.Index(s.Value, "_")+1:])
	}
	for _, value := range k.endpoint.Headers {
		all = append(all, value)
	}
	return all
}

// wantKept reads the records.
func wantKept(t testing.TB, what string, s store.Store, k kept) {
	t.Helper()
	ctx := t.Context()
	want(t, what+": an application", get[chat.Application](t)(s.Application(ctx, k.app.ID)), k.app)
	want(t, what+": an application of a list", get[[]chat.Application](t)(s.Applications(ctx, k.app.CompanyID, store.Page{})), []chat.Application{k.app})
	want(t, what+": a user", get[account.User](t)(s.User(ctx, k.user.ID)), k.user)
	want(t, what+": a user of a list", get[[]account.User](t)(s.Users(ctx, k.app.CompanyID, store.Page{})), []account.User{k.user})
	want(t, what+": an endpoint", get[webhook.Endpoint](t)(s.WebhookEndpoint(ctx, k.endpoint.ID)), k.endpoint)
	want(t, what+": an endpoint of a list", get[[]webhook.Endpoint](t)(s.WebhookEndpoints(ctx, k.app.CompanyID, store.Page{})), []webhook.Endpoint{k.endpoint})
	want(t, what+": a bot", get[bots.Bot](t)(s.Bot(ctx, k.bot.AppID)), k.bot)
	want(t, what+": a bot of a list", get[[]bots.Bot](t)(s.Bots(ctx, k.app.CompanyID, store.Page{})), []bots.Bot{k.bot})
	want(t, what+": a connection", get[bots.Connection](t)(s.ModelConnection(ctx, k.connection.ID)), k.connection)
	want(t, what+": a connection of a list", get[[]bots.Connection](t)(s.ModelConnections(ctx, k.app.CompanyID, store.Page{})), []bots.Connection{k.connection})
}

// wantUnread reads the records' secrets, with an error of that code that contains the text.
func wantUnread(t testing.TB, what string, s store.Store, k kept, code apperr.Code, text string) {
	t.Helper()
	ctx := t.Context()
	_, ofApplication := s.Application(ctx, k.app.ID)
	_, ofUser := s.User(ctx, k.user.ID)
	_, ofEndpoint := s.WebhookEndpoint(ctx, k.endpoint.ID)
	_, ofList := s.WebhookEndpoints(ctx, k.app.CompanyID, store.Page{})
	_, ofBot := s.Bot(ctx, k.bot.AppID)
	_, ofConnection := s.ModelConnection(ctx, k.connection.ID)
	for name, err := range map[string]error{
		"application": ofApplication, "user": ofUser, "endpoint": ofEndpoint, "endpoints": ofList,
		"bot": ofBot, "connection": ofConnection,
	} {
		if !apperr.Is(err, code) || !strings.Contains(err.Error(), text) {
			t.Errorf("%s: the %s: got %v, want %s with %q", what, name, err, code, text)
		}
	}
}

func (e Engine) testSecrets(t *testing.T) {
	ctx := t.Context()
	address := e.Create(t)
	s := e.open(t, address)
	engine := encrypted.Engine(s)
	ada, bob := keep(t, s, "ada"), keep(t, s, "bob")
	wantKept(t, "with the key", s, ada)

	dump := e.Dump(t, address)
	if !bytes.Contains(dump, []byte(ada.endpoint.URL)) {
		t.Fatalf("got %d bytes without %s, want the content of the database", len(dump), ada.endpoint.URL)
	}
	for _, text := range slices.Concat(ada.secrets(), bob.secrets()) {
		if bytes.Contains(dump, []byte(text)) {
			t.Errorf("the database contains the secret %s", text)
		}
	}

	foreign := get[*secret.KeySet](t)(secret.Parse(get[[]byte](t)(secret.Generate(noon))))
	wantUnread(t, "with another key", encrypted.New(engine, foreign), ada, apperr.Unavailable, "SECRETS_KEY_FILE has no key")
	wantUnread(t, "without a setting", encrypted.New(engine, new(secret.KeySet)), ada, apperr.Unavailable, "SECRETS_KEY_FILE is not set")
	lost := store.ApplicationChange{Secrets: store.RotateSecret("pis_lost", noon, 0)}
	err := encrypted.New(engine, foreign).ChangeApplication(ctx, ada.app.ID, lost)
	wantCode(t, "a rotation with another key", err, apperr.Unavailable)
	if _, unknown := errors.AsType[*secret.UnknownKeyError](encrypted.New(engine, foreign).CheckKeys(ctx)); !unknown {
		t.Error("CheckKeys with another key: got none, want the unknown one")
	}
	must(t, encrypted.New(engine, Keys()).CheckKeys(ctx))
	wantKept(t, "after the attempts without the key", s, ada)
	public := ada.app
	public.Identity.Secrets = nil
	want(t, "an application for services without keys", get[chat.Application](t)(encrypted.New(engine, nil).Application(ctx, ada.app.ID)), public)

	must(t, engine.ChangeApplication(ctx, bob.app.ID, store.ApplicationChange{Secrets: func(chat.IdentityVerification) ([]chat.IdentitySecret, error) {
		return get[chat.Application](t)(engine.Application(ctx, ada.app.ID)).Identity.Secrets, nil
	}}))
	user := get[account.User](t)(engine.User(ctx, bob.user.ID))
	user.TOTPSecret = get[account.User](t)(engine.User(ctx, ada.user.ID)).TOTPSecret
	must(t, engine.UpdateUser(ctx, user))
	endpoint := get[webhook.Endpoint](t)(engine.WebhookEndpoint(ctx, bob.endpoint.ID))
	endpoint.Headers = get[webhook.Endpoint](t)(engine.WebhookEndpoint(ctx, ada.endpoint.ID)).Headers
	must(t, engine.UpdateWebhookEndpoint(ctx, endpoint))
	bot := get[bots.Bot](t)(engine.Bot(ctx, bob.bot.AppID))
	bot.Secrets = get[bots.Bot](t)(engine.Bot(ctx, ada.bot.AppID)).Secrets
	must(t, engine.PutBot(ctx, bot))
	connected := get[bots.Connection](t)(engine.ModelConnection(ctx, bob.connection.ID))
	connected.APIKey = get[bots.Connection](t)(engine.ModelConnection(ctx, ada.connection.ID)).APIKey
	must(t, engine.PutModelConnection(ctx, connected))
	wantUnread(t, "ciphertexts of another record", s, bob, apperr.Internal, "copied from another record")
	wantKept(t, "the record that they were copied from", s, ada)

	user = get[account.User](t)(engine.User(ctx, ada.user.ID))
	user.TOTPSecret = user.TOTPPending
	must(t, engine.UpdateUser(ctx, user))
	_, err = s.User(ctx, ada.user.ID)
	wantCode(t, "a ciphertext of another field", err, apperr.Internal)
	user.Revision++
	user.TOTPSecret = "JBSWY3DPEHPK3PXP"
	must(t, engine.UpdateUser(ctx, user))
	_, err = s.User(ctx, ada.user.ID)
	wantCode(t, "a secret that is not encrypted", err, apperr.Internal)
}

// testRotate replaces the key while another process changes the records with the old one.
func (e Engine) testRotate(t *testing.T) {
	ctx := t.Context()
	s := e.open(t, e.Create(t))
	ada, bob := keep(t, s, "ada"), keep(t, s, "bob")
	keys := RotatedKeys(t)
	fresh := encrypted.New(encrypted.Engine(s), keys)
	wantKept(t, "with both keys", fresh, ada)

	running, stop := context.WithCancel(ctx)
	var writer sync.WaitGroup
	writer.Go(func() {
		for n := int64(1); running.Err() == nil; n++ {
			u, err := s.User(ctx, ada.user.ID)
			if err == nil {
				u.TOTPStep = n
				err = s.UpdateUser(ctx, u)
			}
			if _, unknown := errors.AsType[*secret.UnknownKeyError](err); unknown { // this process has only the old key
				return
			}
			if err != nil && !apperr.Is(err, apperr.Conflict) {
				t.Errorf("a change during the rotation: got %v, want none or a conflict", err)
				return
			}
		}
	})
	if _, err := fresh.Reencrypt(ctx); err != nil {
		t.Errorf("beside a process that writes: got %v, want no error", err)
	}
	stop()
	writer.Wait()
	get[int](t)(fresh.Reencrypt(ctx)) // what the writer has encrypted with the old key
	const secrets = 2 * (2 + 2 + 4 + 2 + 1)
	want(t, "the keys in use", get[map[secret.KeyID]int](t)(fresh.Usage(ctx)), map[secret.KeyID]int{keys.Primary(): secrets})
	want(t, "the records that a repeat changes", get[int](t)(fresh.Reencrypt(ctx)), 0)
	u := get[account.User](t)(fresh.User(ctx, ada.user.ID))
	want(t, "the secret of a user who was changed during the rotation", u.TOTPSecret, ada.user.TOTPSecret)
	bob.user.Revision, bob.endpoint.Revision = 1, 1
	bob.bot.Revision, bob.connection.Revision = 2, 2
	wantKept(t, "after the rotation", fresh, bob)
	wantUnread(t, "with the old key alone", s, bob, apperr.Unavailable, "SECRETS_KEY_FILE has no key "+keys.Primary().String())
}
