package e2e

import "testing"

// Visitors switch from the bot to an agent, leave messages while agents are offline, and rate closed chats;
// agents see all of it.
func TestSupport(t *testing.T) {
	for _, scenario := range []string{"handover", "earlier", "hours"} {
		t.Run(scenario, func(t *testing.T) {
			s := ownStandalone(t, t.TempDir())
			c, _ := startScenario(t, "./support_scenarios.mjs", scenario, s.place, map[string]string{
				"panel": s.PanelURL, "email": s.PanelEmail, "password": s.PanelPassword,
			})
			finish(t, c)
		})
	}
}
