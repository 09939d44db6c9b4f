package redisadapter

// The format of the official sharded adapter (Redis 7): one envelope for all messages, in JSON or, with
// attachments, in MessagePack.

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"
	"github.com/tinylib/msgp/msgp"

	"github.com/parley-chat/parley/pkg/socketio"
)

// The message types of the official cluster adapter.
const (
	messageBroadcast          = 3
	messageJoin               = 4
	messageLeave              = 5
	messageDisconnect         = 6
	messageFetch              = 7
	messageFetchResponse      = 8
	messageServerSideEmit     = 9
	messageServerSideResponse = 10
	messageBroadcastCount     = 11
	messageBroadcastAck       = 12
)

// socketIDLength is the length of socket IDs, here and in the official servers. Rooms whose names have this
// length share the namespace's channel, so that a socket needs no subscription for its ID.
const socketIDLength = 20

// sharded implements the format of createShardedAdapter in @socket.io/redis-adapter, in mode "dynamic".
type sharded struct {
	*adapter
	channel, response string

	nsp             string // the namespace's name as JSON
	head            string // part of broadcasts between the sender and the event
	ownPrefix       string // of this node's messages in JSON
	ownPrefixBinary string // of this node's messages in MessagePack
}

// newSharded returns the format with the parts of its messages that never change.
func newSharded(a *adapter) *sharded {
	channel := a.opts.Prefix + "#" + a.local.Name() + "#"
	nsp, _ := json.Marshal(a.local.Name()) // cannot fail
	return &sharded{
		adapter: a, channel: channel, response: channel + a.uid + "#",
		nsp:             string(nsp),
		head:            `","nsp":` + string(nsp) + `,"type":3,"data":{"packet":{"type":2,"data":`,
		ownPrefix:       `{"uid":"` + a.uid + `"`,
		ownPrefixBinary: string(msgp.AppendString(msgp.AppendString(msgp.AppendMapHeader(nil, 4), "uid"), a.uid)),
	}
}

// channels implements format.
func (s *sharded) channels() []string { return []string{s.channel, s.response} }

// requestChannel implements format: requests share the channel of broadcasts to all sockets.
func (s *sharded) requestChannel() string { return s.channel }

// roomChannel implements format.
func (s *sharded) roomChannel(room string) (string, bool) {
	return s.channel + room + "#", len(room) != socketIDLength
}

// shardedMessage is the envelope of all messages.
type shardedMessage struct {
	UID  string      `json:"uid"`
	NSP  string      `json:"nsp"`
	Type int         `json:"type"`
	Data shardedData `json:"data"`
}

// shardedData has the fields of all message types.
type shardedData struct {
	Packet      json.RawMessage        `json:"packet,omitempty"`
	Opts        *selection             `json:"opts,omitempty"`
	Rooms       names                  `json:"rooms,omitzero"`
	Close       *bool                  `json:"close,omitempty"`
	RequestID   string                 `json:"requestId,omitempty"`
	Sockets     *[]socketio.SocketInfo `json:"sockets,omitempty"`
	ClientCount *int                   `json:"clientCount,omitempty"`
}

// shardedPacket is the packet of a broadcast.
type shardedPacket struct {
	Type int             `json:"type"`
	Data json.RawMessage `json:"data"`
	NSP  string          `json:"nsp"`
}

// encode encodes a message of this node.
func (s *sharded) encode(typ int, data shardedData) ([]byte, error) {
	return json.Marshal(shardedMessage{UID: s.uid, NSP: s.local.Name(), Type: typ, Data: data})
}

// appendBroadcast encodes a broadcast as JSON, with the event byte for byte, or as MessagePack if it has
// attachments.
func (s *sharded) appendBroadcast(dst []byte, uid string, b *socketio.Broadcast) (string, []byte, error) {
	var err error
	if len(b.Attachments) == 0 {
		dst, err = s.appendBroadcastJSON(dst, uid, b)
	} else {
		dst, err = s.appendBroadcastBinary(dst, uid, b)
	}
	if err != nil {
		return "", nil, err
	}
	if len(b.Rooms) == 1 {
		if name, hasChannel := s.roomChannel(b.Rooms[0]); hasChannel {
			return name, dst, nil
		}
	}
	return s.channel, dst, nil
}

