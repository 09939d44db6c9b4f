package dispatcher_test

import (
	"testing"
	"time"

	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/services/processor/internal/dispatcher"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/storetest"
)

// Concurrent pushes to one number, as by two processors, create one recipient and one chat.
func TestConcurrentPushesShareTheirRecipient(t *testing.T) {
	t.Parallel()
	const pushes = 16
	server := bustest.Start(t)
	b, documents := bustest.Open(t, server.URL()), storetest.Open(t)
	company := chat.Company{ID: uuid.NewString(), Name: "Acme"}
	template := chat.MessageTemplate{ID: uuid.NewString(), CompanyID: company.ID, Name: "n", Status: chat.TemplateApproved, Text: "Hi"}
	if err := documents.PutCompany(t.Context(), company); err != nil {
		t.Fatal(err)
	}
	if err := documents.PutTemplate(t.Context(), template); err != nil {
		t.Fatal(err)
	}
	out := bustest.Collect(t, server.URL(), subject.AllOutbound)

	var group errgroup.Group
	for i := range pushes {
		source := "+4915112345678"
		if i%2 == 0 {
			source = "4915112345678"
		}
		d := dispatcher.New(store.NewCache(documents, store.CacheConfig{}), documents, b) // each like its own process
		group.Go(func() error {
			return d.Push(t.Context(), event.PushAccepted{
				CompanyID: company.ID, TemplateID: template.ID, MessageID: uuid.Must(uuid.NewV7()).String(),
				CreatedAt: time.Now().UTC().Truncate(time.Millisecond), Source: source,
			})
		})
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	chats, people := map[string]bool{}, map[string]bool{}
	for _, m := range out.Await(pushes) {
		e, err := event.Decode[event.OutboundMessage](m.Subject, m.Data)
		if err != nil {
			t.Fatal(err)
		}
		chats[e.ChatID], people[e.ChatUserID] = true, true
	}
	if len(chats) != 1 || len(people) != 1 {
		t.Errorf("got %d chats of %d visitors, want one of one", len(chats), len(people))
	}
}
