package redisadapter

// Which connection holds which channel. Without a cluster there is one connection; with sharded pub/sub one for
// each master, and channels move when slots do.

import (
	"context"
	"fmt"
	"sync"

	"github.com/redis/go-redis/v9"
)

// subscriptions distributes channels over connections. There is a single connection or, with sharded pub/sub
// on a cluster, one per master, since only the owner of a slot delivers the messages of its channels.
type subscriptions struct {
	cluster *redis.ClusterClient // nil with a single connection
	start   func(client redis.UniversalClient, rehome func(*subscriber)) *subscriber

	only *subscriber // without a cluster

	mu    sync.Mutex             // held while subscriptions move; locked before a subscriber's mu
	nodes map[string]*subscriber // by address
}

// acquire subscribes and waits for the confirmations. On an error it acquires nothing.
func (s *subscriptions) acquire(ctx context.Context, names ...string) error {
	if s.cluster == nil {
		w := s.only.acquire(names)
		if !w.wait(ctx) {
			s.only.abandon(w, names)
			s.only.release(names)
			return ctx.Err()
		}
		return nil
	}
	owners, err := s.owners(ctx, names)
	if err != nil {
		return err
	}
	waiters := make([]*waiter, len(names))
	s.mu.Lock()
	for i, name := range names {
		waiters[i] = owners[i].acquire([]string{name})
	}
	s.mu.Unlock()
	for _, w := range waiters {
		if !w.wait(ctx) {
			s.abandon(waiters, names)
			s.release(names...)
			return ctx.Err()
		}
	}
	return nil
}

// abandon removes the waiters from the subscriptions, which may have moved to other connections.
func (s *subscriptions) abandon(waiters []*waiter, names []string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, node := range s.nodes {
		for i, w := range waiters {
			node.abandon(w, names[i:i+1])
		}
	}
}

// release removes a reference from each channel, wherever it has moved.
func (s *subscriptions) release(names ...string) {
	if s.cluster == nil {
		s.only.release(names)
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		owner := s.holderLocked(name)
		if owner != nil {
			owner.release([]string{name})
		}
	}
}

// holderLocked returns the connection that holds the channel, or nil. With few masters, a linear search costs less
// than a map of all channels.
func (s *subscriptions) holderLocked(name string) *subscriber {
	for _, node := range s.nodes {
		if node.wants(name) {
			return node
		}
	}
	return nil
}

// owners returns the connection for each channel.
func (s *subscriptions) owners(ctx context.Context, names []string) ([]*subscriber, error) {
	owners := make([]*subscriber, len(names))
	for i, name := range names {
		s.mu.Lock()
		owner := s.holderLocked(name)
		s.mu.Unlock()
		if owner == nil {
			found, err := s.ownerOf(ctx, name)
			if err != nil {
				return nil, fmt.Errorf("finding the node of a channel: %w", err)
			}
			owner = found
		}
		owners[i] = owner
	}
	return owners, nil
}

// ownerOf returns the connection to the master of a channel's slot. If the master is unknown, it returns any
// connection, which works until the server redirects.
func (s *subscriptions) ownerOf(ctx context.Context, name string) (*subscriber, error) {
	node, err := s.cluster.MasterForKey(ctx, name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil {
		for _, owner := range s.nodes {
			return owner, nil
		}
		return nil, err
	}
	addr := node.Options().Addr
	if s.nodes[addr] == nil {
		s.nodes[addr] = s.start(node, s.rehome)
	}
	return s.nodes[addr], nil
}

// rehome moves channels of a broken connection to the current masters of their slots.
func (s *subscriptions) rehome(from *subscriber) {
	if s.cluster == nil {
		return
	}
	s.cluster.ReloadState(context.Background())
	homes := make(map[string]*subscriber)
	for _, name := range from.names() {
		if to, err := s.ownerOf(context.Background(), name); err == nil {
			homes[name] = to
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, moved := range from.takeAll() {
		to := homes[moved.name]
		if to == nil {
			to = from
		}
		to.adopt(moved)
	}
}

// names returns the channels of a subscriber.
func (s *subscriber) names() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	names := make([]string, 0, len(s.channels))
	for name := range s.channels {
		names = append(names, name)
	}
	return names
}

// wants reports whether the channel is desired on this connection.
func (s *subscriber) wants(name string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	sub := s.channels[name]
	return sub != nil && sub.refs > 0
}

// takeAll removes and returns all subscriptions of a subscriber without a connection.
func (s *subscriber) takeAll() []*subscription {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]*subscription, 0, len(s.channels))
	for _, sub := range s.channels {
		all = append(all, sub)
	}
	clear(s.channels)
	s.dirty = s.dirty[:0]
	return all
}

// adopt adds a subscription of another subscriber, with its waiters.
func (s *subscriber) adopt(moved *subscription) {
	s.mu.Lock()
	defer s.mu.Unlock()
	sub := s.channels[moved.name]
	if sub == nil {
		sub = &subscription{name: moved.name}
		s.channels[moved.name] = sub
	}
	sub.refs += moved.refs
	sub.waiters = append(sub.waiters, moved.waiters...)
	if sub.confirmed() {
		s.wakeLocked(sub)
	}
	s.markLocked(sub)
}
