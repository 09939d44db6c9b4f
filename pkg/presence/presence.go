// Package presence stores which visitors have an open socket and which agents have the panel open.
//
// Entries expire unless their holder refreshes them, so the entries of a crashed process disappear. redis.go
// stores them for multiple processes, memory.go for one.
package presence

import (
	"context"
	"time"
)

const (
	// TTL is the TTL of an entry; Refresh is the interval at which its holder renews it.
	TTL     = time.Minute
	Refresh = 20 * time.Second
	// SeenTTL is the TTL of the time of the last connection.
	SeenTTL = 24 * time.Hour
)

// State is the presence of a visitor or an agent; the zero State: unknown.
type State struct {
	Online bool
	SeenAt time.Time // time of the last connection, if not online; zero: unknown
}

// Store stores presence. It is safe for concurrent use. Its errors are apperr.Unavailable.
type Store interface {
	// Hold marks the keys as online for [TTL]. The holder identifies a process.
	SetOnline(ctx context.Context, holder string, keys ...string) error
	// Leave marks the keys as offline since the given time. A key that another holder has held since stays online.
	SetOffline(ctx context.Context, holder string, at time.Time, keys ...string) error
	// States returns the states of the keys, in their order.
	States(ctx context.Context, keys ...string) ([]State, error)
}

// Visitor returns the key of a visitor of an application.
func Visitor(appID, chatUserID string) string { return "visitor:" + appID + "-" + chatUserID }

// Room returns the key of a visitor by room name (appId-chatUserId).
func Room(name string) string { return "visitor:" + name }

// Agent returns the key of an agent, a panel user of a company.
func Agent(companyID, userID string) string { return "agent:" + companyID + ":" + userID }

// Agents returns the key of all agents of a company; it is online while any agent is.
func Agents(companyID string) string { return "agents:" + companyID }
