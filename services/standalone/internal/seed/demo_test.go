package seed_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/services/standalone/internal/seed"
	"github.com/parley-chat/parley/testkit/storetest"
)

var (
	urls = seed.Start{Client: "http://127.0.0.1:1", Widget: "http://127.0.0.1:2", NATS: "nats://127.0.0.1:3", SQLitePath: "/data/parley.db"}
	now  = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
)

func run(t *testing.T, s seed.Store, path string, u seed.Start) seed.Demo {
	t.Helper()
	d, err := seed.Run(t.Context(), s, path, u, now)
	if err != nil {
		t.Fatalf("Run: %v", err)
	}
	return d
}

func TestFirstStart(t *testing.T) {
	t.Parallel()
	s, path := storetest.Open(t), filepath.Join(t.TempDir(), "demo.json")
	d := run(t, s, path, urls)

	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var members map[string]string
	if err := json.Unmarshal(data, &members); err != nil {
		t.Fatal(err)
	}
	want := []string{"accessToken", "appId", "clientBaseUrl", "companyId", "natsUrl", "panelEmail", "panelPassword", "panelUrl", "sqlitePath", "templateId", "widgetBaseUrl"}
	if got := slices.Sorted(maps.Keys(members)); !slices.Equal(got, want) {
		t.Errorf("members: got %v, want %v", got, want)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode: got %v, %v, want 0600", info.Mode(), err)
	}
	hash, ok := credential.HashAccessToken(d.AccessToken)
	if !ok {
		t.Fatalf("access token %q is malformed", d.AccessToken)
	}
	token, err := s.AccessToken(t.Context(), hash)
	if err != nil || token.CompanyID != d.CompanyID {
		t.Errorf("token: got %+v, %v, want one of company %s", token, err, d.CompanyID)
	}
	app, err := s.Application(t.Context(), d.AppID)
	if err != nil || app.CompanyID != d.CompanyID {
		t.Fatalf("application: got %+v, %v", app, err)
	}
	rules, err := app.Rules()
	if err != nil || len(rules.GreetingMessages) == 0 || len(rules.RequiredFields) == 0 {
		t.Errorf("rules: got %+v, %v, want greetings and required fields", rules, err)
	}
	if template, err := s.Template(t.Context(), d.TemplateID); err != nil || template.Status != "approved" {
		t.Errorf("template: got %+v, %v, want an approved one", template, err)
	}
}

func TestASecondStartChangesNothing(t *testing.T) {
	t.Parallel()
	s, path := storetest.Open(t), filepath.Join(t.TempDir(), "demo.json")
	first := run(t, s, path, urls)
	before, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	app, err := s.Application(t.Context(), first.AppID)
	if err != nil {
		t.Fatal(err)
	}
	app.Name = "Renamed by somebody"
	if err := s.PutApplication(t.Context(), app); err != nil {
		t.Fatal(err)
	}
	if second := run(t, s, path, urls); second != first {
		t.Errorf("demo: got %+v, want %+v", second, first)
	}
	after, err := os.Stat(path)
	if err != nil || !os.SameFile(before, after) {
		t.Errorf("demo.json was written again (%v)", err)
	}
	if app, err := s.Application(t.Context(), first.AppID); err != nil || app.Name != "Renamed by somebody" {
		t.Errorf("application: got %+v, %v, want the changed name kept", app, err)
	}
}

func TestOtherPortsKeepTheToken(t *testing.T) {
	t.Parallel()
	s, path := storetest.Open(t), filepath.Join(t.TempDir(), "demo.json")
	first := run(t, s, path, urls)
	moved := urls
	moved.Widget = "http://127.0.0.1:9"
	second := run(t, s, path, moved)
	if second.WidgetBaseURL != moved.Widget || second.AccessToken != first.AccessToken {
		t.Errorf("got %+v, want the new address and the same token", second)
	}
}

