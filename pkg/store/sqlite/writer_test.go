package sqlite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/idempotency"
	"github.com/parley-chat/parley/pkg/store"
)

func openTest(t testing.TB, now func() time.Time) *Store {
	t.Helper()
	s, err := Open(t.Context(), Config{Path: filepath.Join(t.TempDir(), "parley.db"), Logger: slog.New(slog.DiscardHandler), Now: now})
	if err != nil {
		t.Fatal(err)
	}
	s.sweeper.stop() // its writes would be among the test's
	t.Cleanup(func() {
		if err := s.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return s
}

func put(c *conn, id string) error {
	_, err := c.exec(`INSERT INTO companies (id, name) VALUES (?, '')`, id)
	return err
}

// group runs operations in one transaction, and returns their errors.
func group(t *testing.T, s *Store, ops ...func(*conn) error) []error {
	t.Helper()
	entered, release, blocked := make(chan struct{}), make(chan struct{}), make(chan error, 1)
	go func() {
		blocked <- s.writer.do(t.Context(), func(*conn) error {
			close(entered)
			<-release
			return nil
		})
	}()
	<-entered
	failures := make([]chan error, len(ops))
	for i, op := range ops {
		failures[i] = make(chan error, 1)
		waiting := len(s.writer.jobs)
		go func() { failures[i] <- s.writer.do(t.Context(), op) }()
		for len(s.writer.jobs) == waiting { // until it waits: the order of the operations is the test's
			time.Sleep(time.Microsecond)
		}
	}
	close(release)
	if err := <-blocked; err != nil {
		t.Fatal(err)
	}
	errs := make([]error, len(ops))
	for i := range failures {
		errs[i] = <-failures[i]
	}
	return errs
}

func companies(t *testing.T, s *Store) (all []string) {
	t.Helper()
	found, err := s.Companies(t.Context(), store.Page{})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range found {
		all = append(all, c.ID)
	}
	return all
}

func TestOnlyTheFailedWriteIsRolledBack(t *testing.T) {
	t.Parallel()
	s, failed := openTest(t, nil), errors.New("no")
	errs := group(t, s,
		func(c *conn) error { return put(c, "a") },
		func(c *conn) error { return errors.Join(put(c, "b"), failed) }, // after it has written
		func(*conn) error { return apperr.ChatNotFound.New() },
		func(c *conn) error { return put(c, "a") }, // the constraint fails
		func(c *conn) error { return put(c, "c") },
	)
	if errs[0] != nil || !errors.Is(errs[1], failed) || !apperr.Is(errs[2], apperr.NotFound) || errs[3] == nil || errs[4] != nil {
		t.Errorf("got %v, want only the second, third and fourth to fail, each with its own error", errs)
	}
	if got := fmt.Sprint(companies(t, s)); got != "[a c]" {
		t.Errorf("got companies %s, want [a c]", got)
	}
}

func TestWaitingWritesShareOneTransaction(t *testing.T) {
	t.Parallel()
	s := openTest(t, nil)
	begins := 0
	count := func(c *conn) error {
		var depth int // number of writes before this one in the transaction
		if _, err := c.first(`SELECT count(*) FROM companies`, func(r *row) { depth = int(r.int()) }); err != nil {
			return err
		}
		if depth == 0 {
			begins++
		}
		return put(c, fmt.Sprint(depth))
	}
	undo := func(c *conn) error { // sees its neighbours' writes before the commit
		others, err := s.Companies(t.Context(), store.Page{})
		if err != nil {
			return err
		}
		if len(others) != 0 {
			return fmt.Errorf("a reader sees %d rows that are not committed", len(others))
		}
		return put(c, "last")
	}
	for _, err := range group(t, s, count, count, count, undo) {
		if err != nil {
			t.Error(err)
		}
	}
	if got := fmt.Sprint(companies(t, s)); begins != 1 || got != "[0 1 2 last]" {
		t.Errorf("got %s, want all in one transaction", got)
	}
}

func TestAbandonedWritesDoNotRun(t *testing.T) {
	t.Parallel()
	s := openTest(t, nil)
	ctx, cancel := context.WithCancel(t.Context())
	entered, blocked, abandoned := make(chan struct{}), make(chan error, 1), make(chan error, 1)
	go func() {
		blocked <- s.writer.do(t.Context(), func(*conn) error {
			close(entered)
			return <-abandoned
		})
	}()
	<-entered
	go func() {
		abandoned <- s.writer.do(ctx, func(c *conn) error { return put(c, "abandoned") })
	}()
	for len(s.writer.jobs) == 0 {
		time.Sleep(time.Microsecond)
	}
	cancel()
	if err := <-blocked; !errors.Is(err, context.Canceled) {
		t.Fatalf("got %v, want what the abandoned write returned", err)
	}
	if got := companies(t, s); len(got) != 0 {
		t.Errorf("got %v, want nothing", got)
	}
}

func TestReadersDoNotWaitForTheWriter(t *testing.T) {
	t.Parallel()
	s := openTest(t, nil)
	errs := group(t, s, func(c *conn) error {
		if err := put(c, "a"); err != nil {
			return err
		}
		_, err := s.Company(t.Context(), "a") // while this transaction is open
		if !apperr.Is(err, apperr.NotFound) {
			return fmt.Errorf("got %w, want what was committed before", err)
		}
		return nil
	})
	if errs[0] != nil {
		t.Error(errs[0])
	}
	if _, err := s.Company(t.Context(), "a"); err != nil {
		t.Errorf("after the commit: got %v, want the company", err)
	}
}

// A reader that loses its connection, or never gets one, does not take one away from others.
func TestConnectionsAreReplaced(t *testing.T) {
	t.Parallel()
	s := openTest(t, nil)
	for range 3 * cap(s.readers.free) {
		_, err := read(t.Context(), s, "failing", func(c *conn) (int, error) { return 0, errors.New("broken") })
		if err == nil {
			t.Fatal("got no error, want one")
		}
	}
	if err := s.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	held := make([]*conn, 0, cap(s.readers.free))
	for range cap(s.readers.free) {
		c, err := s.readers.acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		held = append(held, c)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Ready(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("with no connection left: got %v, want the context's error", err)
	}
	for _, c := range held {
		s.readers.release(c, nil)
	}
}

func TestSweepRemovesOnlyWhatHasExpired(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s, ctx := openTest(t, func() time.Time { return now }), t.Context()
	past, future := now.Add(-time.Second), now.Add(time.Second)
	const many = 2*sweepBatch + 1
	if err := update(ctx, s, "writing", func(c *conn) error {
		for i := range many {
			r := idempotency.Record{ID: fmt.Sprint("expired ", i), ExpiresAt: past, LeasedUntil: past}
			if _, err := writeRecord(c, orFail, r); err != nil {
				return err
			}
		}
		for _, r := range []idempotency.Record{
			{ID: "leased", ExpiresAt: past, LeasedUntil: future}, {ID: "kept", ExpiresAt: future}, {ID: "at once", ExpiresAt: now},
		} {
			if _, err := writeRecord(c, orFail, r); err != nil {
				return err
			}
		}
		for id, age := range map[string]time.Duration{
			account.OldestAuditID(now): account.AuditRetention, account.OldestAuditID(now.Add(time.Hour)): account.AuditRetention - time.Hour,
		} {
			if err := writeAuditEntry(c, `INSERT`, account.AuditEntry{ID: id, At: now.Add(-age)}); err != nil {
				return err
			}
		}
		for _, f := range []chat.StoredFile{{ID: "expired", ExpiresAt: past}, {ID: "kept", ExpiresAt: future}, {ID: "for ever"}} {
			if err := writeFile(c, orFail, f); err != nil {
				return err
			}
		}
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	if err := s.sweep(ctx); err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[store.Kind]string{"idempotency": "kept leased", "files": "for ever kept", "audit": account.OldestAuditID(now.Add(time.Hour))} {
		records, err := s.ReadRecords(ctx, kind, "", 10)
		if err != nil {
			t.Fatal(err)
		}
		var keys []string
		for _, r := range records {
			keys = append(keys, r.Key)
		}
		if got := strings.Join(keys, " "); got != want {
			t.Errorf("%s: got %s, want %s", kind, got, want)
		}
	}
}

func TestSweepRemovesExpiredUsageAndCallsOfBots(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s, ctx := openTest(t, func() time.Time { return now }), t.Context()
	daysAgo := func(n int) time.Time { return bots.Day(now).AddDate(0, 0, -n) }
	spend := func(of bots.UsageOf, n int) int {
		t.Helper()
		used, _, err := s.SpendBot(ctx, of, bots.Amount{Questions: n}, bots.Amount{})
		if err != nil {
			t.Fatal(err)
		}
		return used.Questions
	}
	for _, n := range []int{91, 90, 89, 0} {
		spend(bots.UsageOf{AppID: "app", Day: daysAgo(n)}, 1)
		spend(bots.UsageOf{AppID: "app", ChatUserID: "visitor", Day: daysAgo(n)}, 1)
	}
	spend(bots.UsageOf{AppID: "app", ChatUserID: "visitor", Day: daysAgo(2)}, 1) // until 1 o'clock of this day
	spend(bots.UsageOf{AppID: "app", ChatUserID: "visitor", Day: daysAgo(1)}, 1)
	for id, age := range map[string]time.Duration{"expired": bots.CallKept, "kept": bots.CallKept - time.Second} {
		if err := s.AppendBotCall(ctx, bots.Call{ID: id, AppID: "app", At: now.Add(-age)}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.sweep(ctx); err != nil {
		t.Fatal(err)
	}
	var days []time.Time
	usage, err := s.BotUsage(ctx, "app", time.Time{})
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range usage {
		days = append(days, u.Day)
	}
	if want := []time.Time{daysAgo(89), daysAgo(0)}; !slices.Equal(days, want) {
		t.Errorf("the application's days: got %v, want %v", days, want)
	}
	for n, want := range map[int]int{89: 0, 2: 0, 1: 1, 0: 1} {
		if got := spend(bots.UsageOf{AppID: "app", ChatUserID: "visitor", Day: daysAgo(n)}, 0); got != want {
			t.Errorf("the visitor's questions %d days ago: got %d, want %d", n, got, want)
		}
	}
	calls, err := s.BotCalls(ctx, "app", store.Page{})
	if err != nil || len(calls) != 1 || calls[0].ID != "kept" {
		t.Errorf("calls: got %v, %v, want the one that is kept", calls, err)
	}
}
