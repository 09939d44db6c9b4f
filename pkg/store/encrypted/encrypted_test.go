package encrypted_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/store/encrypted"
	"github.com/parley-chat/parley/testkit/storetest"
)

var errKilled = errors.New("killed")

// mortal is an engine whose process dies after some changes of users.
type mortal struct {
	store.Store
	changes int
}

func (m *mortal) UpdateUser(ctx context.Context, u account.User) error {
	if m.changes--; m.changes < 0 {
		return errKilled
	}
	return m.Store.UpdateUser(ctx, u)
}

// TestReencryptResumes encrypts more records than a page; each run is interrupted.
func TestReencryptResumes(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	const users, lifetime = 450, 100
	s := storetest.Open(t)
	for n := range users {
		u := account.NewUser(fmt.Sprintf("user%d@example.com", n), "", account.Operator, "", time.Now())
		u.TOTPSecret = account.NewTOTPSecret()
		if err := s.CreateUser(ctx, u); err != nil {
			t.Fatal(err)
		}
	}
	keys := storetest.RotatedKeys(t)
	engine := &mortal{Store: encrypted.Engine(s)}
	fresh := encrypted.New(engine, keys)
	total, runs := 0, 0
	for {
		engine.changes = lifetime
		changed, err := fresh.Reencrypt(ctx)
		total, runs = total+changed, runs+1
		if err == nil {
			break
		}
		if !errors.Is(err, errKilled) || runs > users {
			t.Fatalf("run %d: got %d records, %v", runs, changed, err)
		}
	}
	if total != users || runs != users/lifetime+1 {
		t.Errorf("got %d records in %d runs, want each of %d once", total, runs, users)
	}
	used, err := fresh.Usage(ctx)
	if err != nil || len(used) != 1 || used[keys.Primary()] != users {
		t.Errorf("keys in use: got %v, %v, want only %s", used, err, keys.Primary())
	}
}

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }
