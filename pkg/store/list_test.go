package store_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/store/storetest"
)

// pages reads a list page by page and returns the ids of all.
func pages[V any](t *testing.T, id func(V) string, list func(store.Page) ([]V, error)) []string {
	t.Helper()
	ids := []string{}
	for page := (store.Page{Limit: 2}); ; {
		found, err := list(page)
		if err != nil || len(found) > 2 {
			t.Fatalf("got %d, %v, want at most 2", len(found), err)
		}
		if len(found) == 0 {
			return ids
		}
		for _, v := range found {
			ids = append(ids, id(v))
		}
		page.After = ids[len(ids)-1]
	}
}

func TestListsOfNouns(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	for i := range 5 {
		n := fmt.Sprint(i)
		owner := []string{"even", "odd"}[i%2]
		for _, err := range []error{
			s.PutCompany(t.Context(), chat.Company{ID: "c" + n, Name: n}),
			s.PutApplication(t.Context(), chat.Application{ID: "a" + n, CompanyID: owner, Name: n, WidgetConfigs: []byte(`{}`)}),
			s.PutTemplate(t.Context(), chat.MessageTemplate{ID: "t" + n, CompanyID: owner, Parameters: []chat.TemplateParameter{{Name: n}}}),
		} {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	companies := pages(t, func(c chat.Company) string { return c.ID }, func(p store.Page) ([]chat.Company, error) { return s.Companies(t.Context(), p) })
	if want := []string{"c0", "c1", "c2", "c3", "c4"}; !slices.Equal(companies, want) {
		t.Errorf("companies: got %v, want %v", companies, want)
	}
	for owner, want := range map[string]string{"even": "0 2 4", "odd": "1 3", "": "0 1 2 3 4"} {
		applications := pages(t, func(a chat.Application) string { return a.Name },
			func(p store.Page) ([]chat.Application, error) {
				if p.After != "" {
					p.After = "a" + p.After
				}
				return s.Applications(t.Context(), owner, p)
			})
		templates := pages(t, func(m chat.MessageTemplate) string { return m.Parameters[0].Name },
			func(p store.Page) ([]chat.MessageTemplate, error) {
				if p.After != "" {
					p.After = "t" + p.After
				}
				return s.Templates(t.Context(), owner, p)
			})
		if fmt.Sprint(applications) != "["+want+"]" || fmt.Sprint(templates) != "["+want+"]" {
			t.Errorf("of %q: got applications %v and templates %v, want %s", owner, applications, templates, want)
		}
	}
	if all, err := s.Companies(t.Context(), store.Page{}); err != nil || len(all) != 5 {
		t.Errorf("without a limit: got %d, %v, want all 5", len(all), err)
	}
}

func TestChatsAreListedTheNewestFirst(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	var visitors []chat.Visitor
	var ids []string
	for i := range 4 {
		v := chat.Visitor{ID: uuid.NewString(), CompanyID: "company", AppID: []string{"even", "odd"}[i%2]}
		c, _, err := s.OpenChat(t.Context(), v, store.NewChat{Channel: chat.ChannelWidget, Now: at(i / 2)}) // two of one moment each
		if err != nil {
			t.Fatal(err)
		}
		visitors, ids = append(visitors, v), append(ids, c.ID)
	}
	if err := s.CloseChat(t.Context(), ids[0], at(10)); err != nil {
		t.Fatal(err)
	}
	if err := s.AppendMessage(t.Context(), ids[1], chat.Message{ID: uuid.NewString(), CreatedAt: at(5), Data: []byte(`{}`)}); err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(ids); i += 2 { // of one moment the smaller id comes first
		if ids[i] > ids[i+1] {
			ids[i], ids[i+1] = ids[i+1], ids[i]
			visitors[i], visitors[i+1] = visitors[i+1], visitors[i]
		}
	}
	newest := []string{ids[2], ids[3], ids[0], ids[1]}
	of := func(keep func(chat.Chat) bool) (want []string) {
		for _, id := range newest {
			if c, err := s.Chat(t.Context(), id); err == nil && keep(c) {
				want = append(want, id)
			}
		}
		return want
	}
	for name, test := range map[string]struct {
		filter store.ChatFilter
		want   []string
	}{
		"all":               {store.ChatFilter{}, newest},
		"of the company":    {store.ChatFilter{CompanyID: "company"}, newest},
		"of another":        {store.ChatFilter{CompanyID: "other"}, nil},
		"of an application": {store.ChatFilter{AppID: "odd"}, of(func(c chat.Chat) bool { return c.AppID == "odd" })},
		"of a visitor":      {store.ChatFilter{ChatUserID: visitors[2].ID}, []string{ids[2]}},
		"closed":            {store.ChatFilter{Status: chat.Closed, Now: at(11)}, of(func(c chat.Chat) bool { return c.Status(at(11)) == chat.Closed })},
		"active":            {store.ChatFilter{Status: chat.Active, Now: at(11)}, of(func(c chat.Chat) bool { return c.Status(at(11)) == chat.Active })},
		"pending":           {store.ChatFilter{Status: chat.Pending, Now: at(11)}, of(func(c chat.Chat) bool { return c.Status(at(11)) == chat.Pending })},
	} {
		got := pages(t, func(c chat.Chat) string { return c.ID }, func(p store.Page) ([]chat.Chat, error) { return s.Chats(t.Context(), test.filter, p) })
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: got %v, want %v", name, got, test.want)
		}
	}
	if _, err := s.Chats(t.Context(), store.ChatFilter{}, store.Page{After: "nobody"}); !apperr.Is(err, apperr.NotFound) {
		t.Errorf("behind a chat that is not there: got %v, want NotFound", err)
	}
}

func TestFindVisitorMakesNobody(t *testing.T) {
	t.Parallel()
	s := storetest.Open(t)
	ada := store.Identity{Scope: "app", Kind: store.KindEmail, Value: "Ada@example.com"}
	for range 2 {
		if _, err := s.FindVisitor(t.Context(), ada); !apperr.Is(err, apperr.NotFound) {
			t.Fatalf("got %v, want NotFound", err)
		}
	}
	id, _, err := s.ResolveVisitor(t.Context(), []store.Identity{ada})
	if err != nil {
		t.Fatal(err)
	}
	ada.Value = "ada@EXAMPLE.com"
	if got, err := s.FindVisitor(t.Context(), ada); err != nil || got != id {
		t.Errorf("got %q, %v, want %q", got, err, id)
	}
}
