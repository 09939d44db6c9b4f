package main

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/secret"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/store/backend"
)

const (
	hotVisitors  = 100
	coldVisitors = 20_000
	coldChats    = 9_900 // of them have a history of 100 messages, so that the table holds 1,000,000 with the hot ones
	longChat     = 10_000
)

// population is the set of visitors of the Widget API's loads, written directly to the store.
type population struct {
	store store.Store
	keys  *credential.KeySet
	demo  demo

	hot, cold []visitor
	short     []visitor // with ten messages
	long      visitor
	cursors   []string // ids of messages of the long chat
}

// openPopulation opens an empty store.
func openPopulation(r *bench) (*population, error) {
	keys, err := credential.LoadKeySet(os.Getenv("VISITOR_KEYS_FILE"))
	if err != nil {
		return nil, err
	}
	secrets, err := secret.Load(os.Getenv(secret.Setting))
	if err != nil {
		return nil, err
	}
	s, err := backend.Open(backend.Config{
		Keys:    secrets,
		Store:   config.Store{SQLitePath: os.Getenv("SQLITE_PATH"), MongoDBURI: os.Getenv("MONGODB_URI"), MongoDBDatabase: os.Getenv("MONGODB_DATABASE")},
		AppName: "bench", Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		return nil, err
	}
	return &population{store: s, keys: keys, demo: r.demo}, nil
}

// populate creates all visitors, and the histories that the first loads read.
func populate(ctx context.Context, r *bench) (*population, error) {
	p, err := openPopulation(r)
	if err != nil {
		return nil, err
	}
	if p.hot, err = p.visitors(ctx, hotVisitors); err != nil {
		return p, err
	}
	if p.short, err = p.visitors(ctx, hotVisitors); err != nil {
		return p, err
	}
	if p.cold, err = p.visitors(ctx, coldVisitors); err != nil {
		return p, err
	}
	long, err := p.visitors(ctx, 1)
	if err != nil {
		return p, err
	}
	p.long = long[0]
	if err := p.write(ctx, p.hot, 100); err != nil {
		return p, err
	}
	if err := p.write(ctx, p.short, 10); err != nil {
		return p, err
	}
	return p, p.writeLong(ctx)
}

func (p *population) close() { _ = backend.Close(p.store) }

// visitors creates n visitors, each with a token and an open chat.
func (p *population) visitors(ctx context.Context, n int) ([]visitor, error) {
	made := make([]visitor, n)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(connections)
	for i := range made {
		group.Go(func() (err error) {
			made[i], err = p.visitor(ctx)
			return err
		})
	}
	return made, group.Wait()
}

func (p *population) visitor(ctx context.Context) (visitor, error) {
	now := time.Now()
	v, err := p.store.SaveVisitor(ctx, chat.Visitor{ID: uuid.NewString(), CompanyID: p.demo.CompanyID, AppID: p.demo.AppID, FirstName: "Ada"})
	if err != nil {
		return visitor{}, err
	}
	c, _, err := p.store.OpenChat(ctx, v, store.NewChat{Channel: chat.ChannelWidget, Now: now})
	if err != nil {
		return visitor{}, err
	}
	token, err := p.keys.Sign(credential.VisitorClaims{
		ChatUserID: v.ID, AppID: v.AppID, CompanyID: v.CompanyID, TokenID: uuid.NewString(), IssuedAt: now, ExpiresAt: now.Add(time.Hour),
	})
	return visitor{id: v.ID, token: token, chatID: c.ID}, err
}

// write adds n messages to each visitor's chat.
func (p *population) write(ctx context.Context, visitors []visitor, n int) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(4 * connections)
	for _, v := range visitors {
		group.Go(func() error {
			for range n {
				if _, err := p.message(ctx, v.chatID); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

func (p *population) message(ctx context.Context, chatID string) (id string, err error) {
	m := chat.Message{
		ID: uuid.Must(uuid.NewV7()).String(), CreatedAt: time.Now(), Type: chat.Text, Data: json.RawMessage(messageData),
		NameOfSender: "Polly", IsFromSupport: true,
	}
	return m.ID, p.store.AppendMessage(ctx, chatID, m)
}

func (p *population) writeLong(ctx context.Context) error {
	p.cursors = make([]string, longChat)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(connections)
	for i := range p.cursors {
		group.Go(func() (err error) {
			p.cursors[i], err = p.message(ctx, p.long.chatID)
			return err
		})
	}
	return group.Wait()
}

// anywhere returns requests for pages of ten that begin at random positions of the long chat.
func (p *population) anywhere(r *bench) [][]byte {
	requests := make([][]byte, 2000)
	for i := range requests {
		before := p.cursors[rand.IntN(longChat)]
		requests[i] = request("GET", r.widget, fmt.Sprintf("/message?limit=10&before=%s", before), "Authorization: Bearer "+p.long.token+"\r\n", "")
	}
	return requests
}

// fill writes the histories of the cold visitors.
func (p *population) fill(ctx context.Context) error { return p.write(ctx, p.cold[:coldChats], 100) }
