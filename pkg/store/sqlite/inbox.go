package sqlite

import (
	"context"
	"strconv"
	"strings"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

// inboxPage is the result of Inbox.
type inboxPage struct {
	entries []store.InboxEntry
	next    *store.InboxCursor
}

// Inbox implements [store.Chats]. It scans an index in the order of the list and reads the visitor of each chat; it
// evaluates conditions without an index in Go.
func (s *Store) Inbox(
	ctx context.Context,
	f store.InboxFilter,
	p store.InboxPage,
) ([]store.InboxEntry, *store.InboxCursor, error) {
	found, err := scan(ctx, s, "listing the inbox", func(c *conn) (inboxPage, error) {
		page := inboxPage{entries: []store.InboxEntry{}}
		var last store.InboxEntry
		seen := 0
		sql, args := inboxList(f, p)
		err := c.query(sql, func(r *row) bool {
			if len(page.entries) == p.Size() || seen == store.MaxExamined {
				page.next = f.CursorAt(last.Chat)
				return false
			}
			seen++
			last = store.InboxEntry{Chat: s.readChat(r)}
			if id := r.text(); id != "" {
				r.column--
				last.Visitor = readVisitor(r)
			}
			if f.Wants(last.Chat, last.Visitor) {
				page.entries = append(page.entries, last)
			}
			return true
		}, args...)
		return page, err
	})
	return found.entries, found.next, err
}

// inboxList returns the query of an inbox page, without a limit: reading stops when the page is full.
func inboxList(f store.InboxFilter, p store.InboxPage) (sql string, args []any) {
	where := "c.company_id = ?"
	if f.AppID != "" && !f.Unread && !f.Waiting {
		where, args = "c.app_id = ? AND +c.company_id = ?", append(args, f.AppID)
	}
	args = append(args, f.CompanyID)
	if f.Profile.Selects() {
		of, values := profileList(f.CompanyID, f.Profile)
		where, args = "+c.company_id = ? AND c.chat_user_id IN ("+of+")", append([]any{f.CompanyID}, values...)
		if f.AppID != "" {
			where, args = where+" AND +c.app_id = ?", append(args, f.AppID)
		}
	}
	if f.VisitorID != "" {
		where, args = "c.chat_user_id = ? AND +c.company_id = ?", []any{f.VisitorID, f.CompanyID}
	}
	order := " ORDER BY c.window_started_at DESC, c.id"
	if f.Waiting {
		where += " AND c.agent_in_control AND c.assignee = '' AND c.closed_at IS NULL"
		order = " ORDER BY c.control_changed_at, c.id"
	}
	if f.Unread {
		where += " AND c.visitor_wrote_at > ifnull(c.agents_read_at, 0)"
	}
	switch {
	case p.After != nil && f.Waiting:
		where += " AND (c.control_changed_at, c.id) > (?, ?)"
		args = append(args, p.After.ActivityAt, p.After.ChatID)
	case p.After != nil:
		where += " AND c.window_started_at <= ? AND (c.window_started_at < ? OR c.id > ?)"
		args = append(args, p.After.ActivityAt, p.After.ActivityAt, p.After.ChatID)
	}
	return `SELECT ` + qualified("c", chatColumns) + `, ` + qualified("v", visitorColumns) +
		` FROM chats c LEFT JOIN visitors v ON v.id = c.chat_user_id WHERE ` + where + order, args
}

// profileList returns the query of the ids of visitors with a profile. The most selective condition comes first and
// uses its index.
func profileList(companyID string, p store.Profile) (sql string, args []any) {
	where, args := "company_id = ?", []any{companyID}
	columns := map[string]string{store.KindUserID: "user_id", store.KindEmail: "email", store.KindPhone: "phone"}
	for _, identity := range store.Identities("", p) {
		values, column := identity.Accepted(), columns[identity.Kind]
		selected := column
		if len(args) > 1 {
			selected = "+" + column
		}
		where += " AND " + selected + " IN (?" + strings.Repeat(", ?", len(values)-1) + ") AND " + column + " != ''"
		for _, v := range values {
			args = append(args, v)
		}
	}
	return `SELECT id FROM visitors WHERE ` + where + ` LIMIT ` + strconv.Itoa(store.InboxProfiles), args
}

// qualified prefixes each column with the table's name.
func qualified(table, columns string) string {
	names := strings.Split(columns, ",")
	for i, name := range names {
		names[i] = table + "." + strings.TrimSpace(name)
	}
	return strings.Join(names, ", ")
}

// FindVisitors implements [store.Visitors].
func (s *Store) FindVisitors(
	ctx context.Context,
	companyID, text string,
	p store.Page,
) ([]chat.Visitor, string, error) {
	type page = store.Examination[chat.Visitor]
	read, err := scan(ctx, s, "looking for visitors", func(c *conn) (page, error) {
		page := page{Limit: p.Size(), Found: []chat.Visitor{}}
		err := c.query(
			`SELECT `+visitorColumns+` FROM visitors WHERE company_id = ? AND id > ? ORDER BY id`,
			func(r *row) bool {
				v := readVisitor(r)
				return page.Examine(v.ID, v, store.VisitorContains(v, text), 0)
			},
			companyID,
			p.After,
		)
		return page, err
	})
	return read.Found, read.Next, err
}

const (
	chatsOf       = `SELECT id FROM chats WHERE chat_user_id = ?1`
	erasedCalls   = `DELETE FROM bot_calls WHERE chat_id <> '' AND chat_id IN (` + chatsOf + `)`
	erasedActions = `DELETE FROM bot_actions WHERE chat_id IN (` + chatsOf + `)`
	erasedUsage   = `DELETE FROM bot_usage WHERE chat_user_id <> '' AND chat_user_id = ?1`
)

// EraseVisitor implements [store.Visitors] in one transaction, and freed pages are overwritten.
func (s *Store) EraseVisitor(ctx context.Context, chatUserID string) (store.Erased, error) {
	const messagesOf = `SELECT m.id FROM messages m JOIN chats c ON c.key = m.chat WHERE c.chat_user_id = ?1`
	return write(ctx, s, "erasing a visitor", func(c *conn) (e store.Erased, err error) {
		if err := c.query("PRAGMA secure_delete = ON", func(*row) bool { return true }); err != nil {
			return e, err
		}
		defer func() { err = orElse(err, c.query("PRAGMA secure_delete = OFF", func(*row) bool { return true })) }()
		for _, step := range []struct {
			sql   string
			count *int
		}{
			{`DELETE FROM statuses WHERE key IN (SELECT c.company_id || '|' || m.id FROM messages m JOIN chats c ON c.key = m.chat WHERE c.chat_user_id = ?1)`, &e.Statuses},
			{`DELETE FROM awaited_receipts WHERE chat_id IN (` + chatsOf + `)`, nil},
			{`DELETE FROM receipts WHERE chat_id IN (` + chatsOf + `)`, nil},
			{`DELETE FROM webhook_deliveries WHERE chat_id <> '' AND chat_id IN (` + chatsOf + `)`, nil},
			{erasedCalls, nil},
			{erasedActions, nil},
			{erasedUsage, nil},
			{`DELETE FROM messages WHERE id IN (` + messagesOf + `)`, &e.Messages},
			{`DELETE FROM chats WHERE chat_user_id = ?1`, &e.Chats},
			{`DELETE FROM files WHERE chat_user_id = ?1`, &e.Files},
			{`DELETE FROM identities WHERE chat_user_id = ?1`, &e.Identities},
			{`DELETE FROM visitors WHERE id = ?1`, &e.Visitors},
		} {
			n, err := c.exec(step.sql, chatUserID)
			if err != nil {
				return store.Erased{}, err
			}
			if step.count != nil {
				*step.count = n
			}
		}
		return e, nil
	})
}
