package e2e

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/testkit/needs"
)

// scenarios are functions that a module exports.
type scenarios struct {
	module string // relative to this folder
	names  []string
}

// startScenario runs one scenario of a module. The pipe takes one command a line.
func startScenario(t *testing.T, module, scenario string, p place, more map[string]string) (*child, io.Writer) {
	t.Helper()
	node, chromium := needs.Program(t, "node"), needs.Program(t, "chromium")
	config := map[string]string{
		"module": module, "scenario": scenario, "site": p.SiteURL + "/", "base": p.WidgetBaseURL, "appId": p.AppID, "executable": chromium,
		"shots": cmp.Or(os.Getenv("PARLEY_SHOTS"), t.TempDir()), // set it to see the pictures
	}
	for key, value := range more {
		config[key] = value
	}
	encoded, err := json.Marshal(config)
	check(t, err)
	c, orders, err := spawnWithInput("widget.mjs", nil, node, "widget.mjs", string(encoded))
	check(t, err)
	c.stopAtEnd(t)
	return c, orders
}

// finish logs the scenario's measurements, and fails with its error.
func finish(t *testing.T, c *child) {
	t.Helper()
	for line := range c.lines {
		if line == "done" {
			return
		}
		t.Log(line)
	}
	<-c.ended
	t.Errorf("the scenario failed:\n%s", c.stderr)
}

// A visitor uses the widget in a real browser, on a site of another origin with a strict policy, and on others.
func TestWidget(t *testing.T) {
	needs.Program(t, "sh")
	needs.Program(t, "curl")
	s := commonStandalone(t)
	stored := openStore(t, s.place)
	other, _, _ := putCompany(t, stored)
	guarded, _, _ := putCompany(t, stored)
	guarded.AllowedOrigins = []string{"https://shop.example.com"}
	check(t, stored.PutApplication(t.Context(), guarded))
	more := map[string]string{"otherAppId": other.ID, "guardedAppId": guarded.ID}
	for _, file := range []scenarios{
		{"./widget/session.mjs", []string{"flow", "streaming", "markdown"}},
		{"./widget/keyboard.mjs", []string{"keyboard", "sound", "phone"}},
		{"./widget/tabs.mjs", []string{"tabs", "takeover"}},
		{"./widget/files.mjs", []string{"files"}},
		{"./widget/page.mjs", []string{"navigation", "packaged", "life"}},
		{"./widget/history.mjs", []string{"scale", "heights"}},
		{"./widget/failures.mjs", []string{"broken", "refused"}},
		{"./widget/screens.mjs", []string{"screens"}},
	} {
		for _, scenario := range file.names {
			t.Run(scenario, func(t *testing.T) {
				c, _ := startScenario(t, file.module, scenario, s.place, more)
				finish(t, c)
			})
		}
	}
}

// The company's server proves its visitors' identities, and tokens are renewed before they expire.
func TestWidgetIdentity(t *testing.T) {
	s := commonStandalone(t)
	stored := openStore(t, s.place)
	app, _, _ := putCompany(t, stored)
	app.WidgetConfigs = []byte(`{"formInputs":["email"]}`)
	check(t, stored.PutApplication(t.Context(), app))
	secret := credential.NewIdentitySecret()
	err := stored.ChangeApplication(t.Context(), app.ID, store.ApplicationChange{Secrets: store.RotateSecret(secret, time.Now(), 0)})
	check(t, err)
	check(t, stored.ChangeApplication(t.Context(), app.ID, store.ApplicationChange{Verification: chat.VerificationSession}))

	c, orders := startScenario(t, "./widget/identity.mjs", "identity", s.place, map[string]string{"verifiedAppId": app.ID})
	p := s.place
	p.AppID, p.CompanyID = app.ID, app.CompanyID
	for line := range c.lines {
		var subject string
		var issued, expires int64
		switch ask := strings.Fields(line); ask[0] {
		case "prove":
			token, err := credential.IdentityToken(secret, credential.ProvedIdentity{UserID: ask[1]}, time.Now().Add(time.Minute))
			check(t, err)
			fmt.Fprintln(orders, token)
		case "hash":
			fmt.Fprintln(orders, credential.UserHash(secret, ask[1]))
		case "token":
			_, err := fmt.Sscan(strings.Join(ask[1:], " "), &subject, &issued, &expires)
			check(t, err)
			shown := claims(p, subject)
			shown["iat"], shown["exp"] = time.Now().Unix()+issued, time.Now().Unix()+expires
			fmt.Fprintln(orders, sign(t, p, shown))
		case "done":
			return
		default:
			t.Log(line)
		}
	}
	<-c.ended
	t.Errorf("the scenario failed:\n%s", c.stderr)
}

// Gateways are killed under the widget, behind a proxy without sticky sessions.
func TestWidgetComesBack(t *testing.T) {
	f := newDeployment(t, 3)
	t.Cleanup(http.DefaultClient.CloseIdleConnections)
	for _, engine := range []string{"seed", "nats", "redis"} {
		f.start(t, engine)
	}
	for _, name := range f.services {
		f.start(t, name)
	}
	f.awaitReady(t, http.StatusOK, f.services...)
	f.startEdge(t)
	site := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<!doctype html><html lang="en"><title>Site</title><script async src="%s/widget.js" data-app-id="%s"></script><body></body>`, f.WidgetBaseURL, f.AppID)
	}))
	t.Cleanup(site.Close)
	f.SiteURL = site.URL
	c, orders := startScenario(t, "./widget/failures.mjs", "comingBack", f.place, nil)
	round := 0
	order := func(what string) {
		t.Helper()
		_, err := c.await(fmt.Sprintf("ready %d", round))
		check(t, err)
		round++
		if name, found := strings.CutPrefix(what, "kill "); found {
			check(t, f.run[name].kill())
		}
		fmt.Fprintln(orders, what)
	}
	for n := range 3 {
		name := gatewayName(n)
		order("kill " + name)
		order("write")
		f.start(t, name)
		f.awaitReady(t, http.StatusOK, name)
	}
	order("offline")
	order("end")
	finish(t, c)
}
