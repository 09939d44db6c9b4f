package admin

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/testkit/storetest"
)

func entriesOf(t *testing.T, s store.Store) []account.AuditEntry {
	t.Helper()
	entries, err := s.AuditEntries(t.Context(), store.AuditFilter{}, store.Page{})
	if err != nil {
		t.Fatal(err)
	}
	return entries
}

// However large the records are, an entry has at most 8 KiB: large values are kept as digests.
func TestAuditEntriesAreBounded(t *testing.T) {
	t.Parallel()
	s := storetest.OpenAt(t, storetest.Path(t))
	operations := New(s, nil, time.Now)
	large := json.RawMessage(`{"text":"` + strings.Repeat("x", 1<<20-11) + `"}`)
	many := fields{"name": "n", "widgetConfigs": large, "text": strings.Repeat("é", 4096)}
	for n := range 6 {
		many[fmt.Sprint("origins", n)] = strings.Repeat("o", maxAuditValue-10)
	}
	c := change{action: "application.update", target: "application", before: fields{"name": "before"}, after: many}
	if err := operations.audit(t.Context(), Actor{Name: strings.Repeat("a", 254)}, c); err != nil {
		t.Fatal(err)
	}
	e := entriesOf(t, s)[0]
	if size := len(e.Before) + len(e.After) + len(e.User); size > 8<<10-512 {
		t.Errorf("got an entry of %d bytes, want at most 8 KiB", size)
	}
	var after struct {
		Name, Text    any
		WidgetConfigs digest
	}
	if err := json.Unmarshal(e.After, &after); err != nil {
		t.Fatal(err)
	}
	want := digestOf(large, nil)
	if after.Name != "n" || after.WidgetConfigs != want || want.Bytes != 1<<20 {
		t.Errorf("got %v and %v, want the name and the digest %v", after.Name, after.WidgetConfigs, want)
	}
}

// A change that changes nothing leaves no entry; one of what entries do not show does.
func TestNoEntryWithoutAChange(t *testing.T) {
	t.Parallel()
	s := storetest.OpenAt(t, storetest.Path(t))
	operations, by := New(s, nil, time.Now), Actor{Name: "test"}
	wantEntries := func(what string, want int, err error) {
		t.Helper()
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		if got := len(entriesOf(t, s)); got != want {
			t.Errorf("%s: got %d entries, want %d", what, got, want)
		}
	}
	c, err := operations.PutCompany(t.Context(), by, chat.Company{Name: "Acme"})
	wantEntries("a new company", 1, err)
	_, err = operations.PutCompany(t.Context(), by, c)
	wantEntries("the same name", 1, err)
	u := account.NewUser("a@b.example", "", account.Owner, c.ID, time.Now())
	u, err = operations.CreateUser(t.Context(), by, u, "a long password")
	wantEntries("a new user", 2, err)
	_, err = operations.EditUser(t.Context(), by, u.ID, UserChange{Role: new(account.Owner)})
	wantEntries("the same role", 2, err)
	wantEntries("ending no sessions", 2, operations.EndSessions(t.Context(), by, u))
	_, err = operations.SetPassword(t.Context(), by, u.ID, "password", "another long password")
	wantEntries("another password", 3, err)
	same := change{action: "application.update", before: fields{"a": 1}, after: fields{"a": 1}}
	wantEntries("equal sides", 3, operations.audit(t.Context(), by, same))
}
