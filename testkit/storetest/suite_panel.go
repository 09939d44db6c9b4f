package storetest

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/webhook"
)

func testUsers(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	company := newID()
	_, err := s.User(ctx, newID())
	wantReason(t, "an unknown user", err, apperr.NotFound, "USER_NOT_FOUND")
	ada := account.NewUser(" Ada@Example.com", "Ada é", account.Owner, company, at(0))
	ada.PasswordHash, ada.LastSignInAt, ada.TOTPSecret, ada.TOTPStep = "$argon2id$", at(time.Second), "ABC", 1<<40
	ada.RecoveryCodes, ada.Issuer, ada.Subject, ada.DeviceKey = "a b", "https://id.example.com", "s-1", "k"
	ada.InvitationHash, ada.InvitationExpiresAt = "h", at(time.Hour)
	must(t, s.CreateUser(ctx, ada))
	want(t, "a user", get[account.User](t)(s.User(ctx, account.UserID("ada@example.COM"))), ada)
	wantReason(t, "the address again", s.CreateUser(ctx, account.NewUser("ADA@example.com", "", account.Agent, newID(), noon)), apperr.Conflict, "EMAIL_TAKEN")
	wantCode(t, "no address", s.CreateUser(ctx, account.NewUser("ada", "", account.Agent, company, noon)), apperr.Invalid)

	results := together(t, 8, func(n int) (string, error) {
		changed := ada
		changed.Name = fmt.Sprint("Ada ", n)
		err := s.UpdateUser(ctx, changed)
		if apperr.Is(err, apperr.Conflict) {
			return "", nil
		}
		return changed.Name, err
	})
	results = slices.DeleteFunc(results, func(name string) bool { return name == "" })
	if len(results) != 1 {
		t.Fatalf("concurrent updates of one revision: got %d that took effect, want 1", len(results))
	}
	ada.Name, ada.Revision = results[0], 1
	want(t, "a changed user", get[account.User](t)(s.User(ctx, ada.ID)), ada)
	wantCode(t, "an update of an unknown user", s.UpdateUser(ctx, account.User{ID: newID()}), apperr.NotFound)

	bob := account.NewUser("bob@example.com", "", account.Agent, newID(), at(0))
	operator := account.NewUser("op@example.com", "", account.Operator, "", at(0))
	must(t, errors.Join(s.CreateUser(ctx, bob), s.CreateUser(ctx, operator)))
	want(t, "a company's users", get[[]account.User](t)(s.Users(ctx, company, store.Page{})), []account.User{ada})
	every := []account.User{ada, bob, operator}
	slices.SortFunc(every, func(a, b account.User) int { return slices.Compare([]byte(a.ID), []byte(b.ID)) })
	want(t, "all users", get[[]account.User](t)(s.Users(ctx, "", store.Page{})), every)
	want(t, "a page", get[[]account.User](t)(s.Users(ctx, "", store.Page{After: every[0].ID, Limit: 1})), every[1:2])

	_, session := account.NewSession(ada.ID, "127.0.0.1", "a browser", at(0))
	must(t, s.CreateSession(ctx, session))
	must(t, s.DeleteUser(ctx, ada.ID))
	wantCode(t, "a deleted user", s.DeleteUser(ctx, ada.ID), apperr.NotFound)
	_, err = s.Session(ctx, session.ID)
	wantCode(t, "a deleted user's session", err, apperr.NotFound)
	must(t, s.CreateUser(ctx, ada))
}

