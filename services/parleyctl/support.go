package parleyctl

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/spf13/cobra"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
)

func (a *app) applicationsSupport() *cobra.Command {
	var file string
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
	c.Flags().StringVar(&file, "set", "", "file with the settings; - is standard input")
	require(c, "set")
	checkFirst(c, func() error {
		text, err := a.readFile("--set", file)
		if err != nil {
			return err
		}
		support, err = decodeSupport(text)
		return err
	})
	return a.application().change(c, func(
		ctx context.Context, o operations, app chat.Application,
	) (chat.Application, error) {
		return o.SetSupport(ctx, self(), app.ID, support)
	})
}

// decodeSupport decodes the settings. A misspelt name is an error: without it the setting would be removed
// silently.
func decodeSupport(text []byte) (s chat.Support, err error) {
	d := json.NewDecoder(strings.NewReader(string(text)))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return s, apperr.MalformedJSON.WithMessage("The file is not a JSON object of these settings: " + err.Error())
	}
	if d.More() {
		return s, apperr.MalformedJSON.WithMessage("The file has data after the JSON object")
	}
	return s, nil
}

// describeSupport returns the settings as JSON.
func describeSupport(s chat.Support) string {
	text, err := json.Marshal(s)
	if err != nil {
		panic("parleyctl: settings of strings and booleans do not encode: " + err.Error())
	}
	return string(text)
}
