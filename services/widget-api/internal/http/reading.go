package http

import (
	"net/http"
	"strconv"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/services/widget-api/internal/conversation"
)

// Headers of GET /message: the specification fixes its body to the array of messages.
const (
	headerUnread   = "Parley-Unread"
	headerReadUpTo = "Parley-Read-Up-To"
	headerSeenUpTo = "Parley-Seen-Up-To"
	headerAgents   = "Parley-Agents"
)

func setReadingHeaders(h http.Header, r conversation.Reading) {
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

// plain reports whether an id, which another processing layer may have chosen, is valid in a header.
func plain(id string) bool {
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return false
		}
	}
	return true
}
