package view

import (
	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/chat"
)

// Bot is the bot of an application, without its secrets.
type Bot struct {
	AppID     string        `json:"appId"`
	CompanyID string        `json:"companyId"`
	Revision  int64         `json:"revision"` // changes with every change
	Draft     bots.Settings `json:"draft"`
	Versions  []BotVersion  `json:"versions"` // newest first; the first one is in force
	Secrets   []BotSecret   `json:"secrets"`  // newest first
}

// BotVersion is a published version.
type BotVersion struct {
	Number      int           `json:"number"`
	Settings    bots.Settings `json:"settings"`
	PublishedAt chat.Time     `json:"publishedAt"`
	PublishedBy string        `json:"publishedBy"`
}

// BotSecret is what can be shown again of a secret.
type BotSecret struct {
	CreatedAt chat.Time `json:"createdAt"`
	ExpiresAt chat.Time `json:"expiresAt,omitzero"`
}

// BotOf returns the view of a bot.
func BotOf(b bots.Bot) Bot {
	v := Bot{
		AppID: b.AppID, CompanyID: b.CompanyID, Revision: b.Revision, Draft: b.Draft,
		Versions: []BotVersion{}, Secrets: []BotSecret{},
	}
	for _, version := range b.Versions {
		v.Versions = append(v.Versions, BotVersion{
			version.Number, version.Settings, chat.Time(version.PublishedAt), version.PublishedBy,
		})
	}
	for _, s := range b.Secrets {
		v.Secrets = append(v.Secrets, BotSecret{chat.Time(s.CreatedAt), chat.Time(s.ExpiresAt)})
	}
	return v
}

// Connection is a connection to a language model, without its key.
type Connection struct {
	ID        string    `json:"id"`
	CompanyID string    `json:"companyId"`
	Name      string    `json:"name"`
	BaseURL   string    `json:"baseUrl"`
	HasAPIKey bool      `json:"hasApiKey"`
	CreatedAt chat.Time `json:"createdAt"`
}

// ConnectionOf returns the view of a connection.
func ConnectionOf(c bots.Connection) Connection {
	return Connection{
		ID: c.ID, CompanyID: c.CompanyID, Name: c.Name, BaseURL: c.BaseURL,
		HasAPIKey: c.APIKey != "", CreatedAt: chat.Time(c.CreatedAt),
	}
}
