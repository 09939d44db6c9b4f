package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

// AtOnce is the number of concurrent callers in the tests. TestMain of an emulation that scans a collection
// for a look-up sets fewer.
var AtOnce = 64

// Largest is the size of the largest message data, in bytes. An emulation that decodes it for every look-up
// supports less.
var Largest = 8 << 20

// Nul is a character that engines often lose. An emulation on PostgreSQL's jsonb cannot store it, and sets another one.
var Nul = "\x00"

func testVisitors(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	id := newID()
	_, err := s.Visitor(ctx, id)
	wantReason(t, "an unknown visitor", err, apperr.NotFound, "VISITOR_NOT_FOUND")
	wantCode(t, "revoking an unknown visitor's tokens", s.RevokeVisitorTokens(ctx, id, noon), apperr.NotFound)

	first := chat.Visitor{ID: id, CompanyID: newID(), AppID: newID(), FirstName: "Ada" + Nul, Email: "ada@example.com", VerifiedBy: store.KindEmail}
	want(t, "a new visitor", save(t, s, first), first)
	merged := first
	merged.LastName, merged.Email, merged.UserID, merged.Phone = "Lovelace", "ada@lovelace.example", "7", "49123456789"
	want(t, "a visitor again", save(t, s, chat.Visitor{
		ID: id, CompanyID: newID(), AppID: newID(), LastName: "Lovelace", Email: "ada@lovelace.example", UserID: "7", Phone: "49123456789",
		VerifiedBy: store.KindPhone, ChatNumber: 9, TokensValidFrom: noon,
	}), merged)

	for _, hours := range []int{2, 3, 1} {
		must(t, s.RevokeVisitorTokens(ctx, id, noon.Add(time.Duration(hours)*time.Hour)))
	}
	merged.TokensValidFrom = at(3 * time.Hour)
	want(t, "a visitor after a save without news", save(t, s, chat.Visitor{ID: id}), merged)
	want(t, "a visitor", get[chat.Visitor](t)(s.Visitor(ctx, id)), merged)

	t.Run("saved by many at once", func(t *testing.T) {
		v := chat.Visitor{ID: newID(), CompanyID: newID(), AppID: newID()}
		together(t, AtOnce, func(n int) (chat.Visitor, error) {
			save := v
			if n%2 == 0 {
				save.FirstName = "Ada"
			} else {
				save.LastName = "Lovelace"
			}
			r, err := s.Register(ctx, store.Registration{Visitor: save})
			return r.Visitor, err
		})
		v.FirstName, v.LastName = "Ada", "Lovelace"
		want(t, "the visitor", get[chat.Visitor](t)(s.Visitor(ctx, v.ID)), v)
	})
}

// claim is the visitor of a registration by identities.
type claim struct {
	id      string
	created bool
}

func resolve(t testing.TB, s store.Store, identities ...store.Identity) claim {
	t.Helper()
	c, err := claimOf(s.Register(t.Context(), store.Registration{Identities: identities}))
	must(t, err)
	return c
}

func claimOf(r store.Registered, err error) (claim, error) {
	return claim{r.Visitor.ID, r.Created}, err
}

