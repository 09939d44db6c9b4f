package storetest

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/idempotency"
	"github.com/parley-chat/parley/pkg/store"
)

// Outage is a store with simulated outages: during one, the operations that requests begin with fail as if
// the engine were unreachable.
type Outage struct {
	store.Store
	away atomic.Bool
}

// NewOutage returns s, without an outage.
func NewOutage(s store.Store) *Outage { return &Outage{Store: s} }

// Begin starts an outage.
func (o *Outage) Begin() { o.away.Store(true) }

// End ends the outage.
func (o *Outage) End() { o.away.Store(false) }

func (o *Outage) check() error {
	if o.away.Load() {
		return apperr.Unreachable("the store", errors.New("no engine in this test"))
	}
	return nil
}

// Ready implements [store.Store].
func (o *Outage) Ready(ctx context.Context) error {
	return errors.Join(o.check(), o.Store.Ready(ctx))
}

// AccessToken implements [store.AccessTokens].
func (o *Outage) AccessToken(ctx context.Context, hash string) (chat.AccessToken, error) {
	if err := o.check(); err != nil {
		return chat.AccessToken{}, err
	}
	return o.Store.AccessToken(ctx, hash)
}

// Application implements [store.Applications].
func (o *Outage) Application(ctx context.Context, id string) (chat.Application, error) {
	if err := o.check(); err != nil {
		return chat.Application{}, err
	}
	return o.Store.Application(ctx, id)
}

// Template implements [store.Templates].
func (o *Outage) Template(ctx context.Context, id string) (chat.MessageTemplate, error) {
	if err := o.check(); err != nil {
		return chat.MessageTemplate{}, err
	}
	return o.Store.Template(ctx, id)
}

// Visitor implements [store.Visitors].
func (o *Outage) Visitor(ctx context.Context, chatUserID string) (chat.Visitor, error) {
	if err := o.check(); err != nil {
		return chat.Visitor{}, err
	}
	return o.Store.Visitor(ctx, chatUserID)
}

// Register implements [store.Visitors].
func (o *Outage) Register(ctx context.Context, r store.Registration) (store.Registered, error) {
	if err := o.check(); err != nil {
		return store.Registered{}, err
	}
	return o.Store.Register(ctx, r)
}

// Chat implements [store.Chats].
func (o *Outage) Chat(ctx context.Context, id string) (chat.Chat, error) {
	if err := o.check(); err != nil {
		return chat.Chat{}, err
	}
	return o.Store.Chat(ctx, id)
}

// OpenChat implements [store.Chats].
func (o *Outage) OpenChat(ctx context.Context, v chat.Visitor, n store.NewChat) (chat.Chat, bool, error) {
	if err := o.check(); err != nil {
		return chat.Chat{}, false, err
	}
	return o.Store.OpenChat(ctx, v, n)
}

// AppendMessage implements [store.Messages].
func (o *Outage) AppendMessage(ctx context.Context, chatID string, m chat.Message) error {
	if err := o.check(); err != nil {
		return err
	}
	return o.Store.AppendMessage(ctx, chatID, m)
}

// InsertIdempotencyRecord implements [idempotency.Records].
func (o *Outage) InsertIdempotencyRecord(
	ctx context.Context, r idempotency.Record,
) (idempotency.Record, bool, error) {
	if err := o.check(); err != nil {
		return idempotency.Record{}, false, err
	}
	return o.Store.InsertIdempotencyRecord(ctx, r)
}
