// Package presence keeps which visitors have a socket, and which agents have the panel open.
//
// An entry holds for a time to live and is written again while it is true, so a process that dies leaves nothing behind for longer than that.
// redis.go keeps the entries for many machines, memory.go for one process.
package presence

import (
	"context"
	"time"
)

const (
	// Life is how long an entry holds, and Refresh how often its holder writes it again.
	Life    = time.Minute
	Refresh = 20 * time.Second
	// SeenLife is how long the time of the last connection is kept.
	SeenLife = 24 * time.Hour
)

// State is the presence of a visitor or an agent; the zero State: unknown.
type State struct {
	Online bool
	SeenAt time.Time // time of the last connection, if not online; zero: unknown
}

// Store keeps presence. It is safe for concurrent use. Its errors are apperr.Unavailable.
type Store interface {
	// Hold says that a holder, which is a process, sees these keys online, for [Life].
	Hold(ctx context.Context, holder string, keys ...string) error
	// Leave says that a holder does not see these keys any more, since the given time. A key that another holder has held since then stays
	// online.
	Leave(ctx context.Context, holder string, at time.Time, keys ...string) error
	// States returns what is known of the keys, in their order.
	States(ctx context.Context, keys ...string) ([]State, error)
}

// Visitor is the key of a visitor of an application.
func Visitor(appID, chatUserID string) string { return "visitor:" + appID + "-" + chatUserID }

// Room is the key of a visitor by the name of the visitor's room, appId-chatUserId.
func Room(name string) string { return "visitor:" + name }

// Agent is the key of a user of the panel who answers a company's visitors.
func Agent(companyID, userID string) string { return "agent:" + companyID + ":" + userID }

// Agents is the key of all agents of a company: online while one of them is.
func Agents(companyID string) string { return "agents:" + companyID }