// appendBroadcastBinary encodes a broadcast with attachments: the JSON as MessagePack, with the attachments in place
// of their placeholders.
func (s *sharded) appendBroadcastBinary(dst []byte, uid string, b *socketio.Broadcast) ([]byte, error) {
	text, err := s.appendBroadcastJSON(nil, uid, b)
	if err != nil {
		return nil, err
	}
	dst, _, err = appendJSON(dst, text, b.Attachments)
	return dst, err
}

// appendBroadcastJSON encodes without encoding/json, which would reformat the event.
func (s *sharded) appendBroadcastJSON(dst []byte, uid string, b *socketio.Broadcast) ([]byte, error) {
	dst = slices.Grow(dst, len(s.head)+len(b.Data)+len(s.nsp)+128)
	dst = append(dst, `{"uid":"`...)
	dst = append(dst, uid...)
	dst = append(dst, s.head...)
	dst = append(dst, b.Data...)
	dst = append(dst, `,"nsp":`...)
	dst = append(dst, s.nsp...)
	dst = append(dst, `},"opts":{`...)
	var err error
	if len(b.Metadata) > 0 {
		metadata, err := json.Marshal(b.Metadata)
		if err != nil {
			return nil, err
		}
		dst = append(dst, `"`+metadataMember+`":`...)
		dst = append(dst, metadata...)
		dst = append(dst, ',')
	}
	dst = append(dst, `"rooms":`...)
	dst, err = appendNames(dst, b.Rooms)
	if err != nil {
		return nil, err
	}
	dst = append(dst, `,"except":`...)
	dst, err = appendNames(dst, b.Except)
	if err != nil {
		return nil, err
	}
	if b.Volatile {
		return append(dst, `,"flags":{"volatile":true}}}}`...), nil
	}
	return append(dst, `,"flags":{}}}}`...), nil
}

// appendNames appends a JSON array of strings. It fails for invalid UTF-8, which JSON cannot contain.
func appendNames(dst []byte, list []string) (out []byte, err error) {
	dst = append(dst, '[')
	for i, name := range list {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst, err = jsontext.AppendQuote(dst, name)
		if err != nil {
			return nil, err
		}
	}
	return append(dst, ']'), nil
}

// handle implements format.
func (s *sharded) handle(_, payload string) {
	// Redis also sends this node's own messages
	if strings.HasPrefix(payload, s.ownPrefix) || strings.HasPrefix(payload, s.ownPrefixBinary) {
		return
	}
	var m shardedMessage
	attachments, err := decodeMixed(payload, &m)
	if err != nil {
		s.opts.Logger.Warn("malformed message", "error", err)
		return
	}
	if m.UID == s.uid || m.NSP != s.local.Name() {
		return
	}
	if m.Type == messageBroadcast && m.Data.RequestID == "" {
		s.onBroadcast(m, attachments)
		return
	}
	if m.Type == messageFetchResponse && m.Data.Sockets != nil {
		s.requests.addResponse(m.Data.RequestID, *m.Data.Sockets)
		return
	}
	s.later(func(ctx context.Context) { s.serve(ctx, m, attachments) })
}

// onBroadcast gives a broadcast of another node to the local sockets. A malformed one is dropped.
func (s *sharded) onBroadcast(m shardedMessage, attachments [][]byte) {
	b, ok := m.broadcast(attachments)
	if ok {
		s.local.HandleBroadcast(b)
	}
}

// broadcast decodes the broadcast in a message; ok is false if it is malformed.
func (m shardedMessage) broadcast(attachments [][]byte) (*socketio.Broadcast, bool) {
	var p shardedPacket
	if jsonv2.Unmarshal(m.Data.Packet, &p, lenient) != nil || !eventData(p.Data) || m.Data.Opts == nil {
		return nil, false
	}
	return &socketio.Broadcast{
		Selection: m.Data.Opts.selection(), Data: p.Data, Attachments: attachments,
		Volatile: m.Data.Opts.Flags.Volatile, Metadata: m.Data.Opts.Metadata,
	}, true
}

