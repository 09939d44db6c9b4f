package store

import (
	"context"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/parley-chat/parley/pkg/chat"
)

// MaxPage bounds each page of records, and so the memory of a call, whatever the caller asks for. A caller
// that needs all records uses [All].
const MaxPage = 1000

// Page selects a page of a list.
type Page struct {
	After string // the id of the previous page's last item; empty: from the beginning
	Limit int    // maximum number of items, at most [MaxPage]; 0: [MaxPage]
}

// Size returns the limit with its default and its maximum.
func (p Page) Size() int { return pageSize(p.Limit) }

func pageSize(limit int) int {
	if limit <= 0 {
		return MaxPage
	}
	return min(limit, MaxPage)
}

// All yields the records of a list that is read page by page; id returns the cursor after a record. It stops
// at the first error.
func All[V any](
	ctx context.Context,
	list func(context.Context, Page) ([]V, error),
	id func(V) string,
) iter.Seq2[V, error] {
	return func(yield func(V, error) bool) {
		p := Page{Limit: walkedPage}
		for {
			records, err := list(ctx, p)
			if err != nil {
				var none V
				yield(none, err)
				return
			}
			for _, r := range records {
				if !yield(r, nil) {
					return
				}
				p.After = id(r)
			}
			if len(records) < p.Limit {
				return
			}
		}
	}
}

// walkedPage is the page size of [All]: few calls, and little memory for records of some KiB.
const walkedPage = 100

// Bounds of a page of a list that examines records one by one: the inbox, visitors and webhook deliveries.
const (
	// MaxExamined is the maximum number of records that a page examines. A filter that matches nothing costs no more
	// than some milliseconds of a database connection, and the caller goes on from the next page.
	MaxExamined = 2000
	// MaxDeliveryBytes is the size of a page of webhook deliveries; the last one may be beyond it. A delivery has up
	// to 64 KiB of body, and as much of attempts.
	MaxDeliveryBytes = 1 << 20
)

// Examination collects a page of a list that examines records one by one, in the order of the list.
type Examination[V any] struct {
	Limit    int   // maximum number of records of the page
	MaxBytes int64 // maximum size of the page, beyond which its last record may be; 0: no limit

	Found []V
	Next  string // the cursor of the next page; "" on the last page

	last     string // id of the last record examined
	examined int
	bytes    int64
}

// Examine adds a record that is wanted to the page. It returns false if the page has ended before this record; the
// engine then stops reading.
func (e *Examination[V]) Examine(id string, v V, wanted bool, size int64) bool {
	full := len(e.Found) >= e.Limit || e.MaxBytes > 0 && e.bytes >= e.MaxBytes
	if full || e.examined == MaxExamined {
		e.Next = e.last
		return false
	}
	e.examined++
	e.last = id
	if wanted {
		e.Found = append(e.Found, v)
		e.bytes += size
	}
	return true
}

// ChatFilter selects chats; an empty field matches all.
type ChatFilter struct {
	CompanyID  string
	AppID      string
	ChatUserID string
	Status     chat.Status
	Now        time.Time // the time at which Status is evaluated
}

// HistoryQuery selects a page of a chat's history: the newest messages before a cursor.
type HistoryQuery struct {
	Before   string // exclusive upper bound, a message id; empty: the end of the history
	Limit    int    // maximum number of messages, at most [MaxPage]; 0: [MaxPage]
	MaxBytes int    // maximum total size of data; at least one message is returned; 0: no limit
}

// Size returns the limit with its default and its maximum.
func (q HistoryQuery) Size() int { return pageSize(q.Limit) }

// InboxFilter selects chats of a company's inbox; an empty field matches all.
type InboxFilter struct {
	CompanyID string // required
	AppID     string
	Status    string  // pending, active, closed, or open: pending and active
	Text      string  // in the visitor's names, e-mail address, phone number or user id, case-insensitive
	Profile   Profile // exact match in the visitor's profile
	Unread    bool    // only chats with unread messages
	Assignee  string  // id of a user, or [NoAssignee]
	Control   string  // [ControlAgent] or [ControlBot]
	VisitorID string  // chatUserId
	// only chats that wait for an agent ([chat.Chat.Waiting]), in order of the change that made them wait
	Waiting bool
	Now     time.Time // the time at which Status is evaluated
}