func testSessions(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	_, err := s.Session(ctx, "unknown")
	wantReason(t, "an unknown session", err, apperr.NotFound, "SESSION_NOT_FOUND")
	start := store.UTC(time.Now()) // not noon, which expired long ago
	var all []account.Session
	for i := range 3 {
		_, d := account.NewSession("ada", "127.0.0.1", "a browser", start.Add(time.Duration(i)*time.Second))
		all = append(all, d)
		must(t, s.CreateSession(ctx, d))
	}
	_, foreign := account.NewSession("bob", "", "", start)
	must(t, s.CreateSession(ctx, foreign))
	must(t, s.SessionUsed(ctx, all[0].ID, start.Add(2*time.Hour), start.Add(20*time.Hour)))
	must(t, s.SessionUsed(ctx, all[0].ID, start.Add(time.Hour), start.Add(10*time.Hour)))
	all[0].LastSeenAt, all[0].ExpiresAt = start.Add(2*time.Hour), start.Add(20*time.Hour)
	wantCode(t, "use of an unknown session", s.SessionUsed(ctx, "unknown", start, start), apperr.NotFound)
	want(t, "a session", get[account.Session](t)(s.Session(ctx, all[0].ID)), all[0])
	want(t, "a user's sessions", get[[]account.Session](t)(s.UserSessions(ctx, "ada", store.Page{})), all)
	for range 2 {
		must(t, s.DeleteSessions(ctx, store.SessionFilter{ID: all[0].ID}))
	}
	_, err = s.UserSessions(ctx, "bob", store.Page{After: all[0].ID})
	wantCode(t, "a page after another user's session", err, apperr.NotFound)
	want(t, "the sessions that were kept", get[[]account.Session](t)(s.UserSessions(ctx, "ada", store.Page{})), all[1:])
	must(t, s.DeleteSessions(ctx, store.SessionFilter{UserID: "ada"}))
	want(t, "another user's sessions", get[[]account.Session](t)(s.UserSessions(ctx, "bob", store.Page{})), []account.Session{foreign})
	if left := get[[]account.Session](t)(s.UserSessions(ctx, "ada", store.Page{})); len(left) != 0 {
		t.Errorf("sessions that were ended: got %v, want none", left)
	}
}

func testAudit(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	company, other := newID(), newID()
	start := store.UTC(time.Now()) // not noon, which the retention passes
	aged := func(age time.Duration) account.AuditEntry {
		id := uuid.Must(uuid.NewV7())
		binary.BigEndian.PutUint64(id[:8], uint64(start.Add(-age).UnixMilli())<<16|7<<12)
		return account.AuditEntry{ID: id.String(), CompanyID: company, At: start.Add(-age), Action: "token.create"}
	}
	old, kept := aged(account.AuditRetention+time.Hour), aged(account.AuditRetention-time.Hour)
	must(t, errors.Join(s.AppendAuditEntry(ctx, old), s.AppendAuditEntry(ctx, kept)))
	want(t, "what is kept", get[[]account.AuditEntry](t)(s.AuditEntries(ctx, store.AuditFilter{CompanyID: company}, store.Page{})), []account.AuditEntry{kept})
	company = newID()
	var all []account.AuditEntry
	for i := range 5 {
		e := account.AuditEntry{
			ID: uuid.Must(uuid.NewV7()).String(), CompanyID: company, At: start.Add(time.Duration(i) * time.Second), UserID: newID(), User: "ada@example.com",
			Action: "token.create", Target: "token", TargetID: fmt.Sprint("t", i%2), After: json.RawMessage(`{"n":1e999, "é":1}`),
		}
		if i == 4 {
			e.CompanyID = other
		}
		all = append(all, e)
		must(t, errors.Join(s.AppendAuditEntry(ctx, e), s.AppendAuditEntry(ctx, account.AuditEntry{ID: e.ID})))
	}
	slices.Reverse(all)
	want(t, "all entries", get[[]account.AuditEntry](t)(s.AuditEntries(ctx, store.AuditFilter{}, store.Page{})), append(slices.Clone(all), kept))
	want(t, "a company's", get[[]account.AuditEntry](t)(s.AuditEntries(ctx, store.AuditFilter{CompanyID: company}, store.Page{})), all[1:])
	want(t, "a page", get[[]account.AuditEntry](t)(s.AuditEntries(ctx, store.AuditFilter{CompanyID: company}, store.Page{After: all[1].ID, Limit: 2})), all[2:4])
	want(t, "of a target", get[[]account.AuditEntry](t)(s.AuditEntries(ctx, store.AuditFilter{CompanyID: company, TargetID: "t0"}, store.Page{})),
		[]account.AuditEntry{all[2], all[4]})
}

