package main

import (
	"context"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/parley-chat/parley/bench/internal/rig"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/store/backend"
)

// visitor is a registered visitor with an open chat.
type visitor struct {
	id     string
	token  string
	chatID string
}

// population writes visitors and their histories directly to the store.
type population struct {
	store store.Store
	keys  *credential.KeySet
	demo  rig.Demo
}

func openPopulation(r *rig.Rig) (*population, error) {
	keys, err := r.VisitorKeys()
	if err != nil {
		return nil, err
	}
	s, err := r.OpenStore()
	if err != nil {
		return nil, err
	}
	return &population{store: s, keys: keys, demo: r.Demo}, nil
}

func (p *population) close() { _ = backend.Close(p.store) }

// parallel calls do for 0 to n-1, several at once.
func parallel(ctx context.Context, n int, do func(ctx context.Context, i int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(4 * connections)
	for i := range n {
		group.Go(func() error { return do(ctx, i) })
	}
	return group.Wait()
}

// visitors creates n visitors, each with a token and an open chat.
func (p *population) visitors(ctx context.Context, n int) ([]visitor, error) {
	made := make([]visitor, n)
	return made, parallel(ctx, n, func(ctx context.Context, i int) (err error) {
		made[i], err = p.visitor(ctx)
		return err
	})
}

func (p *population) visitor(ctx context.Context) (visitor, error) {
	now := time.Now()
	registered, err := p.store.Register(ctx, store.Registration{
		Visitor: chat.Visitor{
			ID: uuid.NewString(), CompanyID: p.demo.CompanyID, AppID: p.demo.AppID, FirstName: "Ada",
		},
		Chat: &store.NewChat{Channel: chat.ChannelWidget, Now: now},
	})
	if err != nil {
		return visitor{}, err
	}
	v, c := registered.Visitor, registered.Chat
	token, err := p.keys.Sign(credential.VisitorClaims{
		ChatUserID: v.ID, AppID: v.AppID, CompanyID: v.CompanyID, TokenID: uuid.NewString(),
		IssuedAt: now, ExpiresAt: now.Add(time.Hour),
	})
	return visitor{id: v.ID, token: token, chatID: c.ID}, err
}

// write adds n messages to each visitor's chat, and returns the ids of the last visitor's.
func (p *population) write(ctx context.Context, visitors []visitor, n int) ([]string, error) {
	ids := make([]string, n)
	return ids, parallel(ctx, len(visitors), func(ctx context.Context, i int) error {
		for k := range n {
			m := newMessage()
			if err := p.store.AppendMessage(ctx, visitors[i].chatID, m); err != nil {
				return err
			}
			if i == len(visitors)-1 {
				ids[k] = m.ID
			}
		}
		return nil
	})
}