func testIdentities(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	email := func(scope, value string) store.Identity {
		return store.Identity{Scope: scope, Kind: store.KindEmail, Value: value}
	}
	userID := func(scope, value string) store.Identity {
		return store.Identity{Scope: scope, Kind: store.KindUserID, Value: value}
	}
	phone := func(scope, value string) store.Identity {
		return store.Identity{Scope: scope, Kind: store.KindPhone, Value: value}
	}
	proved := func(i store.Identity) store.Identity {
		i.Proved = true
		return i
	}

	_, err := s.Register(ctx, store.Registration{Identities: []store.Identity{{Scope: "a", Kind: store.KindEmail}, {Scope: "a", Kind: "name", Value: "x"}}})
	wantCode(t, "no usable identity", err, apperr.Invalid)
	_, err = s.FindVisitor(ctx, email("a", "ada@example.com"))
	wantReason(t, "an unowned identity", err, apperr.NotFound, "VISITOR_NOT_FOUND")

	ada := resolve(t, s, email("a", "ada@example.com"), phone("a", ""))
	if !ada.created {
		t.Error("a new identity: got a visitor that was known, want a new one")
	}
	known := claim{id: ada.id}
	want(t, "the same in other letters", resolve(t, s, email("a", " Ada@Example.COM ")), known)
	want(t, "with a new identity", resolve(t, s, phone("a", "1"), email("a", "ada@example.com")), known)
	want(t, "by that alone", resolve(t, s, phone("a", "1")), known)
	want(t, "found by it", get[string](t)(s.FindVisitor(ctx, phone("a", "1"))), ada.id)

	others := map[string]claim{
		"in another scope": resolve(t, s, email("b", "ada@example.com")),
		"proved":           resolve(t, s, proved(email("a", "ada@example.com"))),
		"another kind":     resolve(t, s, userID("a", "1")),
	}
	for name, other := range others {
		if !other.created || other.id == ada.id {
			t.Errorf("%s: got %+v, want another visitor than %s", name, other, ada.id)
		}
	}
	strongest := claim{id: others["another kind"].id}
	want(t, "of several visitors the strongest", resolve(t, s, phone("a", "1"), email("a", "new@example.com"), userID("a", "1")), strongest)
	want(t, "nothing is merged", resolve(t, s, phone("a", "1")), known)
	want(t, "the unowned is the strongest's", resolve(t, s, email("a", "new@example.com")), strongest)

	t.Run("one identity claimed by many at once", func(t *testing.T) {
		claims := together(t, AtOnce, func(int) (claim, error) {
			return claimOf(s.Register(ctx, store.Registration{Identities: []store.Identity{email("many", "x@example.com")}}))
		})
		var found []string
		var created []bool
		for _, c := range claims {
			found, created = append(found, c.id), append(created, c.created)
		}
		wantOneOf(t, "owners", found)
		if n := count(created); n != 1 {
			t.Errorf("got %d calls that created the visitor, want 1", n)
		}
	})
	t.Run("new identities brought together by some of many at once", func(t *testing.T) {
		for round := range 8 {
			mail, user := email("pairs", fmt.Sprintf("%d@example.com", round)), userID("pairs", fmt.Sprint(round))
			together(t, 12, func(n int) (string, error) {
				identities := [][]store.Identity{{mail}, {mail, user}, {user, mail}}[n%3]
				r, err := s.Register(ctx, store.Registration{Identities: identities})
				return r.Visitor.ID, err
			})
			wantOneOf(t, "owners", []string{resolve(t, s, mail).id, resolve(t, s, user).id})
		}
	})
	t.Run("odd values", func(t *testing.T) {
		for _, value := range []string{"a|b", "$x.y", Nul, "é😀", "person|x", strings.Repeat("x", 500)} {
			first := resolve(t, s, userID("odd", value))
			if second := resolve(t, s, userID("odd", value)); !first.created || second != (claim{id: first.id}) {
				t.Errorf("%q: got %+v and %+v, want one new visitor", value, first, second)
			}
		}
	})
}

