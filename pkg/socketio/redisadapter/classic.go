package redisadapter

// The format of the official adapter: one channel for each room, broadcasts in MessagePack (broadcast.go),
// requests and responses in JSON.

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/tinylib/msgp/msgp"

	"github.com/parley-chat/parley/pkg/socketio"
)

// The request types of the official adapter.
const (
	requestSockets          = 0
	requestAllRooms         = 1
	requestJoin             = 2
	requestLeave            = 3
	requestDisconnect       = 4
	requestFetch            = 5
	requestServerSideEmit   = 6
	requestBroadcast        = 7
	answerBroadcastCount    = 8
	answerBroadcastAck      = 9
	defaultBroadcastTimeout = 5 * time.Second
)

// classic implements the format of createAdapter in @socket.io/redis-adapter.
type classic struct {
	*adapter
	channel  string // of broadcasts to all sockets; the prefix of the channels of rooms
	request  string // of requests to all nodes
	response string // of responses; the prefix of specific
	specific string // of responses to this node

	ownPrefix string // of this node's broadcasts, after the first byte
}

// newClassic returns the format with the channel names of the namespace.
func newClassic(a *adapter) *classic {
	nsp := "#" + a.local.Name() + "#"
	response := a.opts.Prefix + "-response" + nsp
	return &classic{
		adapter:   a,
		channel:   a.opts.Prefix + nsp,
		request:   a.opts.Prefix + "-request" + nsp,
		response:  response,
		specific:  response + a.uid + "#",
		ownPrefix: string(msgp.AppendString(nil, a.uid)),
	}
}

// channels implements format.
func (c *classic) channels() []string {
	return []string{c.channel, c.request, c.response, c.specific}
}

// requestChannel implements format.
func (c *classic) requestChannel() string { return c.request }

// roomChannel implements format: every room has its own channel.
func (c *classic) roomChannel(room string) (string, bool) { return c.channel + room + "#", true }

// handle implements format.
func (c *classic) handle(channel, payload string) {
	switch {
	case strings.HasPrefix(channel, c.channel):
		// Redis also sends this node's own broadcasts; skip them without decoding, but not those of PublishOrdered, whose
		// sender is emitterUID.
		if payload == "" || !strings.HasPrefix(payload[1:], c.ownPrefix) {
			c.onBroadcast(payload)
		}
	case channel == c.request:
		c.onRequest(payload)
	case strings.HasPrefix(channel, c.response):
		c.onResponse(payload)
	}
}

// onBroadcast gives a broadcast of another node, or one of PublishOrdered, to the local sockets. A malformed one is
// dropped.
func (c *classic) onBroadcast(payload string) {
	m, err := decodeClassicBroadcast([]byte(payload))
	if err != nil {
		c.opts.Logger.Warn("malformed broadcast", "error", err)
		return
	}
	if string(m.uid) == c.uid || string(m.nsp) != c.local.Name() || !eventData(m.Data) {
		return
	}
	c.local.HandleBroadcast(&m.Broadcast)
}

// eventData reports whether data is a non-empty array, as required for an event.
func eventData(data []byte) bool { return len(data) > 2 && data[0] == '[' }

// classicRequest is a request of another node.
type classicRequest struct {
	UID       string          `json:"uid"`
	RequestID string          `json:"requestId"`
	Type      int             `json:"type"`
	Opts      *selection      `json:"opts"`
	Rooms     names           `json:"rooms"`
	Close     bool            `json:"close"`
	SID       string          `json:"sid"`
	Room      string          `json:"room"`
	Data      json.RawMessage `json:"data"`
	Packet    struct {
		Data json.RawMessage `json:"data"`
	} `json:"packet"`
}

// lenient accepts what the JSON parsers of other nodes accept.
var lenient = jsonv2.JoinOptions(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))

// decodeMixed decodes JSON, or MessagePack converted to JSON with attachments.
func decodeMixed(payload string, dst any) (attachments [][]byte, err error) {
	if strings.HasPrefix(payload, "{") {
		return nil, jsonv2.Unmarshal([]byte(payload), dst, lenient)
	}
	w := &jsonWriter{}
	if _, err := w.value([]byte(payload), 0); err != nil {
		return nil, err
	}
	return w.attachments, jsonv2.Unmarshal(w.dst, dst, lenient)
}

// onRequest queues a request of another node: serving it may block.
func (c *classic) onRequest(payload string) {
	var q classicRequest
	q.Type = -1
	attachments, err := decodeMixed(payload, &q)
	if err != nil {
		c.opts.Logger.Warn("malformed request", "error", err)
		return
	}
	if q.UID == c.uid {
		return
	}
	c.later(func(ctx context.Context) { c.serve(ctx, q, attachments) })
}

