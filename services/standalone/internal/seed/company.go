package seed

import (
	"bytes"
	_ "embed"
	"encoding/json"

	"github.com/parley-chat/parley/pkg/chat"
)

const (
	companyID  = "de300000-0000-4000-8000-000000000001"
	appID      = "de300000-0000-4000-8000-00000000000a"
	templateID = "de300000-0000-4000-8000-00000000000e"

	panelEmail = "operator@parley.example"
)

// widgetConfigs has every key of the specification's table, as an example for widgets. The icons are data
// URLs, which do not depend on ports.
//
//go:embed widget_configs.json
var widgetConfigs []byte

func company() chat.Company { return chat.Company{ID: companyID, Name: "Demo Company"} }

// greetings has the two greetings of widget_configs.json for each bot. A language model reads the greetings
// of its chats, so that the demo has none for it: an empty one is not shown.
var greetings = map[string][2]string{
	"demo":    {"Hello, I am Polly, the demo bot.", `Write me anything, or write \"menu\" to see what I can do.`},
	"webhook": {"Hello, I am Polly. Your webhook answers for me (BOT=webhook).", "Write me anything."},
	"llm":     {},
	"none": {
		"Hello, I am Polly. No bot answers here (BOT=none).",
		"Write, and an agent can answer you from the panel.",
	},
	"external": {"Hello, I am Polly. Your own processing layer answers here (BOT=external).", "Write me anything."},
}

// configsFor returns the configuration with the greetings of a bot.
func configsFor(bot string) []byte {
	demo := greetings["demo"]
	said, ok := greetings[bot]
	if !ok {
		return widgetConfigs
	}
	return bytes.Replace(
		bytes.Replace(widgetConfigs, []byte(demo[0]), []byte(said[0]), 1), []byte(demo[1]), []byte(said[1]),
		1,
	)
}

func application(bot string) chat.Application {
	return chat.Application{
		ID:            appID,
		CompanyID:     companyID,
		Provider:      chat.ProviderWidget,
		BotName:       "Polly",
		Name:          "Demo Chat",
		WidgetConfigs: json.RawMessage(configsFor(bot)),
	}
}

func template() chat.MessageTemplate {
	return chat.MessageTemplate{
		ID:        templateID,
		CompanyID: companyID,
		Name:      "order_shipped",
		Status:    chat.TemplateApproved,
		Text:      "Hello {{username}}, your order {{order}} is on its way.",
		Parameters: []chat.TemplateParameter{
			{Name: "username", Default: "there"},
			{Name: "order", Default: "4711"},
		},
	}
}
