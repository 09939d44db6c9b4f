package sqlite

import (
	"context"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/store"
)

const settingColumns = `id, company_id, settings, revision`

func readSetting(r *row) store.SettingRecord {
	return store.SettingRecord{ID: r.text(), CompanyID: r.text(), Settings: r.text(), Revision: r.int()}
}

func readBot(r *row) bots.Bot               { return readSetting(r).Bot() }
func readConnection(r *row) bots.Connection { return readSetting(r).Connection() }

func replaceBot(c *conn, b bots.Bot) error {
	return replaceSetting(c, `bots`, store.BotRecordOf(b))
}

func replaceConnection(c *conn, v bots.Connection) error {
	return replaceSetting(c, `model_connections`, store.ConnectionRecordOf(v))
}

func replaceSetting(c *conn, table string, v store.SettingRecord) error {
	_, err := c.insert(orReplace, table, settingColumns, v.ID, v.CompanyID, v.Settings, v.Revision)
	return err
}

// putSetting writes a record if its revision is the stored one, 0 for a new one.
func putSetting(ctx context.Context, s *Store, act, table string, v store.SettingRecord) error {
	return update(ctx, s, act, func(c *conn) error {
		var stored int64
		_, err := c.first(`SELECT revision FROM `+table+` WHERE id = ?`, func(r *row) { stored = r.int() }, v.ID)
		if err != nil {
			return err
		}
		if stored != v.Revision {
			return apperr.ChangedMeanwhile.New()
		}
		v.Revision++
		return replaceSetting(c, table, v)
	})
}

// Bot implements [store.Bots].
func (s *Store) Bot(ctx context.Context, appID string) (bots.Bot, error) {
	const query = `SELECT ` + settingColumns + ` FROM bots WHERE id = ?`
	return one(ctx, s, "reading a bot", query, readBot, apperr.BotNotFound, appID)
}

// PutBot implements [store.Bots].
func (s *Store) PutBot(ctx context.Context, b bots.Bot) error {
	return putSetting(ctx, s, "writing a bot", `bots`, store.BotRecordOf(b))
}

// Bots implements [store.Bots].
func (s *Store) Bots(ctx context.Context, companyID string, p store.Page) ([]bots.Bot, error) {
	const from = `SELECT ` + settingColumns + ` FROM bots WHERE id > ?`
	return listOfCompany(ctx, s, "listing bots", from, readBot, companyID, p)
}

// ModelConnection implements [store.ModelConnections].
func (s *Store) ModelConnection(ctx context.Context, id string) (bots.Connection, error) {
	const query = `SELECT ` + settingColumns + ` FROM model_connections WHERE id = ?`
	return one(ctx, s, "reading a connection", query, readConnection, apperr.ConnectionNotFound, id)
}

// PutModelConnection implements [store.ModelConnections].
func (s *Store) PutModelConnection(ctx context.Context, c bots.Connection) error {
	return putSetting(ctx, s, "writing a connection", `model_connections`, store.ConnectionRecordOf(c))
}

// DeleteModelConnection implements [store.ModelConnections].
func (s *Store) DeleteModelConnection(ctx context.Context, id string) error {
	return update(ctx, s, "deleting a connection", func(c *conn) error {
		changed, err := c.exec(`DELETE FROM model_connections WHERE id = ?`, id)
		if err == nil && changed == 0 {
			err = apperr.ConnectionNotFound.New()
		}
		return err
	})
}

// ModelConnections implements [store.ModelConnections].
func (s *Store) ModelConnections(ctx context.Context, companyID string, p store.Page) ([]bots.Connection, error) {
	const from = `SELECT ` + settingColumns + ` FROM model_connections WHERE id > ?`
	return listOfCompany(ctx, s, "listing connections", from, readConnection, companyID, p)
}