func TestACrashBeforeTheFileHeals(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(path string) error{
		"no file":        os.Remove,
		"half a file":    func(path string) error { return os.WriteFile(path, []byte(`{"accessTok`), 0o600) },
		"another's file": func(path string) error { return os.WriteFile(path, []byte(`{"accessToken":"x"}`), 0o600) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, path := storetest.Open(t), filepath.Join(t.TempDir(), "demo.json")
			first := run(t, s, path, urls)
			if err := leave(path); err != nil {
				t.Fatal(err)
			}
			second := run(t, s, path, urls)
			if second.AccessToken == first.AccessToken || second.CompanyID != first.CompanyID || second.AppID != first.AppID {
				t.Errorf("got %+v after %+v, want the same company with a new token", second, first)
			}
			hash, _ := credential.HashAccessToken(second.AccessToken)
			if _, err := s.AccessToken(t.Context(), hash); err != nil {
				t.Errorf("the new token is not in the store: %v", err)
			}
		})
	}
}

func TestARevokedTokenIsReplaced(t *testing.T) {
	t.Parallel()
	s, path := storetest.Open(t), filepath.Join(t.TempDir(), "demo.json")
	first := run(t, s, path, urls)
	hash, _ := credential.HashAccessToken(first.AccessToken)
	if err := s.ChangeAccessToken(t.Context(), hash, store.TokenChange{RevokedAt: now}); err != nil {
		t.Fatal(err)
	}
	if second := run(t, s, path, urls); second.AccessToken == first.AccessToken {
		t.Error("a revoked token was kept")
	}
}

// The greetings name the bot, unless the configuration was changed. A language model, which would read them, has none.
func TestGreetingsFollowTheBot(t *testing.T) {
	t.Parallel()
	s, path := storetest.Open(t), filepath.Join(t.TempDir(), "demo.json")
	greeting := func(bot string) string {
		start := urls
		start.Bot = bot
		app, err := s.Application(t.Context(), run(t, s, path, start).AppID)
		if err != nil {
			t.Fatal(err)
		}
		rules, err := app.Rules()
		if err != nil || len(rules.GreetingMessages) != 2 {
			t.Fatalf("BOT=%s: got %+v, %v, want two greetings", bot, rules, err)
		}
		return rules.GreetingMessages[0].Content
	}
	for _, test := range []struct{ bot, want string }{
		{"none", "BOT=none"}, {"demo", "the demo bot"}, {"webhook", "BOT=webhook"}, {"webhook", "BOT=webhook"}, {"llm", ""}, {"demo", "the demo bot"},
	} {
		if got := greeting(test.bot); !strings.Contains(got, test.want) || test.want == "" && got != "" {
			t.Errorf("BOT=%s: got the greeting %q, want %q in it", test.bot, got, test.want)
		}
	}
	app, err := s.Application(t.Context(), "de300000-0000-4000-8000-00000000000a")
	if err != nil {
		t.Fatal(err)
	}
	app.WidgetConfigs = json.RawMessage(`{"greetingMessages":[{"content":"Mine"},{"content":"own"}]}`)
	if err := s.PutApplication(t.Context(), app); err != nil {
		t.Fatal(err)
	}
	if got := greeting("none"); got != "Mine" {
		t.Errorf("got %q, want the changed greeting kept", got)
	}
}

// The examples of the OpenAPI documents use the demo's application and template, so that they work at /docs unchanged.
func TestExamplesNameTheDemo(t *testing.T) {
	t.Parallel()
	d := run(t, storetest.Open(t), filepath.Join(t.TempDir(), "demo.json"), urls)
	for document, id := range map[string]string{"client-api": d.TemplateID, "widget-api": d.AppID} {
		openapi, err := os.ReadFile("../../../" + document + "/openapi.json")
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(string(openapi), `"`+id+`"`) {
			t.Errorf("%s: got no example with %s", document, id)
		}
	}
}
