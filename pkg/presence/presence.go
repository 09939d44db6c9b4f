// Package presence stores which visitors have a socket, and which agents have the panel open.
//
// An entry has a time to live and is refreshed while it is true, so entries of a crashed process expire. redis.go
// stores the entries for many machines, memory.go for one process.
package presence

import (
	"context"
	"time"
)

const (
	// Life is the time to live of an entry, and Refresh the interval at which its holder renews it.
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

// Store stores presence. It is safe for concurrent use. Its errors are apperr.Unavailable.
type Store interface {
	// Hold marks the keys as online for a holder, which is a process, for [Life].
	Hold(ctx context.Context, holder string, keys ...string) error
	// Leave marks the keys as offline for a holder since the given time. A key that another holder has held since then
	// stays online.
	Leave(ctx context.Context, holder string, at time.Time, keys ...string) error
	// States returns the state of each key, in their order.
	States(ctx context.Context, keys ...string) ([]State, error)
}

// Visitor returns the key of a visitor of an application.
func Visitor(appID, chatUserID string) string { return "visitor:" + appID + "-" + chatUserID }

// Room returns the key of a visitor by the name of the visitor's room, appId-chatUserId.
func Room(name string) string { return "visitor:" + name }

// Agent returns the key of a panel user who answers a company's visitors.
func Agent(companyID, userID string) string { return "agent:" + companyID + ":" + userID }

// Agents returns the key of all agents of a company, which is online while one of them is.
func Agents(companyID string) string { return "agents:" + companyID }
