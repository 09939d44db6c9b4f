package parleyctl_test

import (
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/admin"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/services/parleyctl"
)

func TestUsers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.ctl("users", "create", "--email", "ada@example.com").fails(parleyctl.ExitUsage, "--role required")
	w.ctl("users", "create", "--email", "ada@example.com", "--role", "king").fails(parleyctl.ExitRefused, "operator, owner, developer or agent")
	w.ctl("users", "create", "--email", "ada@example.com", "--role", "owner", "--company", companyID).fails(parleyctl.ExitNotFound, "Company not found")
	made := decoded[object](w.ctl("users", "create", "--email", "Ada@example.com", "--role", "operator", "-o", "json"))
	password, _ := made["password"].(string)
	u, err := w.store.User(t.Context(), account.UserID("ada@example.com"))
	w.must(err)
	if right, err := account.VerifyPassword(t.Context(), password, u.PasswordHash); err != nil || !right || len(password) < 20 {
		t.Errorf("got the password %q, %v, %v, want one that works", password, right, err)
	}
	w.ctl("users", "create", "--email", "ada@example.com", "--role", "operator").fails(parleyctl.ExitRefused, "exists already")
	_, session := account.NewSession(u.ID, "", "", u.CreatedAt)
	w.must(w.store.CreateSession(t.Context(), session))
	again := decoded[object](w.ctl("users", "password", "ada@example.com", "--remove-totp", "-o", "json"))
	if again["password"] == password || again["password"] == "" {
		t.Errorf("got %v, want another password", again)
	}
	if left, err := w.store.UserSessions(t.Context(), u.ID, store.Page{}); err != nil || len(left) != 0 {
		t.Errorf("got the sessions %v, %v, want none", left, err)
	}
	if list := w.ctl("users", "list").done(); !strings.Contains(list, "ada@example.com") || strings.Contains(list, "argon2") {
		t.Errorf("got %s", list)
	}
	w.ctl("users", "delete", "ada@example.com", "--yes").fails(parleyctl.ExitRefused, "At least one user must be able to manage users")
	log, err := w.store.AuditEntries(t.Context(), store.AuditFilter{}, store.Page{})
	w.must(err)
	if len(log) != 2 || log[0].Action != "user.password" || log[0].User != "parleyctl" || strings.Contains(string(log[1].After), password) {
		t.Errorf("got %+v, want both changes without the password", log)
	}
}

// Single sign-on is bound to the issuer's subject until it is unbound, which ends all sessions.
func TestUnbindIdentity(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	u := account.NewUser("ada@example.com", "Ada", account.Operator, "", time.Now())
	u.Issuer, u.Subject, u.DeviceKey = "https://id.example.com", "s-1", "key"
	w.must(w.store.CreateUser(t.Context(), u))
	_, session := account.NewSession(u.ID, "", "", u.CreatedAt)
	w.must(w.store.CreateSession(t.Context(), session))
	operations := admin.New(w.store, nil, time.Now)
	if _, err := operations.BindIdentity(t.Context(), u.ID, u.Issuer, "s-2", ""); apperr.ReasonOf(err) != apperr.IdentityBound.Reason {
		t.Errorf("another subject: got %v, want IDENTITY_BOUND", err)
	}
	w.ctl("users", "unbind", "nobody@example.com", "--yes").fails(parleyctl.ExitNotFound, "User not found")
	w.ctl("users", "unbind", "ada@example.com", "--yes").done()
	if left, err := w.store.UserSessions(t.Context(), u.ID, store.Page{}); err != nil || len(left) != 0 {
		t.Errorf("got the sessions %v, %v, want none", left, err)
	}
	if found, err := w.store.User(t.Context(), u.ID); err != nil || found.DeviceKey != "" {
		t.Errorf("got %v and the devices' key %q, want none", err, found.DeviceKey)
	}
	w.ctl("users", "unbind", "ada@example.com", "--yes").fails(parleyctl.ExitRefused, "has not signed in with the identity provider")
	if bound, err := operations.BindIdentity(t.Context(), u.ID, u.Issuer, "s-2", ""); err != nil || bound.Subject != "s-2" {
		t.Errorf("the next sign-in: got %+v, %v, want it bound", bound, err)
	}
	log, err := w.store.AuditEntries(t.Context(), store.AuditFilter{}, store.Page{})
	w.must(err)
	if len(log) != 2 || log[1].Action != "user.unbind" || log[1].User != "parleyctl" {
		t.Errorf("got %+v, want the change by parleyctl", log)
	}
}