// Profile selects visitors by their profile; an empty field matches all. An e-mail address matches as registered or in
// lower case, a phone number with or without its leading +.
type Profile struct {
	UserID string
	Email  string
	Phone  string
}

// Selects reports whether any field is set.
func (p Profile) Selects() bool { return p != Profile{} }

// Accepted returns the values of a visitor's profile that match the identity's value: how an e-mail address and a phone
// number may be stored.
func (i Identity) Accepted() []string {
	switch i.Kind {
	case KindEmail:
		return []string{i.Value, strings.ToLower(i.Value)}
	case KindPhone:
		digits := strings.TrimPrefix(i.Value, "+")
		return []string{digits, "+" + digits}
	}
	return []string{i.Value}
}

// Wants reports whether the visitor matches the profile.
func (p Profile) Wants(v chat.Visitor) bool {
	has := map[string]string{KindUserID: v.UserID, KindEmail: v.Email, KindPhone: v.Phone}
	for _, i := range Identities("", p) {
		if !slices.Contains(i.Accepted(), has[i.Kind]) {
			return false
		}
	}
	return true
}

// Values of an [InboxFilter].
const (
	StatusOpen   = "open"
	NoAssignee   = "none"
	ControlAgent = "agent"
	ControlBot   = "bot"
)

// Wants reports whether a chat and its visitor match the filter.
func (f InboxFilter) Wants(c chat.Chat, v chat.Visitor) bool {
	switch {
	case c.CompanyID != f.CompanyID, f.AppID != "" && c.AppID != f.AppID, f.Unread && !c.Unread():
		return false
	case f.VisitorID != "" && c.ChatUserID != f.VisitorID, f.Waiting && !c.Waiting(f.Now):
		return false
	case f.Assignee == NoAssignee && c.Control.Assignee != "",
		f.Assignee != "" && f.Assignee != NoAssignee && c.Control.Assignee != f.Assignee:
		return false
	case f.Control == ControlAgent && !c.Control.Agent, f.Control == ControlBot && c.Control.Agent:
		return false
	case f.Status == StatusOpen && !c.Open(f.Now),
		f.Status != "" && f.Status != StatusOpen && string(c.Status(f.Now)) != f.Status:
		return false
	}
	return f.Profile.Wants(v) && VisitorContains(v, f.Text)
}

// VisitorContains reports whether a visitor's names, e-mail address, phone number or user id contain the text,
// case-insensitively.
func VisitorContains(v chat.Visitor, text string) bool {
	if text == "" {
		return true
	}
	text = strings.ToLower(text)
	for _, field := range []string{v.FirstName + " " + v.LastName, v.Email, v.Phone, v.UserID} {
		if strings.Contains(strings.ToLower(field), text) {
			return true
		}
	}
	return false
}

// InboxEntry is a chat with its visitor; the zero Visitor if missing.
type InboxEntry struct {
	Chat    chat.Chat
	Visitor chat.Visitor
}

// InboxCursor is the position of a chat in the inbox.
type InboxCursor struct {
	ActivityAt time.Time // of the chat, its WindowStartedAt; of a waiting one, the ChangedAt of its control
	ChatID     string
}

// CursorAt returns the cursor after a chat of the filter.
func (f InboxFilter) CursorAt(c chat.Chat) *InboxCursor {
	if f.Waiting {
		return &InboxCursor{ActivityAt: c.Control.ChangedAt, ChatID: c.ID}
	}
	return &InboxCursor{ActivityAt: c.WindowStartedAt, ChatID: c.ID}
}

// InboxPage selects a page of the inbox.
type InboxPage struct {
	After *InboxCursor // nil: from the beginning
	Limit int          // maximum number of entries, at most [MaxPage]; 0: 50
}

const (
	defaultInboxPage = 50
	// InboxProfiles is the maximum number of visitors with one profile that a page examines.
	InboxProfiles = 1000
)

// Size returns the limit with its default.
func (p InboxPage) Size() int {
	if p.Limit <= 0 {
		return defaultInboxPage
	}
	return pageSize(p.Limit)
}
