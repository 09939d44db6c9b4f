package sqlite

import (
	"context"
	"time"

	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/store"
)

const usageColumns = `app_id, chat_user_id, day, questions, tokens, expires_at`

const (
	usageOfDay         = `SELECT questions, tokens FROM bot_usage WHERE app_id = ? AND chat_user_id = ? AND day = ?`
	usageOfApplication = `SELECT day, questions, tokens FROM bot_usage
	WHERE app_id = ? AND chat_user_id = '' AND day >= ? ORDER BY day`
)

func readAmount(r *row) bots.Amount {
	return bots.Amount{Questions: int(r.int()), Tokens: int(r.int())}
}

func readUsage(r *row) bots.Usage { return bots.Usage{Day: r.time(), Amount: readAmount(r)} }

// spending is the result of SpendBot.
type spending struct {
	used bots.Amount
	ok   bool
}

// SpendBot implements [store.BotUsage]. There is one writer, so that nothing changes between the read and the write.
func (s *Store) SpendBot(
	ctx context.Context,
	of bots.UsageOf,
	add, bound bots.Amount,
) (bots.Amount, bool, error) {
	result, err := write(ctx, s, "counting a bot's usage", func(c *conn) (spending, error) {
		return spend(c, of, add, bound)
	})
	return result.used, result.ok, err
}

func spend(c *conn, of bots.UsageOf, add, bound bots.Amount) (spending, error) {
	var used bots.Amount
	day := milliseconds(bots.Day(of.Day))
	_, err := c.first(usageOfDay, func(r *row) { used = readAmount(r) }, of.AppID, of.ChatUserID, day)
	if err != nil {
		return spending{}, err
	}
	after := used.Add(add)
	if !after.Within(bound) {
		return spending{used: used}, nil
	}
	v := store.BotUsageRecordOf(of, after)
	_, err = c.insert(
		orReplace, `bot_usage`, usageColumns,
		v.AppID, v.ChatUserID, day, v.Questions, v.Tokens, v.ExpiresAt,
	)
	return spending{used: after, ok: true}, err
}

// BotUsage implements [store.BotUsage].
func (s *Store) BotUsage(ctx context.Context, appID string, since time.Time) ([]bots.Usage, error) {
	return all(
		ctx, s, "listing a bot's usage", usageOfApplication, readUsage,
		appID, milliseconds(bots.Day(since)),
	)
}
