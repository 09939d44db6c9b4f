package redisadapter

// Requests to all nodes that wait for their responses, and the members that both wire formats share.

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/redis/go-redis/v9"

	"github.com/parley-chat/parley/pkg/socketio"
)

// requests are this node's pending requests to other nodes. FetchSockets adds and removes them; the formats add the
// responses. It is safe for concurrent use.
type requests struct {
	mu      sync.Mutex          // guards pending and the requests in it
	pending map[string]*request // by request id
}

// request collects the responses to one request.
type request struct {
	left    int // nodes that have not responded
	sockets []socketio.SocketInfo
	done    chan struct{}
}

// add returns a new request that expects a number of responses.
func (r *requests) add(answers int) (id string, q *request) {
	id = randomHex(8)
	q = &request{left: answers, done: make(chan struct{})}
	r.mu.Lock()
	r.pending[id] = q
	r.mu.Unlock()
	return id, q
}

// remove ends a request; later responses are ignored.
func (r *requests) remove(id string) {
	r.mu.Lock()
	delete(r.pending, id)
	r.mu.Unlock()
}

// waiting reports whether id belongs to a request of this node.
func (r *requests) waiting(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pending[id] != nil
}

// addResponse adds the response of one node.
func (r *requests) addResponse(id string, sockets []socketio.SocketInfo) {
	r.mu.Lock()
	defer r.mu.Unlock()
	q := r.pending[id]
	if q == nil {
		return
	}
	q.sockets = append(q.sockets, sockets...)
	q.left--
	if q.left == 0 {
		close(q.done)
	}
}

// collected returns the sockets of the responses so far.
func (r *requests) collected(q *request) []socketio.SocketInfo {
	r.mu.Lock()
	defer r.mu.Unlock()
	return q.sockets
}

// FetchSockets implements socketio.Adapter. On an error it also returns the sockets received so far.
func (a *adapter) FetchSockets(ctx context.Context, sel socketio.Selection) ([]socketio.SocketInfo, error) {
	ctx, cancel := context.WithTimeout(ctx, a.opts.RequestTimeout)
	defer cancel()
	nodes, err := a.serverCount(ctx)
	if err != nil || nodes <= 1 {
		return nil, err
	}
	id, q := a.requests.add(nodes - 1)
	defer a.requests.remove(id)
	payload, err := a.format.encodeFetch(id, sel)
	if err != nil {
		return nil, err
	}
	if err := a.publish(ctx, a.format.requestChannel(), payload); err != nil {
		return nil, err
	}
	select {
	case <-q.done:
		return a.requests.collected(q), nil
	case <-ctx.Done():
		return a.requests.collected(q), fmt.Errorf("asking %d nodes for their sockets: %w", nodes-1, ctx.Err())
	}
}

// serverCount returns the number of nodes, counted by their subscriptions.
func (a *adapter) serverCount(ctx context.Context) (int, error) {
	channel := a.format.requestChannel()
	var cmd *redis.MapStringIntCmd
	switch cluster, ok := a.client.(*redis.ClusterClient); {
	case a.opts.Sharded && ok:
		node, err := cluster.MasterForKey(ctx, channel)
		if err != nil {
			return 0, err
		}
		cmd = node.PubSubShardNumSub(ctx, channel)
	case a.opts.Sharded:
		cmd = a.client.PubSubShardNumSub(ctx, channel)
	default:
		cmd = a.client.PubSubNumSub(ctx, channel)
	}
	counts, err := cmd.Result()
	return int(counts[channel]), err
}

// respond publishes a response. Errors are not retried: the requesting node has a timeout.
func (a *adapter) respond(ctx context.Context, channel string, answer any) {
	payload, err := json.Marshal(answer)
	if err == nil {
		err = a.publish(ctx, channel, payload)
	}
	if err != nil && ctx.Err() == nil {
		a.opts.Logger.Warn("answering another node", "error", err)
	}
}

// selection is the wire format of a socketio.Selection.
type selection struct {
	Rooms  names `json:"rooms"`
	Except names `json:"except"`
	Flags  flags `json:"flags"`

	Metadata map[string]string `json:"metadata,omitempty"` // of a broadcast
}

// flags are the flags of the official adapters that are supported.
type flags struct {
	Volatile bool    `json:"volatile,omitempty"`
	Timeout  float64 `json:"timeout,omitempty"` // milliseconds
}

// newSelection returns the wire format of sel, without flags.
func newSelection(sel socketio.Selection) selection {
	return selection{Rooms: sel.Rooms, Except: sel.Except}
}

// selection is the inverse of newSelection.
func (s selection) selection() socketio.Selection {
	return socketio.Selection{Rooms: s.Rooms, Except: s.Except}
}

var errNames = errors.New("redisadapter: rooms are no array")

// names are room names, which JavaScript nodes may send as numbers. An empty list is encoded as [], never null.
type names []string

// MarshalJSON implements json.Marshaler.
func (n names) MarshalJSON() ([]byte, error) {
	if n == nil {
		return []byte("[]"), nil
	}
	return json.Marshal([]string(n))
}

// UnmarshalJSONFrom implements jsonv2.UnmarshalerFrom.
func (n *names) UnmarshalJSONFrom(d *jsontext.Decoder) error {
	head, err := d.ReadToken()
	if err != nil || head.Kind() == 'n' {
		return err
	}
	if head.Kind() != '[' {
		return errNames
	}
	for d.PeekKind() != ']' {
		v, err := d.ReadValue()
		if err != nil {
			return err
		}
		name := []byte(v)
		if v.Kind() == '"' {
			name, _ = jsontext.AppendUnquote(nil, v) // replaces invalid UTF-8
		}
		*n = append(*n, string(name))
	}
	_, err = d.ReadToken()
	return err
}
