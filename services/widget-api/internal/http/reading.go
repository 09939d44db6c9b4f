package http

import (
	"net/http"
	"strconv"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/services/widget-api/internal/conversation"
)

// What GET /message tells beside the messages, whose array the specification fixes.
const (
	headerUnread   = "Parley-Unread"
	headerReadUpTo = "Parley-Read-Up-To"
	headerSeenUpTo = "Parley-Seen-Up-To"
	headerAgents   = "Parley-Agents"
)

func tellReading(h http.Header, r conversation.Reading) {
	h.Set(headerUnread, strconv.Itoa(r.Unread))
	if r.ReadUpTo != "" && plain(r.ReadUpTo) {
		h.Set(headerReadUpTo, r.ReadUpTo)
	}
	if !r.SeenUpTo.IsZero() {
		h.Set(headerSeenUpTo, r.SeenUpTo.UTC().Format(chat.TimeFormat))
	}
	if r.AgentsKnown {
		word := "away"
		if r.AgentsOnline {
			word = "online"
		}
		h.Set(headerAgents, word)
	}
}

// plain reports whether an id, which a foreign processing layer may have chosen, can stand in a header.
func plain(id string) bool {
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return false
		}
	}
	return true
}
