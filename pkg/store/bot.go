package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/webhook"
)

// Bots stores the bots of applications.
type Bots interface {
	// Bot returns the bot of an application. NotFound if it was never changed.
	Bot(ctx context.Context, appID string) (bots.Bot, error)
	// PutBot writes a bot if its revision is the stored one, 0 for a new one, and increments the revision. Conflict with
	// the reason CHANGED_MEANWHILE if it is another. The caller invalidates [CachedBot].
	PutBot(ctx context.Context, b bots.Bot) error
	// Bots lists the bots of a company, or all if companyID is empty, ordered by application.
	Bots(ctx context.Context, companyID string, p Page) ([]bots.Bot, error)
}

// ModelConnections stores the connections of companies to language models.
type ModelConnections interface {
	// ModelConnection returns the connection, or NotFound.
	ModelConnection(ctx context.Context, id string) (bots.Connection, error)
	// PutModelConnection writes a connection as [Bots.PutBot] does. The caller invalidates [CachedModelConnection].
	PutModelConnection(ctx context.Context, c bots.Connection) error
	// DeleteModelConnection removes a connection, or returns NotFound. The caller invalidates [CachedModelConnection].
	DeleteModelConnection(ctx context.Context, id string) error
	// ModelConnections lists the connections of a company, or all if companyID is empty, ordered by id.
	ModelConnections(ctx context.Context, companyID string, p Page) ([]bots.Connection, error)
}

// SettingRecord is a record of settings as engines store it: their JSON, beside what queries compare.
type SettingRecord struct {
	ID        string `bson:"_id"`
	CompanyID string `bson:"companyId"`
	Settings  string `bson:"settings"` // JSON text
	Revision  int64  `bson:"revision"`
}

// botSettings is the JSON of a bot's record.
type botSettings struct {
	Draft    bots.Settings    `json:"draft"`
	Versions []bots.Version   `json:"versions,omitempty"`
	Secrets  []webhook.Secret `json:"secrets,omitempty"`
}

// BotRecordOf returns the record of a bot, with times as every engine stores them.
func BotRecordOf(b bots.Bot) SettingRecord {
	versions, secrets := slices.Clone(b.Versions), slices.Clone(b.Secrets)
	for i := range versions {
		versions[i].PublishedAt = UTC(versions[i].PublishedAt)
	}
	for i := range secrets {
		secrets[i].CreatedAt = UTC(secrets[i].CreatedAt)
		secrets[i].ExpiresAt = UTC(secrets[i].ExpiresAt)
	}
	return settingRecord(b.AppID, b.CompanyID, b.Revision, botSettings{b.Draft, versions, secrets})
}

// Bot is the inverse of [BotRecordOf].
func (r SettingRecord) Bot() bots.Bot {
	s := settingsOf[botSettings](r)
	return bots.Bot{
		AppID: r.ID, CompanyID: r.CompanyID, Revision: r.Revision,
		Draft: s.Draft, Versions: s.Versions, Secrets: s.Secrets,
	}
}

// ConnectionRecordOf returns the record of a connection, with times as every engine stores them.
func ConnectionRecordOf(c bots.Connection) SettingRecord {
	c.CreatedAt = UTC(c.CreatedAt)
	return settingRecord(c.ID, c.CompanyID, c.Revision, c)
}

// Connection is the inverse of [ConnectionRecordOf].
func (r SettingRecord) Connection() bots.Connection {
	c := settingsOf[bots.Connection](r)
	c.ID, c.CompanyID, c.Revision = r.ID, r.CompanyID, r.Revision
	return c
}

func settingRecord(id, companyID string, revision int64, settings any) SettingRecord {
	text, err := json.Marshal(settings)
	if err != nil {
		panic("store: settings of texts and numbers do not encode: " + err.Error())
	}
	return SettingRecord{ID: id, CompanyID: companyID, Settings: string(text), Revision: revision}
}

// settingsOf parses the settings of a record; those of the zero record are zero.
func settingsOf[V any](r SettingRecord) (v V) {
	if r.Settings == "" {
		return v
	}
	if err := json.Unmarshal([]byte(r.Settings), &v); err != nil {
		panic(fmt.Sprintf("store: stored settings are not JSON: %v", err))
	}
	return v
}
