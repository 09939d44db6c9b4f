package store_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/store/storetest"
)

func TestSaveVisitorKeepsWhatIsNotSaid(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	id := uuid.NewString()
	if _, err := s.Visitor(t.Context(), id); !apperr.Is(err, apperr.NotFound) {
		t.Fatalf("an unknown visitor: got %v, want NotFound", err)
	}
	steps := []struct{ save, want chat.Visitor }{
		{
			chat.Visitor{ID: id, CompanyID: "c", AppID: "a", FirstName: "Ada", Email: "ada@example.org"},
			chat.Visitor{ID: id, CompanyID: "c", AppID: "a", FirstName: "Ada", Email: "ada@example.org"},
		},
		{
			chat.Visitor{ID: id, CompanyID: "c", AppID: "a"},
			chat.Visitor{ID: id, CompanyID: "c", AppID: "a", FirstName: "Ada", Email: "ada@example.org"},
		},
		{
			chat.Visitor{ID: id, CompanyID: "other", AppID: "other", FirstName: "Augusta", LastName: "Lovelace", Phone: "49170000000", UserID: "7"},
			chat.Visitor{ID: id, CompanyID: "c", AppID: "a", FirstName: "Augusta", LastName: "Lovelace", Email: "ada@example.org", Phone: "49170000000", UserID: "7"},
		},
	}
	for n, step := range steps {
		saved, err := s.SaveVisitor(t.Context(), step.save)
		if err != nil || saved != step.want {
			t.Fatalf("step %d: saving returned %+v, %v, want %+v", n, saved, err, step.want)
		}
		if got, err := s.Visitor(t.Context(), id); err != nil || got != step.want {
			t.Fatalf("step %d: got %+v, %v, want %+v", n, got, err, step.want)
		}
	}
}

func TestResolveVisitor(t *testing.T) {
	t.Parallel()
	const app = "3f0c9d2e-0000-4000-8000-000000000001"
	userID := func(v string) store.Identity { return store.Identity{Scope: app, Kind: store.KindUserID, Value: v} }
	email := func(v string) store.Identity { return store.Identity{Scope: app, Kind: store.KindEmail, Value: v} }
	phone := func(v string) store.Identity { return store.Identity{Scope: app, Kind: store.KindPhone, Value: v} }
	steps := []struct {
		why        string
		identities []store.Identity
		want       string // a name for the person; the first step with a name must create
		created    bool
	}{
		{"a new person", []store.Identity{email("ada@example.org")}, "ada", true},
		{"the same e-mail", []store.Identity{email("ada@example.org")}, "ada", false},
		{"e-mail in other letters, with a phone that is claimed", []store.Identity{phone("49170"), email(" ADA@Example.org")}, "ada", false},
		{"the claimed phone", []store.Identity{phone("49170")}, "ada", false},
		{"another person", []store.Identity{userID("7")}, "bob", true},
		{"the strongest wins, whatever the order; the e-mail stays ada's", []store.Identity{email("ada@example.org"), userID("7")}, "bob", false},
		{"the e-mail is still ada's", []store.Identity{email("ada@example.org")}, "ada", false},
		{"an unowned userId goes to the owner of the e-mail", []store.Identity{userID("8"), email("ada@example.org"), phone("")}, "ada", false},
		{"the claimed userId", []store.Identity{userID("8")}, "ada", false},
		{"another application is another world", []store.Identity{{Scope: "other", Kind: store.KindEmail, Value: "ada@example.org"}}, "stranger", true},
		{"a value with our separator", []store.Identity{userID("7|email|x")}, "piped", true},
	}
	s := storetest.Open(t)
	people := make(map[string]string)
	for _, step := range steps {
		id, created, err := s.ResolveVisitor(t.Context(), step.identities)
		if err != nil || created != step.created {
			t.Fatalf("%s: got created %v, %v, want %v", step.why, created, err, step.created)
		}
		if known, ok := people[step.want]; ok && known != id {
			t.Fatalf("%s: got %s, want %s", step.why, id, known)
		}
		if err := uuid.Validate(id); err != nil {
			t.Fatalf("%s: %v", step.why, err)
		}
		people[step.want] = id
	}
	if got, want := len(unique(people)), len(people); got != want {
		t.Fatalf("got %d different ids, want %d", got, want)
	}
	for _, none := range [][]store.Identity{nil, {email("")}} {
		if _, _, err := s.ResolveVisitor(t.Context(), none); !apperr.Is(err, apperr.Invalid) {
			t.Fatalf("without an identity: got %v, want Invalid", err)
		}
	}
}

func unique(m map[string]string) map[string]bool {
	values := make(map[string]bool)
	for _, v := range m {
		values[v] = true
	}
	return values
}

// TestRegisteringAtOnce is the whole registration, as the widget's API does it, 50 times at once for the same person.
func TestRegisteringAtOnce(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	type outcome struct {
		visitor, chat   string
		created, opened bool
	}
	const times = 100 / (1 + scale) // 50, and 9 where the engine is slow
	outcomes := make([]outcome, times)
	var all sync.WaitGroup
	for n := range times {
		all.Go(func() {
			o := &outcomes[n]
			var err error
			o.visitor, o.created, err = s.ResolveVisitor(t.Context(), []store.Identity{
				{Scope: "app", Kind: store.KindEmail, Value: "ada@example.org"}, {Scope: "app", Kind: store.KindUserID, Value: "7"},
			})
			if err != nil {
				t.Errorf("resolving: %v", err)
				return
			}
			v, err := s.SaveVisitor(t.Context(), chat.Visitor{ID: o.visitor, CompanyID: "c", AppID: "app", FirstName: fmt.Sprintf("Ada %d", n)})
			if err != nil {
				t.Errorf("saving: %v", err)
				return
			}
			c, opened, err := s.OpenChat(t.Context(), v, store.NewChat{Channel: chat.ChannelWidget, Now: at(n), Greetings: greetings("one", "two", "three")})
			if err != nil {
				t.Errorf("opening: %v", err)
				return
			}
			o.chat, o.opened = c.ID, opened
		})
	}
	all.Wait()
	created, opened := 0, 0
	for n, o := range outcomes {
		if o.visitor != outcomes[0].visitor || o.chat != outcomes[0].chat {
			t.Errorf("registration %d: got visitor %s and chat %s, want %s and %s", n, o.visitor, o.chat, outcomes[0].visitor, outcomes[0].chat)
		}
		if o.created {
			created++
		}
		if o.opened {
			opened++
		}
	}
	if created != 1 || opened != 1 {
		t.Errorf("got %d visitors created and %d chats opened, want 1 and 1", created, opened)
	}
	history, err := s.History(t.Context(), outcomes[0].chat)
	if err != nil {
		t.Fatal(err)
	}
	wantTexts(t, history, "one", "two", "three")
}
