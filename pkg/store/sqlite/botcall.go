package sqlite

import (
	"context"

	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/store"
)

const callColumns = `id, company_id, app_id, chat_id, call, expires_at`

func readCall(r *row) bots.Call {
	return store.BotCallRecord{
		ID: r.text(), CompanyID: r.text(), AppID: r.text(), ChatID: r.text(), Call: r.text(), ExpiresAt: r.time(),
	}.BotCall()
}

// AppendBotCall implements [store.BotCalls].
func (s *Store) AppendBotCall(ctx context.Context, call bots.Call) error {
	v := store.BotCallRecordOf(call)
	return update(ctx, s, "logging a bot's call", func(c *conn) error {
		_, err := c.insert(
			orIgnore, `bot_calls`, callColumns,
			v.ID, v.CompanyID, v.AppID, v.ChatID, v.Call, v.ExpiresAt,
		)
		return err
	})
}

// BotCalls implements [store.BotCalls].
func (s *Store) BotCalls(ctx context.Context, appID string, p store.Page) ([]bots.Call, error) {
	sql, args := callList(appID, p)
	return all(ctx, s, "listing a bot's calls", sql, readCall, args...)
}

// callList returns the query of a page. Ids order calls by time.
func callList(appID string, p store.Page) (sql string, args []any) {
	sql, args = `SELECT `+callColumns+` FROM bot_calls WHERE app_id = ?`, []any{appID}
	if p.After != "" {
		sql, args = sql+` AND id < ?`, append(args, p.After)
	}
	return sql + ` ORDER BY id DESC LIMIT ?`, append(args, p.Size())
}
