package e2e

import (
	"testing"

	"github.com/parley-chat/parley/testkit/needs"
)

// Agents and operators use the panel in a real browser, together with visitors in the widget.
func TestPanel(t *testing.T) {
	needs.Program(t, "sh")
	needs.Program(t, "curl")
	for _, scenario := range []string{"tokens", "inbox", "queue", "live", "keyboard", "applications", "templates", "streams", "people", "companies", "webhooks", "scale", "notLive", "screens"} {
		t.Run(scenario, func(t *testing.T) {
			// Its own: the changes of one scenario would appear in the others' lists.
			var env []string
			if scenario == "queue" {
				env = []string{"BOT=none"}
			}
			s := ownStandalone(t, t.TempDir(), env...)
			c, _ := startScenario(t, scenario, s.place, map[string]string{
				"module": "./panel_scenarios.mjs", "panel": s.PanelURL, "email": s.PanelEmail, "password": s.PanelPassword, "clientBase": s.ClientBaseURL, "accessToken": s.AccessToken, "nats": s.NATSURL,
			})
			finish(t, c)
		})
	}
}
