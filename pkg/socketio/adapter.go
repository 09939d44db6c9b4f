package socketio

import (
	"context"
	"encoding/json"
	"time"
)

// Broadcast is one event on its way to all sockets that a Selection names.
type Broadcast struct {
	Selection
	// Data is the JSON array of the event's name and arguments, with placeholders for binary ones.
	Data json.RawMessage
	// Attachments are the binary arguments in the order of their numbers.
	Attachments [][]byte
	// Volatile drops the event for sockets that cannot take it at once.
	Volatile bool
	// Metadata goes to other nodes with the event, and not to the sockets: what the application's nodes attach to it. Official
	// nodes ignore it.
	Metadata map[string]string
}

// Selection names sockets of a namespace: those in any of Rooms, or all if there are none, save those in
// any of Except. A socket's ID is a room that it alone is in.
type Selection struct {
	Rooms  []string
	Except []string
}

// Adapter carries a namespace's broadcasts to the other nodes of a cluster. Its methods are called from
// many goroutines and never under a lock.
type Adapter interface {
	// Publish hands b to all other nodes. It returns when the carrier has accepted it.
	Publish(ctx context.Context, b *Broadcast) error
	// Subscribe makes sure that what other nodes publish to rooms from now on arrives here. It returns when
	// that is confirmed. Subscriptions are counted; each is undone by one Unsubscribe, in any order.
	Subscribe(ctx context.Context, rooms ...string) error
	// Unsubscribe undoes Subscribe and does not wait.
	Unsubscribe(rooms ...string)
	// Command carries a change of rooms or a disconnect to all other nodes.
	Command(ctx context.Context, c Command) error
	// FetchSockets asks the other nodes for their sockets.
	FetchSockets(ctx context.Context, sel Selection) ([]SocketInfo, error)
	// ServerSideEmit sends an event to the other nodes themselves.
	ServerSideEmit(ctx context.Context, data json.RawMessage) error
	// Close ends all that the adapter has started.
	Close() error
}

// OrderedAdapter is an Adapter whose carrier brings what PublishOrdered hands it to all nodes, this one included, in one order for each
// room.
type OrderedAdapter interface {
	Adapter
	// PublishOrdered hands each of batch to all nodes, in order. It returns nil if all were accepted, or else the error of each. It may
	// last longer than ctx, within a time limit of its own.
	PublishOrdered(ctx context.Context, batch []*Broadcast) []error
}

// Command changes the sockets that its Selection names. Exactly one kind of change is set.
type Command struct {
	Selection
	Join       []string // rooms to join
	Leave      []string // rooms to leave
	Disconnect bool     // leave the namespace
	Close      bool     // with Disconnect: close the connection too
}

// Local is what an Adapter sees of the namespace that it serves. Its methods concern the sockets of this
// node only.
type Local interface {
	// Name returns the namespace's name, with its slash.
	Name() string
	// Deliver sends b to the sockets here and returns how many they are.
	Deliver(b *Broadcast) int
	// DeliverWithAck is Deliver that asks for acknowledgements; the first argument of each is given to ack.
	DeliverWithAck(b *Broadcast, timeout time.Duration, ack func(arg json.RawMessage)) int
	// Apply carries out c. It may take as long as joining rooms takes.
	Apply(ctx context.Context, c Command) error
	// LocalSockets describes the sockets here.
	LocalSockets(sel Selection) []SocketInfo
	// Rooms lists the rooms that have a member here.
	Rooms() []string
	// ServerSideEvent calls the handler of a server-side event; ack is nil if none is wanted.
	ServerSideEvent(data json.RawMessage, ack func(answer json.RawMessage))
}

// SocketInfo describes a socket, here or on another node.
type SocketInfo struct {
	ID        string          `json:"id"`
	Handshake json.RawMessage `json:"handshake"`
	Rooms     []string        `json:"rooms"`
	Data      json.RawMessage `json:"data"`
}

// noAdapter serves a single node.
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