func testControl(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	c := openChat(t, s)
	_, err := s.ChangeChat(ctx, newID(), store.ChatChange{Control: chat.Control{Agent: true, ChangedAt: noon}})
	wantCode(t, "an unknown chat", err, apperr.NotFound)
	wantCode(t, "reading an unknown chat", errorOf(s.ChangeChat(ctx, newID(), store.ChatChange{AgentsReadAt: noon})), apperr.NotFound)
	taken := chat.Control{Agent: true, Assignee: "ada", ChangedAt: at(time.Minute)}
	for _, step := range []struct{ set, want chat.Control }{
		{taken, taken},
		{chat.Control{ChangedAt: at(time.Second)}, taken}, // late
		{chat.Control{ChangedAt: at(time.Hour)}, chat.Control{ChangedAt: at(time.Hour)}},
		{taken, chat.Control{ChangedAt: at(time.Hour)}}, // repeated
	} {
		got := get[chat.Chat](t)(s.ChangeChat(ctx, c.ID, store.ChatChange{Control: step.set}))
		want(t, "the answer's control", got.Control, step.want)
		want(t, "the stored control", get[chat.Chat](t)(s.Chat(ctx, c.ID)).Control, step.want)
	}
	appendAll(t, s, c.ID, text(newID(), noon.Add(time.Minute)))
	must(t, errors.Join(errorOf(s.ChangeChat(ctx, c.ID, store.ChatChange{AgentsReadAt: noon.Add(30 * time.Second)})), errorOf(s.ChangeChat(ctx, c.ID, store.ChatChange{AgentsReadAt: noon.Add(time.Second)}))))
	if got := get[chat.Chat](t)(s.Chat(ctx, c.ID)); !got.Unread() || !got.AgentsReadAt.Equal(at(30*time.Second)) {
		t.Errorf("read before the last message: got %+v, want unread", got)
	}
	get[chat.Chat](t)(s.ChangeChat(ctx, c.ID, store.ChatChange{AgentsReadAt: noon.Add(2 * time.Minute)}))
	if got := get[chat.Chat](t)(s.Chat(ctx, c.ID)); got.Unread() {
		t.Errorf("read after the last message: got %+v, want read", got)
	}
}

