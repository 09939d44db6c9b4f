package sqlite

import (
	"context"
	"time"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

const fileColumns = `id, company_id, app_id, chat_user_id, sender_id, address, size, created_at, expires_at`

// PutFile implements [store.Files].
func (s *Store) PutFile(ctx context.Context, f chat.StoredFile) error {
	return update(ctx, s, "recording a file", func(c *conn) error { return writeFile(c, orIgnore, f) })
}

func writeFile(c *conn, verb string, f chat.StoredFile) error {
	_, err := c.insert(verb, `files`, fileColumns,
		f.ID, f.CompanyID, f.AppID, f.ChatUserID, f.SenderID, f.Address, f.Size, f.CreatedAt, f.ExpiresAt)
	return err
}

func replaceFile(c *conn, f chat.StoredFile) error { return writeFile(c, orReplace, f) }

func readFile(r *row) chat.StoredFile {
	return chat.StoredFile{
		ID:         r.text(),
		CompanyID:  r.text(),
		AppID:      r.text(),
		ChatUserID: r.text(),
		SenderID:   r.text(),
		Address:    r.text(),
		Size:       r.int(),
		CreatedAt:  r.time(),
		ExpiresAt:  r.time(),
	}
}

// DeleteFile implements [store.Files].
func (s *Store) DeleteFile(ctx context.Context, id string) error {
	return update(ctx, s, "removing a file's record", func(c *conn) error {
		_, err := c.exec(`DELETE FROM files WHERE id = ?`, id)
		return err
	})
}

// FileUsage implements [store.Files].
func (s *Store) FileUsage(ctx context.Context, of store.FileOwner, now time.Time) (store.FileUsage, error) {
	switch {
	case of.Sender != "":
		return s.usage(ctx, `sender_id`, of.Sender, now)
	case of.Address != "":
		return s.usage(ctx, `address`, of.Address, now)
	case of.Application != "":
		return s.usage(ctx, `app_id`, of.Application, now)
	}
	return s.usage(ctx, `company_id`, of.Company, now)
}

func usageOf(column string) string {
	return `SELECT ifnull(sum(size), 0), count(*) FROM files WHERE ` + column + ` = ? AND ifnull(expires_at > ?, TRUE)`
}

func (s *Store) usage(ctx context.Context, column, id string, now time.Time) (store.FileUsage, error) {
	return scan(ctx, s, "summing up files", func(c *conn) (u store.FileUsage, err error) {
		_, err = c.first(usageOf(column), func(r *row) { u = store.FileUsage{Bytes: r.int(), Count: r.int()} }, id, now)
		return u, err
	})
}
