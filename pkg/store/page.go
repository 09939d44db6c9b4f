package store

import (
	"time"

	"github.com/parley-chat/parley/pkg/chat"
)

// Page is a part of a list.
type Page struct {
	After string // the id of the last item of the page before; empty: from the beginning
	Limit int    // at most so many; 0: all
}

// ChatFilter selects chats; an empty field selects all.
type ChatFilter struct {
	CompanyID  string
	AppID      string
	ChatUserID string
	Status     chat.Status
	Now        time.Time // the time at which Status is evaluated
}

// HistoryQuery selects a part of a chat's history: the newest messages before a cursor.
type HistoryQuery struct {
	Before   string // the message before which the part ends; empty: the end of the history
	Limit    int    // at most so many messages; 0: no limit
	MaxBytes int    // of data; messages beyond are left out, but one is always returned; 0: no limit
}
