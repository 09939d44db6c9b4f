package sqlite

import (
	"context"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/store"
)

const (
	actionColumns = `id, company_id, app_id, chat_id, state, action, expires_at`
	actionByID    = `SELECT ` + actionColumns + ` FROM bot_actions WHERE id = ?`
)

func readAction(r *row) bots.Action {
	return store.BotActionRecord{
		ID: r.text(), CompanyID: r.text(), AppID: r.text(), ChatID: r.text(),
		State: bots.ActionState(r.text()), Action: r.text(), ExpiresAt: r.time(),
	}.BotAction()
}

// AddBotAction implements [store.BotActions].
func (s *Store) AddBotAction(ctx context.Context, a bots.Action) (bots.Action, error) {
	v := store.BotActionRecordOf(a)
	return write(ctx, s, "adding a bot's action", func(c *conn) (stored bots.Action, err error) {
		_, err = c.insert(
			orIgnore, `bot_actions`, actionColumns,
			v.ID, v.CompanyID, v.AppID, v.ChatID, string(v.State), v.Action, v.ExpiresAt,
		)
		if err != nil {
			return stored, err
		}
		_, err = c.first(actionByID, func(r *row) { stored = readAction(r) }, a.ID)
		return stored, err
	})
}

// BotAction implements [store.BotActions].
func (s *Store) BotAction(ctx context.Context, id string) (bots.Action, error) {
	return one(ctx, s, "reading a bot's action", actionByID, readAction, apperr.BotActionNotFound, id)
}

// MoveBotAction implements [store.BotActions].
func (s *Store) MoveBotAction(ctx context.Context, a bots.Action, from bots.ActionState) error {
	v := store.BotActionRecordOf(a)
	return update(ctx, s, "moving a bot's action", func(c *conn) error {
		const sql = `UPDATE bot_actions SET state = ?, action = ? WHERE id = ? AND state = ?`
		changed, err := c.exec(sql, string(v.State), v.Action, v.ID, string(from))
		if err == nil && changed == 0 {
			err = apperr.ChangedMeanwhile.New()
		}
		return err
	})
}
