package e2e

import (
	"context"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/ops"
	"github.com/parley-chat/parley/pkg/service"
	"github.com/parley-chat/parley/pkg/service/storage"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/services/panel"
	"github.com/parley-chat/parley/testkit/abusetest"
	"github.com/parley-chat/parley/testkit/servicetest"
)

// newPanelDoor returns the panel with a company of its own. An operator, an owner, an agent and somebody
// without a session send requests.
func (a *abuse) newPanelDoor(t *testing.T) *abused {
	t.Helper()
	cfg := panel.Config{
		Base:    service.Base{NATS: config.NATS{NATSURL: a.NATSURL}, Logger: ops.NewLogger(a.log, "panel", slog.LevelInfo)},
		Storage: storage.Config{Store: config.Store{SQLitePath: a.SQLitePath}}, Secrets: config.Secrets{SecretsKeyFile: a.Secrets},
		PanelURL: "https://panel.example.com", WidgetURL: a.WidgetBaseURL, ClientURL: a.ClientBaseURL,
	}
	check(t, config.SetDefaults(&cfg))
	cfg.HTTPAddr, cfg.OpsAddr = "", ""
	// they would answer nearly all requests
	cfg.RateUser, cfg.RateSignIn, cfg.RateAccount = config.Rate{}, config.Rate{}, config.Rate{}
	s, err := panel.New(cfg)
	check(t, err)
	servicetest.Run(t, s.Run)

	records := a.putPanelCompany(t)
	door := newAbused(t, s.Handler(), panel.OpenAPI(), panelCallers(a.seed, records))
	door.requests = panelRequests()
	door.pages = func(path string) bool { return !strings.HasPrefix(path, "/api/") } // the app
	door.repair = newRepair(t, openStore(t, a.place), records)
	return door
}

// putPanelCompany creates a company with users, and an operator.
func (a *abuse) putPanelCompany(t *testing.T) panelRecords {
	t.Helper()
	s := openStore(t, a.place)
	records := putPanelRecords(t, s, newTenant(t, a.clientAPI(t), a.widgetAPI(t), s))
	operator := putUser(t, s, account.Operator, "")
	records.users = append(records.users, operator.ID)
	records.secrets[account.Operator] = putSession(t, s, operator)
	return records
}

// panelRequests returns the number of requests per operation: those of the APIs in the long form, which takes
// half an hour.
func panelRequests() int {
	if longForm() {
		return abuseRequests()
	}
	return 20
}

// panelCallers returns the requests of each abuser.
func panelCallers(seed uint64, records panelRecords) (callers []abusetest.Config) {
	for _, role := range []account.Role{account.Operator, account.Owner, account.Agent, "guest"} {
		callers = append(callers, abusetest.Config{
			Seed: seed, Live: records.examples(), LiveOneIn: 2, Tokens: []string{records.secrets[role]}, // empty: a guest's
			Foreign: []string{account.NewSecret(), "", records.session, records.invitation},
			Derived: map[string]func(string) string{"CSRF": account.CSRFToken},
		})
	}
	return callers
}

// changedBelow lists what a request below a path may change or remove; a path that is not listed may change everything.
var changedBelow = map[string][]store.Kind{
	"/api/session": {"users"}, "/api/sessions": {"users"}, "/api/password": {"users"}, "/api/totp": {"users"}, "/api/users": {"users"},
	"/api/invitation": {"users"}, "/api/companies": {"companies"}, "/api/tokens": {"accessTokens"}, "/api/applications": {"applications"},
	"/api/templates": {"templates"}, "/api/webhooks": {"webhookEndpoints", "webhookDeliveries", "companies"}, "/api/chats": {"chats"},
	"/api/dead-letters": {},
}

// newRepair returns a function that puts back the records of a company that a request has changed or removed,
// and the sessions that it has ended: the next request finds them again.
func newRepair(t *testing.T, s store.Store, of panelRecords) func(ctx context.Context, path string) error {
	t.Helper()
	kept := map[store.Kind][]store.Record{}
	all := []store.Kind{"companies", "applications", "templates", "visitors", "identities", "chats", "messages"}
	for _, kind := range append(all, "accessTokens", "users", "webhookEndpoints", "webhookDeliveries") {
		kept[kind] = recordsOf(t, s, kind, of)
	}
	var sessions []account.Session
	for _, secret := range of.secrets {
		session, err := s.Session(t.Context(), account.HashSecret(secret))
		check(t, err)
		sessions = append(sessions, session)
	}
	return func(ctx context.Context, path string) error {
		parts := strings.SplitN(path, "/", 4)
		kinds, ok := changedBelow[strings.Join(parts[:min(3, len(parts))], "/")]
		if !ok {
			kinds = all
		}
		for _, kind := range kinds {
			if err := s.WriteRecords(ctx, kind, kept[kind]); err != nil {
				return err
			}
		}
		return resume(ctx, s, sessions)
	}
}

// resume puts back sessions that have ended.
func resume(ctx context.Context, s store.Store, sessions []account.Session) error {
	for _, session := range sessions {
		_, err := s.Session(ctx, session.ID)
		if apperr.Is(err, apperr.NotFound) {
			err = s.CreateSession(ctx, session)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// changes reports whether a request may have changed something.
func changes(method string) bool { return method != http.MethodGet && method != http.MethodHead }
