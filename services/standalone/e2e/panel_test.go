package e2e

import (
	"testing"

	"github.com/parley-chat/parley/testkit/needs"
)

// Agents and operators use the panel in a real browser, together with visitors in the widget.
func TestPanel(t *testing.T) {
	needs.Program(t, "sh")
	needs.Program(t, "curl")
	for _, file := range []scenarios{
		{"./panel/tokens.mjs", []string{"tokens"}},
		{"./panel/inbox.mjs", []string{"inbox", "queue", "live", "keyboard", "scale", "notLive", "markdown"}},
		{"./panel/applications.mjs", []string{"applications", "templates"}},
		{"./panel/streams.mjs", []string{"streams"}},
		{"./panel/people.mjs", []string{"people", "companies"}},
		{"./panel/webhooks.mjs", []string{"webhooks"}},
		{"./panel/bots.mjs", []string{"bots"}},
		{"./panel/tools.mjs", []string{"tools"}},
		{"./panel/documents.mjs", []string{"documents"}},
		{"./panel/screens.mjs", []string{"screens"}},
	} {
		for _, scenario := range file.names {
			t.Run(scenario, func(t *testing.T) { panelScenario(t, file.module, scenario) })
		}
	}
}

// panelScenario runs a scenario on a standalone of its own: the changes of one scenario would appear in the others'
// lists.
func panelScenario(t *testing.T, module, scenario string) {
	t.Helper()
	var env []string
	if scenario == "queue" {
		env = []string{"BOT=none"}
	}
	s := ownStandalone(t, t.TempDir(), env...)
	c, _ := startScenario(t, module, scenario, s.place, map[string]string{
		"panel": s.PanelURL, "email": s.PanelEmail, "password": s.PanelPassword,
		"clientBase": s.ClientBaseURL, "accessToken": s.AccessToken, "nats": s.NATSURL,
	})
	finish(t, c)
}
