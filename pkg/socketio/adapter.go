package socketio

import (
	"context"
	"encoding/json"
	"time"
)

// Broadcast is an event for all sockets that a Selection matches.
type Broadcast struct {
	Selection
	// Data is the JSON array of the event's name and arguments, with placeholders for binary arguments.
	Data json.RawMessage
	// Attachments are the binary arguments in the order of their numbers.
	Attachments [][]byte
	// Volatile drops the event for sockets that cannot send it immediately.
	Volatile bool
	// Metadata is set by the application and sent with the event to other nodes, but not to sockets. Official
	// nodes ignore it.
	Metadata map[string]string
}

// Selection selects sockets of a namespace: those in any of Rooms, or all if Rooms is empty, except those in
// any of Except. Each socket is the only member of the room named by its ID.
type Selection struct {
	Rooms  []string
	Except []string
}

// Adapter connects a namespace to the other nodes of a cluster. Its methods are called
// concurrently, and never under a lock.
type Adapter interface {
	// Publish sends b to all other nodes. It returns when the broker has accepted it.
	Publish(ctx context.Context, b *Broadcast) error
	// Subscribe subscribes to rooms. When it returns nil, the subscription is confirmed: later broadcasts of
	// other nodes to these rooms arrive. Subscriptions are counted; each needs one Unsubscribe, in any order.
	Subscribe(ctx context.Context, rooms ...string) error
	// Unsubscribe reverts one Subscribe. It does not block.
	Unsubscribe(rooms ...string)
	// Command sends a change of rooms or a disconnect to all other nodes.
	Command(ctx context.Context, c Command) error
	// FetchSockets returns the sockets of the other nodes.
	FetchSockets(ctx context.Context, sel Selection) ([]SocketInfo, error)
	// ServerSideEmit sends an event to the other nodes, not to their sockets.
	ServerSideEmit(ctx context.Context, data json.RawMessage) error
	// Close stops everything that the adapter has started.
	Close() error
}

// OrderedAdapter is an Adapter whose broker delivers the broadcasts of PublishOrdered to all nodes, including
// this one, in the same order for each room.
type OrderedAdapter interface {
	Adapter
	// PublishOrdered sends the broadcasts to all nodes, in order. It returns nil if all were accepted,
	// otherwise one error or nil for each. It may outlast ctx, up to the adapter's own timeout.
	PublishOrdered(ctx context.Context, batch []*Broadcast) []error
}

// Command changes the sockets that its Selection matches. Exactly one of Join, Leave and Disconnect is set.
type Command struct {
	Selection
	Join       []string // rooms to join
	Leave      []string // rooms to leave
	Disconnect bool     // leave the namespace
	Close      bool     // with Disconnect: close the connection too
}

// Local is an Adapter's view of its namespace. Its methods concern only the sockets of this
// node.
type Local interface {
	// Name returns the namespace's name, with the leading slash.
	Name() string
	// HandleBroadcast handles a broadcast for the local sockets and returns the number that it was sent to.
	HandleBroadcast(b *Broadcast) int
	// HandleBroadcastWithAck is HandleBroadcast with acknowledgements; ack is called with the first argument of each.
	HandleBroadcastWithAck(b *Broadcast, timeout time.Duration, ack func(arg json.RawMessage)) int
	// Apply executes c. It may block while sockets join rooms.
	Apply(ctx context.Context, c Command) error
	// LocalSockets returns the local sockets.
	LocalSockets(sel Selection) []SocketInfo
	// Rooms returns the rooms with a local member.
	Rooms() []string
	// ServerSideEvent calls the handler of a server-side event; ack is nil if no acknowledgement is requested.
	ServerSideEvent(data json.RawMessage, ack func(answer json.RawMessage))
}

// SocketInfo describes a socket of any node.
type SocketInfo struct {
	ID        string          `json:"id"`
	Handshake json.RawMessage `json:"handshake"`
	Rooms     []string        `json:"rooms"`
	Data      json.RawMessage `json:"data"`
}

// noAdapter is the adapter of a single node.
type noAdapter struct{}

func (noAdapter) Publish(context.Context, *Broadcast) error             { return nil }
func (noAdapter) Subscribe(context.Context, ...string) error            { return nil }
func (noAdapter) Unsubscribe(...string)                                 {}
func (noAdapter) Command(context.Context, Command) error                { return nil }
func (noAdapter) ServerSideEmit(context.Context, json.RawMessage) error { return nil }
func (noAdapter) Close() error                                          { return nil }
func (noAdapter) FetchSockets(context.Context, Selection) ([]SocketInfo, error) {
	return nil, nil
}