// serve dispatches a request by type.
func (s *sharded) serve(ctx context.Context, m shardedMessage, attachments [][]byte) {
	switch m.Type {
	case messageJoin:
		s.apply(ctx, m, socketio.Command{Join: m.Data.Rooms})
	case messageLeave:
		s.apply(ctx, m, socketio.Command{Leave: m.Data.Rooms})
	case messageDisconnect:
		s.apply(ctx, m, socketio.Command{Disconnect: true, Close: m.Data.Close != nil && *m.Data.Close})
	case messageFetch:
		if m.Data.Opts != nil {
			sockets := s.local.LocalSockets(m.Data.Opts.selection())
			s.sendResponse(ctx, m, messageFetchResponse, shardedData{Sockets: &sockets})
		}
	case messageServerSideEmit:
		s.serverSide(ctx, m)
	case messageBroadcast:
		s.broadcastWithAck(ctx, m, attachments)
	}
}

// sendResponse answers a request on the channel of the node that sent it.
func (s *sharded) sendResponse(ctx context.Context, m shardedMessage, typ int, data shardedData) {
	data.RequestID = m.Data.RequestID
	s.respond(ctx, s.channel+m.UID+"#", shardedMessage{UID: s.uid, NSP: s.local.Name(), Type: typ, Data: data})
}

// apply executes a command of another node on the local sockets.
func (s *sharded) apply(ctx context.Context, m shardedMessage, c socketio.Command) {
	if m.Data.Opts == nil {
		return
	}
	c.Selection = m.Data.Opts.selection()
	if err := s.local.Apply(ctx, c); err != nil {
		s.opts.Logger.Warn("executing a request of another node failed", "error", err)
	}
}

// serverSide calls the handler of a server-side event, with an acknowledgement if the sender asked for one.
func (s *sharded) serverSide(ctx context.Context, m shardedMessage) {
	var ack func(json.RawMessage)
	if m.Data.RequestID != "" {
		ack = func(answer json.RawMessage) {
			s.sendResponse(ctx, m, messageServerSideResponse, shardedData{Packet: answer})
		}
	}
	s.local.ServerSideEvent(m.Data.Packet, ack)
}

// broadcastWithAck responds with the number of sockets that will acknowledge, then with each acknowledgement.
func (s *sharded) broadcastWithAck(ctx context.Context, m shardedMessage, attachments [][]byte) {
	b, ok := m.broadcast(attachments)
	if !ok {
		return
	}
	timeout := defaultBroadcastTimeout
	if ms := m.Data.Opts.Flags.Timeout; ms > 0 && ms < 1e9 {
		timeout = time.Duration(ms * float64(time.Millisecond))
	}
	n := s.local.HandleBroadcastWithAck(b, timeout, func(arg json.RawMessage) {
		s.later(func(ctx context.Context) { s.sendResponse(ctx, m, messageBroadcastAck, shardedData{Packet: arg}) })
	})
	s.sendResponse(ctx, m, messageBroadcastCount, shardedData{ClientCount: &n})
}

// encodeCommand implements format.
func (s *sharded) encodeCommand(c socketio.Command) ([]byte, error) {
	opts := newSelection(c.Selection)
	switch {
	case len(c.Join) > 0:
		return s.encode(messageJoin, shardedData{Opts: &opts, Rooms: c.Join})
	case len(c.Leave) > 0:
		return s.encode(messageLeave, shardedData{Opts: &opts, Rooms: c.Leave})
	default:
		return s.encode(messageDisconnect, shardedData{Opts: &opts, Close: &c.Close})
	}
}

// encodeFetch implements format.
func (s *sharded) encodeFetch(requestID string, sel socketio.Selection) ([]byte, error) {
	opts := newSelection(sel)
	return s.encode(messageFetch, shardedData{Opts: &opts, RequestID: requestID})
}

// encodeServerSide implements format. Without a request id no node answers.
func (s *sharded) encodeServerSide(data json.RawMessage) ([]byte, error) {
	return s.encode(messageServerSideEmit, shardedData{Packet: data})
}
