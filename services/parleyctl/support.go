package parleyctl

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/parley-chat/parley/pkg/chat"
)

func (a *app) applicationsSupport() *cobra.Command {
	var support chat.Support
	c := &cobra.Command{
		Use:   "support APPLICATION",
		Short: "Set how agents serve visitors: business hours, handover, ratings",
		Long: `Set how agents serve the visitors of an application, from a JSON file that replaces all settings:

  {
    "hours": {
      "timeZone": "Europe/Berlin",
      "week": {"monday": [{"from": "09:00", "to": "12:30"}, {"from": "13:30", "to": "18:00"}], "friday": [{"from": "22:00", "to": "02:00"}]},
      "dates": [{"date": "2026-12-24", "intervals": []}]
    },
    "handoverButton": true,
    "agentsOnly": false,
    "rating": true
  }

Without hours agents are always available. It takes effect within a second.`,
		Example: `  parleyctl applications support APPLICATION --set support.json`,
	}
	addSettingsFlag(a, c, &support)
	return a.application().change(c, func(
		ctx context.Context, o operations, app chat.Application,
	) (chat.Application, error) {
		return o.SetSupport(ctx, self(), app.ID, support)
	})
}

// describeSupport returns the settings as JSON.
func describeSupport(s chat.Support) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic("parleyctl: settings of strings and booleans do not encode: " + err.Error())
	}
	return string(text)
}
