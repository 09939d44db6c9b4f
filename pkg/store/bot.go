package store

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

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

// BotUsage counts what bots use. Stores remove expired counts themselves ([bots.UsageOf.ExpiresAt]).
type BotUsage interface {
	// SpendBot adds an amount, whose members may be negative, to the counts of a day and returns them. With a bound it
	// adds nothing, and reports false with the counts as they are, if one of them would be above it. Concurrent calls are
	// atomic: together they never pass the bound.
	SpendBot(ctx context.Context, of bots.UsageOf, add, bound bots.Amount) (after bots.Amount, ok bool, err error)
	// BotUsage lists the usage of an application's days from since on, ascending; a day without questions is absent. At
	// most [bots.UsageKept] days are kept.
	BotUsage(ctx context.Context, appID string, since time.Time) ([]bots.Usage, error)
}

// BotCalls stores the calls of the servers that answer for bots. Stores remove expired ones themselves
// ([bots.Call.ExpiresAt]), and those of an erased visitor.
type BotCalls interface {
	// AppendBotCall adds a call; a repeat of its id changes nothing.
	AppendBotCall(ctx context.Context, c bots.Call) error
	// BotCalls lists the calls of an application, newest first. The cursor of a page is the id of a call.
	BotCalls(ctx context.Context, appID string, p Page) ([]bots.Call, error)
}

// BotActions stores the calls of tools that visitors are asked about. Stores remove expired ones themselves
// ([bots.Action.ExpiresAt]), and those of an erased visitor.
type BotActions interface {
	// AddBotAction adds an action and returns the stored one: the first of its id.
	AddBotAction(ctx context.Context, a bots.Action) (bots.Action, error)
	// BotAction returns an action, or NotFound with the reason BOT_ACTION_NOT_FOUND.
	BotAction(ctx context.Context, id string) (bots.Action, error)
	// MoveBotAction writes an action that has the state from; Conflict with the reason CHANGED_MEANWHILE for another
	// state. Of concurrent calls from one state one succeeds.
	MoveBotAction(ctx context.Context, a bots.Action, from bots.ActionState) error
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
	return SettingRecord{ID: id, CompanyID: companyID, Settings: jsonOf(settings), Revision: revision}
}

// settingsOf parses the settings of a record; those of the zero record are zero.
func settingsOf[V any](r SettingRecord) V { return parsed[V](r.Settings) }

// BotUsageRecord is what a bot has used on a day, as engines store it.
type BotUsageRecord struct {
	ID         string    `bson:"_id"` // appId|day|chatUserId
	AppID      string    `bson:"appId"`
	ChatUserID string    `bson:"chatUserId"` // empty: all visitors
	Day        time.Time `bson:"day"`
	Questions  int64     `bson:"questions"`
	Tokens     int64     `bson:"tokens"`
	ExpiresAt  time.Time `bson:"expiresAt"`
}

// BotUsageRecordOf returns the record of a day on which a bot has used an amount.
func BotUsageRecordOf(of bots.UsageOf, used bots.Amount) BotUsageRecord {
	of.Day = bots.Day(of.Day)
	return BotUsageRecord{
		ID:    of.AppID + "|" + of.Day.Format(time.DateOnly) + "|" + of.ChatUserID,
		AppID: of.AppID, ChatUserID: of.ChatUserID, Day: of.Day,
		Questions: int64(used.Questions), Tokens: int64(used.Tokens), ExpiresAt: of.ExpiresAt(),
	}
}

// Amount returns what was used.
func (r BotUsageRecord) Amount() bots.Amount {
	return bots.Amount{Questions: int(r.Questions), Tokens: int(r.Tokens)}
}

// Usage returns what was used, with its day.
func (r BotUsageRecord) Usage() bots.Usage { return bots.Usage{Day: UTC(r.Day), Amount: r.Amount()} }

// BotCallRecord is a call as engines store it: its JSON, beside what queries compare.
type BotCallRecord struct {
	ID        string    `bson:"_id"`
	CompanyID string    `bson:"companyId"`
	AppID     string    `bson:"appId"`
	ChatID    string    `bson:"chatId"` // empty: none
	Call      string    `bson:"call"`   // JSON text
	ExpiresAt time.Time `bson:"expiresAt"`
}

// BotCallRecordOf returns the record of a call, with times as every engine stores them.
func BotCallRecordOf(c bots.Call) BotCallRecord {
	c.At = UTC(c.At)
	return BotCallRecord{
		ID: c.ID, CompanyID: c.CompanyID, AppID: c.AppID, ChatID: c.ChatID, Call: jsonOf(c), ExpiresAt: c.ExpiresAt(),
	}
}

// BotCall is the inverse of [BotCallRecordOf].
func (r BotCallRecord) BotCall() bots.Call {
	c := parsed[bots.Call](r.Call)
	c.CompanyID = r.CompanyID
	return c
}

// BotActionRecord is an action as engines store it: its JSON, beside what queries compare.
type BotActionRecord struct {
	ID        string           `bson:"_id"`
	CompanyID string           `bson:"companyId"`
	AppID     string           `bson:"appId"`
	ChatID    string           `bson:"chatId"`
	State     bots.ActionState `bson:"state"`
	Action    string           `bson:"action"` // JSON text
	ExpiresAt time.Time        `bson:"expiresAt"`
}

// BotActionRecordOf returns the record of an action, with times as every engine stores them.
func BotActionRecordOf(a bots.Action) BotActionRecord {
	a.AskedAt = UTC(a.AskedAt)
	return BotActionRecord{
		ID: a.ID, CompanyID: a.CompanyID, AppID: a.AppID, ChatID: a.ChatID, State: a.State,
		Action: jsonOf(a), ExpiresAt: a.ExpiresAt(),
	}
}

// BotAction is the inverse of [BotActionRecordOf].
func (r BotActionRecord) BotAction() bots.Action {
	a := parsed[bots.Action](r.Action)
	a.ID, a.CompanyID, a.AppID, a.ChatID, a.State = r.ID, r.CompanyID, r.AppID, r.ChatID, r.State
	return a
}

// jsonOf returns the JSON of a record, which has texts and finite numbers.
func jsonOf(v any) string {
	text, err := json.Marshal(v)
	if err != nil {
		panic("store: a record of texts and numbers does not encode: " + err.Error())
	}
	return string(text)
}

// parsed is the inverse of [jsonOf]; the empty text is the zero value.
func parsed[V any](text string) (v V) {
	if text == "" {
		return v
	}
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		panic(fmt.Sprintf("store: a stored record is not JSON: %v", err))
	}
	return v
}
