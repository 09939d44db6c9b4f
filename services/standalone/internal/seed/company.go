package seed

import (
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

// widgetConfigs has every key of the specification's table, so that whoever builds a widget sees them all. The icons are data
// URLs: they do not go stale when the ports change.
//
//go:embed widget_configs.json
var widgetConfigs []byte

func company() chat.Company { return chat.Company{ID: companyID, Name: "Demo Company"} }

func application() chat.Application {
	return chat.Application{
		ID:            appID,
		CompanyID:     companyID,
		Provider:      chat.ProviderWidget,
		BotName:       "Polly",
		Name:          "Demo Chat",
		WidgetConfigs: json.RawMessage(widgetConfigs),
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