// serve dispatches a request by type.
func (c *classic) serve(ctx context.Context, q classicRequest, attachments [][]byte) {
	switch q.Type {
	case requestSockets:
		c.sendResponse(ctx, q, map[string]any{"sockets": ids(c.local.LocalSockets(socketio.Selection{Rooms: q.Rooms}))})
	case requestAllRooms:
		c.sendResponse(ctx, q, map[string]any{"rooms": c.allRooms()})
	case requestJoin:
		c.apply(ctx, q, socketio.Command{Join: q.rooms()})
	case requestLeave:
		c.apply(ctx, q, socketio.Command{Leave: q.rooms()})
	case requestDisconnect:
		c.apply(ctx, q, socketio.Command{Disconnect: true, Close: q.Close})
	case requestFetch:
		c.sendResponse(ctx, q, map[string]any{"sockets": c.local.LocalSockets(q.selection())})
	case requestServerSideEmit:
		c.serverSide(ctx, q)
	case requestBroadcast:
		c.broadcastWithAck(ctx, q, attachments)
	}
}

// selection returns the sockets that a request concerns.
func (q classicRequest) selection() socketio.Selection {
	if q.Opts == nil {
		return socketio.Selection{Rooms: []string{q.SID}} // older nodes send the ID of one socket
	}
	return q.Opts.selection()
}

// rooms returns the rooms to join or leave.
func (q classicRequest) rooms() []string {
	if q.Opts == nil {
		return []string{q.Room}
	}
	return q.Rooms
}

// ids returns the IDs of sockets.
func ids(sockets []socketio.SocketInfo) []string {
	list := make([]string, len(sockets))
	for i, s := range sockets {
		list[i] = s.ID
	}
	return list
}

// allRooms returns the rooms, including the sockets' IDs like the official nodes.
func (c *classic) allRooms() []string {
	return append(ids(c.local.LocalSockets(socketio.Selection{})), c.local.Rooms()...)
}

// sendResponse answers a request on the channel that all nodes read.
func (c *classic) sendResponse(ctx context.Context, q classicRequest, members map[string]any) {
	members["requestId"] = q.RequestID
	c.respond(ctx, c.response, members)
}

// apply executes a command of another node on the local sockets.
func (c *classic) apply(ctx context.Context, q classicRequest, command socketio.Command) {
	command.Selection = q.selection()
	here := q.Opts == nil && len(c.local.LocalSockets(command.Selection)) > 0
	if err := c.local.Apply(ctx, command); err != nil {
		c.opts.Logger.Warn("executing a request of another node failed", "error", err)
	}
	if here { // a request for one socket is answered by the node that has it
		c.sendResponse(ctx, q, map[string]any{})
	}
}

// serverSide calls the handler of a server-side event, with an acknowledgement if the sender asked for one.
func (c *classic) serverSide(ctx context.Context, q classicRequest) {
	var ack func(json.RawMessage)
	if q.RequestID != "" {
		ack = func(answer json.RawMessage) {
			c.sendResponse(ctx, q, map[string]any{"type": requestServerSideEmit, "data": answer})
		}
	}
	c.local.ServerSideEvent(q.Data, ack)
}

// broadcastWithAck responds with the number of sockets that will acknowledge, then with each acknowledgement.
func (c *classic) broadcastWithAck(ctx context.Context, q classicRequest, attachments [][]byte) {
	if q.Opts == nil || !eventData(q.Packet.Data) {
		return
	}
	timeout := defaultBroadcastTimeout
	if ms := q.Opts.Flags.Timeout; ms > 0 && ms < 1e9 {
		timeout = time.Duration(ms * float64(time.Millisecond))
	}
	b := &socketio.Broadcast{Selection: q.selection(), Data: q.Packet.Data, Attachments: attachments}
	n := c.local.HandleBroadcastWithAck(b, timeout, func(arg json.RawMessage) {
		c.later(func(ctx context.Context) {
			c.sendResponse(ctx, q, map[string]any{"type": answerBroadcastAck, "packet": arg})
		})
	})
	c.sendResponse(ctx, q, map[string]any{"type": answerBroadcastCount, "clientCount": n})
}

// onResponse collects the responses to the requests of this node.
func (c *classic) onResponse(payload string) {
	if !strings.HasPrefix(payload, "{") {
		return // acknowledgements of broadcasts, which this adapter never requests
	}
	var answer struct {
		RequestID string                `json:"requestId"`
		Sockets   []socketio.SocketInfo `json:"sockets"`
	}
	if json.Unmarshal([]byte(payload), &answer) == nil && c.requests.waiting(answer.RequestID) {
		c.requests.addResponse(answer.RequestID, answer.Sockets)
	}
}

// encodeCommand implements format.
func (c *classic) encodeCommand(command socketio.Command) ([]byte, error) {
	q := map[string]any{"uid": c.uid, "opts": newSelection(command.Selection)}
	switch {
	case len(command.Join) > 0:
		q["type"] = requestJoin
		q["rooms"] = command.Join
	case len(command.Leave) > 0:
		q["type"] = requestLeave
		q["rooms"] = command.Leave
	default:
		q["type"] = requestDisconnect
		q["close"] = command.Close
	}
	return json.Marshal(q)
}

// encodeFetch implements format.
func (c *classic) encodeFetch(requestID string, sel socketio.Selection) ([]byte, error) {
	return json.Marshal(map[string]any{
		"uid": c.uid, "requestId": requestID, "type": requestFetch, "opts": newSelection(sel),
	})
}

// encodeServerSide implements format. Without a request id no node answers.
func (c *classic) encodeServerSide(data json.RawMessage) ([]byte, error) {
	return json.Marshal(map[string]any{"uid": c.uid, "type": requestServerSideEmit, "data": data})
}
