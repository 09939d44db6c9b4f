package view

import (
	"time"

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

// BotUsage is what the bot of an application has used.
type BotUsage struct {
	Today  bots.Amount `json:"today"`
	Bounds bots.Amount `json:"bounds"` // of the application, in force; 0: none
	Days   []DayUsage  `json:"days"`   // with questions, ascending
}

// DayUsage is the usage of a day.
type DayUsage struct {
	Day string `json:"day"` // 2006-01-02, of UTC
	bots.Amount
}

// BotUsageOf returns the view of a usage; today is the beginning of the day.
func BotUsageOf(b bots.Bot, days []bots.Usage, today time.Time) BotUsage {
	v := BotUsage{Bounds: b.InForce().Settings.Bounds.Application, Days: []DayUsage{}}
	for _, u := range days {
		v.Days = append(v.Days, DayUsage{u.Day.Format(time.DateOnly), u.Amount})
		if u.Day.Equal(today) {
			v.Today = u.Amount
		}
	}
	return v
}

// BotCall is a call of the server that answers for a bot.
type BotCall struct {
	bots.Call
	At chat.Time `json:"at"`
}

// BotCallOf returns the view of a call.
func BotCallOf(c bots.Call) BotCall {
	if c.Sent == nil {
		c.Sent = []bots.Turn{}
	}
	return BotCall{c, chat.Time(c.At)}
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
