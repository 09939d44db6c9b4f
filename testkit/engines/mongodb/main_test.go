package mongodb_test

import (
	"context"
	"encoding/json"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/event"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/store/mongodb"
	testkit "github.com/parley-chat/parley/testkit/engines/mongodb"
	"github.com/parley-chat/parley/testkit/storetest"
)

func TestMain(m *testing.M) {
	if os.Getenv("MONGODB_URI") == "" { // only FerretDB, which decodes a collection for most look-ups
		storetest.AtOnce, storetest.Largest, storetest.Nul = 8, 1<<20, "\x01"
	}
	storetest.Main(m, testkit.OpenAddress)
}

// at returns the time n milliseconds after a fixed one.
func at(milliseconds int) time.Time {
	return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC).Add(time.Duration(milliseconds) * time.Millisecond)
}

func text(id string, created time.Time, fromSupport bool) chat.Message {
	return chat.Message{
		ID: id, CreatedAt: created, Type: chat.Text, Data: json.RawMessage(`{"text":"Hello ` + id + `"}`), NameOfSender: "Ada",
		IsFromSupport: fromSupport,
	}
}

func ok(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newVisitor saves a visitor.
func newVisitor(t testing.TB, s store.Store) chat.Visitor {
	t.Helper()
	registered, err := s.Register(t.Context(), store.Registration{Visitor: chat.Visitor{ID: uuid.NewString(), CompanyID: "company", AppID: "app", FirstName: "Ada"}})
	v := registered.Visitor
	ok(t, err)
	return v
}

func newChat(t testing.TB, s store.Store, greetings ...chat.Message) chat.Chat {
	t.Helper()
	c, _, err := s.OpenChat(t.Context(), newVisitor(t, s), store.NewChat{Channel: chat.ChannelWidget, Now: at(0), Greetings: greetings})
	ok(t, err)
	return c
}

// recorder records the commands of a store.
type recorder struct {
	mu       sync.Mutex
	commands []bson.Raw
}

func (r *recorder) monitor(c *mongodb.Config) {
	c.Monitor = &event.CommandMonitor{
		Started: func(_ context.Context, e *event.CommandStartedEvent) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.commands = append(r.commands, append(bson.Raw(nil), e.Command...))
		},
		Succeeded: func(context.Context, *event.CommandSucceededEvent) {},
		Failed:    func(context.Context, *event.CommandFailedEvent) {},
	}
}

// take returns the commands since the last call.
func (r *recorder) take() []bson.Raw {
	r.mu.Lock()
	defer r.mu.Unlock()
	taken := r.commands
	r.commands = nil
	return taken
}