func testInbox(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	company, app := newID(), newID()
	var all []store.InboxEntry
	for i := range 7 {
		v := chat.Visitor{ID: newID(), CompanyID: company, AppID: app, FirstName: "Ada", Email: fmt.Sprintf("ada%d@example.com", i)}
		if i == 5 {
			v.FirstName, v.LastName, v.AppID = "Grace", "HOPPER", newID()
		}
		switch i {
		case 3:
			v.Phone, v.UserID = "+989121234567", "u-3"
		case 4:
			v.Phone, v.Email = "989121234567", "ada3@example.com"
		}
		v = save(t, s, v)
		created := noon.Add(time.Duration(i/2) * time.Minute) // some at the same time
		c, _, err := s.OpenChat(ctx, v, store.NewChat{Channel: chat.ChannelWidget, Now: created})
		must(t, err)
		all = append(all, store.InboxEntry{Chat: c, Visitor: v})
	}
	openChat(t, s) // another company's
	change := func(n int, change func(id string) error) {
		id := all[n].Chat.ID
		must(t, change(id))
		all[n].Chat = get[chat.Chat](t)(s.Chat(ctx, id))
		all[n].Visitor = get[chat.Visitor](t)(s.Visitor(ctx, all[n].Visitor.ID))
	}
	for n := range all {
		change(n, func(string) error { return nil })
	}
	wrote := func(id string) error { return s.AppendMessage(ctx, id, text(newID(), noon.Add(time.Hour))) }
	change(0, wrote)
	change(1, wrote)
	change(1, func(id string) error {
		return errorOf(s.ChangeChat(ctx, id, store.ChatChange{AgentsReadAt: noon.Add(2 * time.Hour)}))
	})
	change(2, func(id string) error {
		return errorOf(s.ChangeChat(ctx, id, store.ChatChange{ClosedAt: noon.Add(time.Hour)}))
	})
	change(3, func(id string) error {
		_, err := s.ChangeChat(ctx, id, store.ChatChange{Control: chat.Control{Agent: true, Assignee: "ada", ChangedAt: noon}})
		return err
	})
	for n, since := range map[int]time.Duration{0: 2 * time.Minute, 4: time.Minute, 6: time.Minute} {
		change(n, func(id string) error {
			by := chat.Handover{By: chat.ByNoBot, At: noon.Add(since)}
			_, err := s.ChangeChat(ctx, id, store.ChatChange{Control: chat.Control{Agent: true, ChangedAt: noon.Add(since), Handover: by}})
			return err
		})
	}
	change(5, func(id string) error { // not waiting: the visitor has not written
		_, err := s.ChangeChat(ctx, id, store.ChatChange{Control: chat.Control{Agent: true, ChangedAt: noon}})
		return err
	})
	slices.SortFunc(all, func(a, b store.InboxEntry) int {
		if byTime := b.Chat.WindowStartedAt.Compare(a.Chat.WindowStartedAt); byTime != 0 {
			return byTime
		}
		return slices.Compare([]byte(a.Chat.ID), []byte(b.Chat.ID))
	})
	base := store.InboxFilter{CompanyID: company, Now: noon.Add(time.Hour)}
	for name, f := range map[string]func(*store.InboxFilter){
		"all":         func(*store.InboxFilter) {},
		"application": func(f *store.InboxFilter) { f.AppID = app },
		"open":        func(f *store.InboxFilter) { f.Status = store.StatusOpen },
		"closed":      func(f *store.InboxFilter) { f.Status = string(chat.Closed) },
		"text":        func(f *store.InboxFilter) { f.Text = "ce hopp" },
		"email":       func(f *store.InboxFilter) { f.Text = "ADA6@" },
		"user id":     func(f *store.InboxFilter) { f.Profile.UserID = "u-3" },
		"an address":  func(f *store.InboxFilter) { f.Profile.Email = "Ada3@Example.com" },
		"a phone":     func(f *store.InboxFilter) { f.Profile.Phone = "+989121234567" },
		"digits":      func(f *store.InboxFilter) { f.Profile.Phone = "989121234567" },
		"both":        func(f *store.InboxFilter) { f.Profile.Phone, f.Profile.UserID, f.AppID = "989121234567", "u-3", app },
		"still open":  func(f *store.InboxFilter) { f.Profile.Email, f.Status = "ada3@example.com", store.StatusOpen },
		"unread":      func(f *store.InboxFilter) { f.Unread = true },
		"unread app":  func(f *store.InboxFilter) { f.Unread, f.AppID = true, app },
		"assignee":    func(f *store.InboxFilter) { f.Assignee = "ada" },
		"unassigned":  func(f *store.InboxFilter) { f.Assignee = store.NoAssignee },
		"agent's":     func(f *store.InboxFilter) { f.Control = store.ControlAgent },
		"a visitor's": func(f *store.InboxFilter) { f.VisitorID = all[1].Visitor.ID },
		"waiting":     func(f *store.InboxFilter) { f.Waiting = true },
		"waiting app": func(f *store.InboxFilter) { f.Waiting, f.AppID = true, app },
	} {
		filter := base
		f(&filter)
		wanted := slices.DeleteFunc(slices.Clone(all), func(e store.InboxEntry) bool { return !filter.Wants(e.Chat, e.Visitor) })
		if filter.Waiting {
			slices.SortFunc(wanted, func(a, b store.InboxEntry) int {
				return cmp.Or(a.Chat.Control.ChangedAt.Compare(b.Chat.Control.ChangedAt), cmp.Compare(a.Chat.ID, b.Chat.ID))
			})
		}
		if len(wanted) == 0 {
			t.Fatalf("%s: the test has no chat for it", name)
		}
		got := []store.InboxEntry{}
		for p := (store.InboxPage{Limit: 2}); ; {
			page, next, err := s.Inbox(ctx, filter, p)
			must(t, err)
			got = append(got, page...)
			if next == nil {
				break
			}
			p.After = next
		}
		want(t, "the inbox, "+name, got, wanted)
	}
	found, _, err := s.FindVisitors(ctx, company, "hopper", store.Page{Limit: 10})
	must(t, err)
	want(t, "found visitors", found[0].LastName, "HOPPER")
	found, _, err = s.FindVisitors(ctx, company, "", store.Page{Limit: 3})
	must(t, err)
	want(t, "the limit", len(found), 3)
}

