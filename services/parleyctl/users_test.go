package parleyctl_test

import (
	"strings"
	"testing"

	"github.com/parley-chat/parley/pkg/account"
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
