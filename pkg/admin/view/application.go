package view

import (
	"cmp"
	"encoding/json"
	"time"

	"github.com/parley-chat/parley/pkg/chat"
)

// Application is a chat application.
type Application struct {
	ID             string            `json:"id"`
	CompanyID      string            `json:"companyId"`
	Name           string            `json:"name"`
	BotName        string            `json:"botName"`
	WidgetConfigs  json.RawMessage   `json:"widgetConfigs"`
	AllowedOrigins []string          `json:"allowedOrigins"` // empty: any
	FileRetention  int64             `json:"fileRetentionSeconds"`
	Verification   chat.Verification `json:"verification"`
	Support        chat.Support      `json:"support"`
	Secrets        []IdentitySecret  `json:"secrets"`
}

// IdentitySecret is what can be shown again of an identity secret.
type IdentitySecret struct {
	CreatedAt chat.Time `json:"createdAt"`
	ExpiresAt chat.Time `json:"expiresAt,omitzero"`
}

// ApplicationOf returns the view of an application. It shares the settings, of up to 1 MiB, with it.
func ApplicationOf(a chat.Application) Application {
	v := Application{
		ID:             a.ID,
		CompanyID:      a.CompanyID,
		Name:           a.Name,
		BotName:        a.BotName,
		WidgetConfigs:  a.WidgetConfigs,
		AllowedOrigins: append([]string{}, a.AllowedOrigins...),
		FileRetention:  int64(a.FileRetention / time.Second),
		Verification:   cmp.Or(a.Identity.Mode, chat.VerificationOff),
		Support:        a.Support,
		Secrets:        []IdentitySecret{},
	}
	if len(v.WidgetConfigs) == 0 {
		v.WidgetConfigs = json.RawMessage(`{}`)
	}
	for _, s := range a.Identity.Secrets {
		v.Secrets = append(v.Secrets, IdentitySecret{chat.Time(s.CreatedAt), chat.Time(s.ExpiresAt)})
	}
	return v
}

// Template is a message template.
type Template struct {
	ID         string      `json:"id"`
	CompanyID  string      `json:"companyId"`
	Name       string      `json:"name"`
	Text       string      `json:"text"`
	Parameters []Parameter `json:"parameters"`
	Status     string      `json:"status"`
}

// Parameter is a parameter of a template.
type Parameter struct {
	Name    string `json:"name"`
	Default string `json:"default"`
}

// TemplateOf returns the view of a template.
func TemplateOf(t chat.MessageTemplate) Template {
	return Template{
		ID:         t.ID,
		CompanyID:  t.CompanyID,
		Name:       t.Name,
		Text:       t.Text,
		Parameters: ListOf(t.Parameters, func(p chat.TemplateParameter) Parameter { return Parameter(p) }),
		Status:     t.Status,
	}
}