func testRegistration(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	company, app := newID(), newID()
	mail := func(value string) store.Identity {
		return store.Identity{Scope: app, Kind: store.KindEmail, Value: value}
	}
	registration := func(name string, identities ...store.Identity) store.Registration {
		return store.Registration{
			Visitor:    chat.Visitor{CompanyID: company, AppID: app, FirstName: name},
			Identities: identities,
			Chat:       &store.NewChat{Channel: chat.ChannelWidget, Now: noon, Greetings: []chat.Message{fromCompany(newID(), noon)}},
		}
	}
	register := func(t *testing.T, r store.Registration) store.Registered {
		t.Helper()
		return get[store.Registered](t)(s.Register(ctx, r))
	}
	_, err := s.Register(ctx, registration("Nobody"))
	wantCode(t, "no identity", err, apperr.Invalid)
	broken := registration("Broken", mail("broken@example.com"))
	broken.Chat.Greetings[0].Data = []byte("{")
	_, err = s.Register(ctx, broken)
	wantCode(t, "a greeting that is not JSON", err, apperr.Invalid)

	first := registration("Ada", mail("ada@example.com"))
	ada := register(t, first)
	want(t, "the visitor", ada.Visitor, chat.Visitor{ID: ada.Visitor.ID, CompanyID: company, AppID: app, FirstName: "Ada", ChatNumber: ada.Visitor.ChatNumber})
	want(t, "found by the identity", get[string](t)(s.FindVisitor(ctx, mail("ada@example.com"))), ada.Visitor.ID)
	want(t, "the open chat", get[chat.Chat](t)(store.CurrentChat(ctx, s, ada.Visitor, noon)), ada.Chat)
	if !ada.Opened || !ada.Created || ada.Chat.ChatUserID != ada.Visitor.ID || ada.Chat.CompanyID != company || ada.Chat.AppID != app {
		t.Errorf("got %+v, want a new chat of the visitor", ada)
	}
	history, _, err := s.History(ctx, ada.Chat.ID, store.HistoryQuery{})
	must(t, err)
	want(t, "the history", history, []chat.Message{stored(first.Chat.Greetings[0])})

	again := register(t, registration("Augusta", mail("ADA@example.com"), mail("augusta@example.com")))
	if again.Opened || again.Created || again.Visitor.ID != ada.Visitor.ID || again.Visitor.FirstName != "Augusta" || again.Chat.ID != ada.Chat.ID {
		t.Errorf("again: got %+v, want the visitor with another name and the chat of %+v", again, ada)
	}
	want(t, "found by another identity", get[string](t)(s.FindVisitor(ctx, mail("augusta@example.com"))), ada.Visitor.ID)

	t.Run("a known visitor", func(t *testing.T) {
		r := registration("Lovelace", mail("unused@example.com"))
		r.Visitor.ID = ada.Visitor.ID
		if got := register(t, r); got.Opened || got.Chat.ID != ada.Chat.ID || got.Visitor.FirstName != "Lovelace" {
			t.Errorf("got %+v, want the chat of %+v", got, ada)
		}
		_, err := s.FindVisitor(ctx, mail("unused@example.com"))
		wantCode(t, "an identity that was not used", err, apperr.NotFound)
	})
	t.Run("only unowned identities", func(t *testing.T) {
		r := registration("Eve", mail("ada@example.com"), mail("eve@example.com"))
		r.OnlyUnowned = true
		eve := register(t, r)
		if !eve.Opened || eve.Visitor.ID == ada.Visitor.ID {
			t.Errorf("got %+v, want another visitor than %+v", eve, ada)
		}
		_, err := s.FindVisitor(ctx, mail("eve@example.com"))
		wantCode(t, "an identity sent beside an owned one", err, apperr.NotFound)
		r.Identities = []store.Identity{mail("eve@example.com")}
		mallory := register(t, r)
		want(t, "the owner of an unowned one", get[string](t)(s.FindVisitor(ctx, mail("eve@example.com"))), mallory.Visitor.ID)
	})
	t.Run("many at once", func(t *testing.T) {
		all := together(t, AtOnce, func(int) (store.Registered, error) {
			return s.Register(ctx, registration("Many", mail("many@example.com")))
		})
		var visitors, chats []string
		var opened []bool
		for _, r := range all {
			visitors, chats, opened = append(visitors, r.Visitor.ID), append(chats, r.Chat.ID), append(opened, r.Opened)
		}
		wantOneOf(t, "visitors", visitors)
		wantOneOf(t, "chats", chats)
		if n := count(opened); n != 1 {
			t.Errorf("got %d calls that opened the chat, want 1", n)
		}
	})
	t.Run("many at once, with one unowned identity", func(t *testing.T) {
		all := together(t, AtOnce, func(int) (string, error) {
			r := registration("Single", mail("single@example.com"))
			r.OnlyUnowned = true
			done, err := s.Register(ctx, r)
			return done.Visitor.ID, err
		})
		slices.Sort(all)
		if distinct := len(slices.Compact(all)); distinct != AtOnce {
			t.Errorf("got %d visitors, want %d", distinct, AtOnce)
		}
	})
}