func testErase(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	company := newID()
	visitor := func(email string) (chat.Visitor, chat.Chat) {
		v := get[store.Registered](t)(s.Register(ctx, store.Registration{Identities: []store.Identity{{Scope: "app", Kind: store.KindEmail, Value: email}, {Scope: "app", Kind: store.KindUserID, Value: email}}, Visitor: chat.Visitor{CompanyID: company, AppID: "app"}})).Visitor
		c, _, err := s.OpenChat(ctx, v, store.NewChat{Channel: chat.ChannelWidget, Now: noon})
		must(t, err)
		reply := fromCompany(newID(), noon)
		appendAll(t, s, c.ID, text(newID(), noon), reply)
		get[chat.MessageStatus](t)(s.JoinMessageStatus(ctx, company, reply.ID, chat.MessageStatus{StoredAt: noon}))
		get[time.Time](t)(s.AwaitReceipts(ctx, c.ID, reply, false))
		get[bool](t)(s.InsertWebhookDelivery(ctx, webhook.Delivery{ID: "delivery-" + email, CompanyID: company, ChatID: c.ID, CreatedAt: noon, Status: webhook.Delivered}))
		must(t, s.PutFile(ctx, chat.StoredFile{ID: "file-" + email, ChatUserID: v.ID, CompanyID: company, CreatedAt: noon}))
		return v, c
	}
	ada, adasChat := visitor("ada")
	bob, bobsChat := visitor("bob")
	want(t, "the files", get[[]string](t)(s.IDs(ctx, store.IDFilter{FilesOf: ada.ID}, store.Page{})), []string{"file-ada"})
	want(t, "what was erased", get[store.Erased](t)(s.EraseVisitor(ctx, ada.ID)),
		store.Erased{Visitors: 1, Identities: 2, Chats: 1, Messages: 2, Statuses: 1, Files: 1})
	want(t, "erasing again", get[store.Erased](t)(s.EraseVisitor(ctx, ada.ID)), store.Erased{})
	_, err := s.Visitor(ctx, ada.ID)
	wantCode(t, "the erased visitor", err, apperr.NotFound)
	_, err = s.Chat(ctx, adasChat.ID)
	wantCode(t, "the erased chat", err, apperr.NotFound)
	if left := get[store.ChatReceipts](t)(s.ChatReceipts(ctx, adasChat.ID)).Undelivered; len(left) != 0 {
		t.Errorf("receipts of the erased chat: got %v, want none", left)
	}
	if again := resolve(t, s, store.Identity{Scope: "app", Kind: store.KindEmail, Value: "ada"}); !again.created || again.id == ada.ID {
		t.Errorf("registering the erased visitor again: got %+v, want a new id", again)
	}
	_, err = s.WebhookDelivery(ctx, "delivery-ada")
	wantCode(t, "the erased visitor's webhook delivery", err, apperr.NotFound)
	get[webhook.Delivery](t)(s.WebhookDelivery(ctx, "delivery-bob"))
	get[chat.Visitor](t)(s.Visitor(ctx, bob.ID))
	want(t, "another visitor's history", len(walk(t, s, bobsChat.ID, store.HistoryQuery{})), 2)
}
