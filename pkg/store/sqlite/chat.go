package sqlite

import (
	"context"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

const chatColumns = `id, company_id, app_id, chat_user_id, channel, created_at, window_started_at, visitor_wrote_at, closed_at,
	agent_in_control, assignee, control_changed_at, agents_read_at, handover_by, handover_reason, handover_note, handover_at,
	rating_score, rating_comment, rating_first_at, rating_at`

const selectChat = `SELECT ` + chatColumns + ` FROM chats WHERE id = ?`

func (s *Store) readChat(r *row) chat.Chat { return s.withIdleClose(readChat(r)) }

// readChat reads a chat without the time that follows from the store's settings.
func readChat(r *row) chat.Chat {
	c := chat.Chat{
		ID: r.text(), CompanyID: r.text(), AppID: r.text(), ChatUserID: r.text(), Channel: chat.Channel(r.text()),
		CreatedAt: r.time(), WindowStartedAt: r.time(), VisitorWroteAt: r.time(), ClosedAt: r.time(),
		Control: chat.Control{Agent: r.bool(), Assignee: r.text(), ChangedAt: r.time()}, AgentsReadAt: r.time(),
	}
	c.Control.Handover = chat.Handover{By: r.text(), Reason: r.text(), Note: r.text(), At: r.time()}
	c.Rating = chat.Rating{Score: int(r.int()), Comment: r.text(), FirstAt: r.time(), At: r.time()}
	return c
}

// withIdleClose sets when the chat closes by idleness, derived from the visitor's last message.
func (s *Store) withIdleClose(c chat.Chat) chat.Chat {
	if s.idleClose > 0 && !c.WindowStartedAt.IsZero() {
		c.IdleClosesAt = c.WindowStartedAt.Add(s.idleClose)
	}
	return c
}

// Chat implements [store.Chats].
func (s *Store) Chat(ctx context.Context, id string) (chat.Chat, error) {
	return one(ctx, s, "reading a chat", selectChat, s.readChat, apperr.ChatNotFound, id)
}

// ChangeChat implements [store.Chats] with one commit.
func (s *Store) ChangeChat(ctx context.Context, id string, change store.ChatChange) (chat.Chat, error) {
	return write(ctx, s, "changing a chat", func(c *conn) (changed chat.Chat, err error) {
		if err := changeChat(c, id, change); err != nil {
			return chat.Chat{}, err
		}
		found, err := c.first(selectChat, func(r *row) { changed = s.readChat(r) }, id)
		if err == nil && !found {
			err = apperr.ChatNotFound.New()
		}
		return changed, err
	})
}

const (
	setClosed  = `UPDATE chats SET closed_at = min(ifnull(closed_at, ?2), ?2) WHERE id = ?1`
	setControl = `UPDATE chats SET agent_in_control = ?2, assignee = ?3, control_changed_at = ?4,
			handover_by = ?5, handover_reason = ?6, handover_note = ?7, handover_at = ?8
		WHERE id = ?1 AND ifnull(control_changed_at < ?4, TRUE)`
	setRating = `UPDATE chats SET rating_score = ?2, rating_comment = ?3, rating_at = ?4,
			rating_first_at = min(ifnull(rating_first_at, ?4), ?4)
		WHERE id = ?1 AND ifnull(rating_at < ?4, TRUE)`
	setAgentsRead = `UPDATE chats SET agents_read_at = max(ifnull(agents_read_at, ?2), ?2) WHERE id = ?1`
)

// changeChat runs a statement for each member of the change, so that it writes only the indexes concerned. It does
// nothing if the chat does not exist.
func changeChat(c *conn, id string, change store.ChatChange) error {
	control, rating := change.Control, change.Rating
	h := control.Handover
	for _, member := range []struct {
		at   time.Time
		sql  string
		args []any
	}{
		{change.ClosedAt, setClosed, []any{id, change.ClosedAt}},
		{control.ChangedAt, setControl, []any{
			id, control.Agent, control.Assignee, control.ChangedAt, h.By, h.Reason, h.Note, h.At,
		}},
		{rating.At, setRating, []any{id, rating.Score, rating.Comment, rating.At}},
		{change.AgentsReadAt, setAgentsRead, []any{id, change.AgentsReadAt}},
	} {
		if member.at.IsZero() {
			continue
		}
		if _, err := c.exec(member.sql, member.args...); err != nil {
			return err
		}
	}
	return nil
}

const unclosedChat = `SELECT ` + chatColumns + ` FROM chats WHERE chat_user_id = ? AND closed_at IS NULL`

// unclosed returns the visitor's chat that is not closed; there is at most one.
func (s *Store) unclosed(c *conn, visitorID string) (current chat.Chat, found bool, err error) {
	found, err = c.first(unclosedChat, func(r *row) { current = s.readChat(r) }, visitorID)
	return current, found, err
}

// openedChat is the result of OpenChat.
type openedChat struct {
	chat  chat.Chat
	fresh bool // this call created it
}

// OpenChat implements [store.Chats]. The index chats_open guarantees that a visitor has at most one open chat.
func (s *Store) OpenChat(ctx context.Context, v chat.Visitor, n store.NewChat) (chat.Chat, bool, error) {
	owner, err := uuid.Parse(v.ID)
	if err != nil {
		return chat.Chat{}, false, invalidVisitorID(err)
	}
	if err := checkGreetings(n); err != nil {
		return chat.Chat{}, false, err
	}
	// Most visitors have an open chat: a reader finds it without waiting for the writer.
	current, err := s.current(ctx, v.ID, n.Now)
	if !apperr.Is(err, apperr.NotFound) {
		return current, false, err
	}
	o, err := write(ctx, s, "opening a chat", func(c *conn) (openedChat, error) { return s.open(c, owner, v, n) })
	return o.chat, o.fresh, err
}

// current returns the visitor's chat that is open at now, or NotFound.
func (s *Store) current(ctx context.Context, visitorID string, now time.Time) (chat.Chat, error) {
	return read(ctx, s, "reading a visitor's chat", func(c *conn) (chat.Chat, error) {
		unclosed, found, err := s.unclosed(c, visitorID)
		if err == nil && (!found || !unclosed.Open(now)) {
			return chat.Chat{}, apperr.ChatNotFound.New()
		}
		return unclosed, err
	})
}

func invalidVisitorID(err error) error {
	return apperr.ValidationError.WithMessage("The visitor's id is not a UUID").Wrap(err)
}

func checkGreetings(n store.NewChat) error {
	for _, m := range n.Greetings {
		if err := store.CheckMessage(m); err != nil {
			return err
		}
	}
	return nil
}

// open returns the visitor's chat that is open at n.Now, or creates one.
func (s *Store) open(c *conn, owner uuid.UUID, v chat.Visitor, n store.NewChat) (openedChat, error) {
	current, found, err := s.unclosed(c, v.ID)
	switch {
	case err != nil:
		return openedChat{}, err
	case found && current.Open(n.Now):
		return openedChat{chat: current}, nil
	case found: // idle
		if err := changeChat(c, current.ID, store.ChatChange{ClosedAt: current.IdleClosesAt}); err != nil {
			return openedChat{}, err
		}
	}
	number, err := nextNumber(c, owner, v)
	if err != nil {
		return openedChat{}, err
	}
	created, err := s.create(c, store.ChatID(owner, number), v, n)
	if err != nil {
		return openedChat{}, err
	}
	_, err = c.exec(`UPDATE visitors SET chat_number = max(chat_number, ?) WHERE id = ?`, number, v.ID)
	return openedChat{chat: created, fresh: true}, err
}

// create inserts an open chat with its greetings.
func (s *Store) create(c *conn, id string, v chat.Visitor, n store.NewChat) (created chat.Chat, err error) {
	created = s.withIdleClose(chat.Chat{
		ID: id, CompanyID: v.CompanyID, AppID: v.AppID, ChatUserID: v.ID, Channel: n.Channel,
		CreatedAt: store.UTC(n.Now), WindowStartedAt: store.UTC(n.Now), Control: n.Control(),
	})
	if err := insertChat(c, created); err != nil {
		return chat.Chat{}, err
	}
	key := c.LastInsertRowID()
	for _, m := range n.Greetings {
		if _, err := insertMessage(c, key, m); err != nil {
			return chat.Chat{}, err
		}
	}
	return created, nil
}

// nextNumber returns the number of the visitor's next chat. The visitor's ChatNumber is a hint where to begin; it may
// be outdated.
func nextNumber(c *conn, owner uuid.UUID, v chat.Visitor) (int, error) {
	number := v.ChatNumber
	larger := func(r *row) { number = max(number, int(r.int())) }
	if _, err := c.first(`SELECT chat_number FROM visitors WHERE id = ?`, larger, v.ID); err != nil {
		return 0, err
	}
	for number = max(number, 1); ; number++ {
		taken, err := c.first(`SELECT 1 FROM chats WHERE id = ?`, func(*row) {}, store.ChatID(owner, number))
		if err != nil || !taken {
			return number, err
		}
	}
}

func insertChat(c *conn, d chat.Chat) error { return writeChat(c, d, orFail, `NULL`) }

// replaceChat keeps the key of an existing chat: its messages refer to it.
func replaceChat(c *conn, d chat.Chat) error {
	return writeChat(c, d, orReplace, `(SELECT key FROM chats WHERE id = ?1)`)
}

// writeChat inserts a row with a key; NULL: the next free one.
func writeChat(c *conn, d chat.Chat, verb, key string) error {
	_, err := c.exec(
		verb+` INTO chats (key, `+chatColumns+`)
		VALUES (`+key+`, ?1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)`,
		d.ID, d.CompanyID, d.AppID, d.ChatUserID, string(d.Channel), d.CreatedAt, d.WindowStartedAt,
		d.VisitorWroteAt, d.ClosedAt, d.Control.Agent, d.Control.Assignee, d.Control.ChangedAt,
		d.AgentsReadAt, d.Control.Handover.By, d.Control.Handover.Reason, d.Control.Handover.Note,
		d.Control.Handover.At, d.Rating.Score, d.Rating.Comment, d.Rating.FirstAt, d.Rating.At,
	)
	return err
}

// Chats implements [store.Chats]. The status is evaluated while reading: idleness depends on the time.
func (s *Store) Chats(ctx context.Context, f store.ChatFilter, p store.Page) ([]chat.Chat, error) {
	return scan(ctx, s, "listing chats", func(c *conn) ([]chat.Chat, error) {
		sql, args, err := chatList(c, f, p)
		if err != nil {
			return nil, err
		}
		found := []chat.Chat{}
		err = c.query(sql, func(r *row) bool {
			if d := s.readChat(r); f.Status == "" || d.Status(f.Now) == f.Status {
				found = append(found, d)
			}
			return len(found) < p.Size()
		}, args...)
		return found, err
	})
}

// chatList returns the query of a list. The most selective condition comes first and uses its index, which has the
// list's order; a unary plus keeps the others from using theirs.
func chatList(c *conn, f store.ChatFilter, p store.Page) (sql string, args []any, err error) {
	var where []string
	for _, condition := range []struct{ column, value string }{
		{"chat_user_id", f.ChatUserID}, {"app_id", f.AppID}, {"company_id", f.CompanyID},
	} {
		if condition.value == "" {
			continue
		}
		if len(where) > 0 {
			condition.column = "+" + condition.column
		}
		where, args = append(where, condition.column+" = ?"), append(args, condition.value)
	}
	if p.After != "" {
		var after time.Time
		found, err := c.first(`SELECT created_at FROM chats WHERE id = ?`, func(r *row) { after = r.time() }, p.After)
		if err != nil {
			return "", nil, err
		}
		if !found {
			return "", nil, apperr.ChatNotFound.New()
		}
		where = append(where, "(created_at < ? OR created_at = ? AND id > ?)")
		args = append(args, after, after, p.After)
	}
	sql = `SELECT ` + chatColumns + ` FROM chats`
	if len(where) > 0 {
		sql += ` WHERE ` + strings.Join(where, " AND ")
	}
	return sql + ` ORDER BY created_at DESC, id`, args, nil
}
