package budget_test

import (
	"context"
	"fmt"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/budget"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/notice"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	kib  = 1 << 10
	mib  = 1 << 20
	week = 7 * 24 * time.Hour
)

// defaults are those of config.Budgets.
func defaults() config.Budgets {
	return config.Budgets{
		BytesVisitor: config.Rate{Count: 16 * mib, Per: week}, BytesAddress: config.Rate{Count: 64 * mib, Per: week},
		BytesApplication: config.Rate{Count: 128 * mib, Per: week}, BytesCompany: config.Rate{Count: 256 * mib, Per: week},
	}
}

// drain charges events of that size to an account until one is refused, and returns how many bytes were accepted.
func drain(t *testing.T, m *budget.Meter, a event.Account, size int) (accepted int) {
	t.Helper()
	for range 1 << 20 {
		if _, err := m.Charge(t.Context(), a, size, 0); err != nil {
			if !apperr.Is(err, apperr.TooMany) || apperr.ReasonOf(err) != apperr.ByteBudgetExceeded.Reason {
				t.Fatalf("got %v, want BYTE_BUDGET_EXCEEDED", err)
			}
			return accepted
		}
		accepted += size
	}
	t.Fatalf("got %d bytes accepted and no refusal", accepted)
	return 0
}

// Every account has a bound, and none is another one's.
func TestEveryAccountIsBounded(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		account, other event.Account
		want           int
	}{
		"a company's systems":  {event.ForCompany("c"), event.ForCompany("d"), 256 * mib},
		"a visitor":            {event.ForVisitor("c", "a", "v", "192.0.2.1"), event.ForVisitor("c", "a", "w", "192.0.2.1"), 16 * mib},
		"an unknown visitor":   {event.ForVisitor("c", "a", "", "192.0.2.1"), event.ForVisitor("c", "a", "", "192.0.2.2"), 16 * mib},
		"an agent":             {event.ForAgent("c", "u"), event.ForAgent("c", "w"), 64 * mib},
		"a bot and a visitor":  {event.ForBot("c", "a", "v"), event.ForBot("c", "a", "w"), 16 * mib},
		"a bot, many visitors": {event.ForBot("c", "a", ""), event.ForAgent("c", "u"), 16 * mib},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := budget.New(budget.Config{Rates: defaults()})
				const size = 64 * kib
				if got := drain(t, m, test.account, size); got > test.want+size || got < test.want-size {
					t.Errorf("got %d bytes, want %d", got, test.want)
				}
				if _, err := m.Charge(t.Context(), test.other, size, 0); err != nil {
					t.Errorf("another account: got %v, want it accepted", err)
				}
			})
		})
	}
}

// Strangers from several addresses use up an application's hour. Its visitors who write little go on, those
// who write much wait for an hour and not for days, and the company's other applications do not notice.
func TestAFloodLeavesRoomForTheOthers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var told auditLog
		board := notice.NewBoard(&told, time.Now, slog.New(slog.DiscardHandler))
		m := budget.New(budget.Config{Rates: defaults(), Notices: board})
		flood := 0
		for _, address := range []string{"192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4", "192.0.2.5"} {
			for _, visitor := range []string{"1", "2", "3", "4"} {
				flood += drain(t, m, event.ForVisitor("c", "a", address+visitor, address), 8*kib)
			}
		}
		if limit := 16*mib + 5*mib; flood > limit {
			t.Errorf("got %d bytes of strangers, want at most an hour's share and what is little, %d", flood, limit)
		}
		if len(told) != 1 || told[0].TargetID != "a" || told[0].CompanyID != "c" || told[0].Action != budget.ActionExhausted {
			t.Errorf("got the entries %+v, want one for the company's application", told)
		}
		real := event.ForVisitor("c", "a", "real", "198.51.100.1")
		for n := range 50 {
			if _, err := m.Charge(t.Context(), real, 2*kib, 0); err != nil {
				t.Fatalf("message %d of a visitor who has used little: got %v, want it accepted", n, err)
			}
		}
		if _, err := m.Charge(t.Context(), event.ForVisitor("c", "b", "v", "198.51.100.2"), 8*kib, 0); err != nil {
			t.Errorf("another application: got %v, want it accepted", err)
		}
		heavy := event.ForVisitor("c", "a", "1", "203.0.113.1")
		drain(t, m, heavy, 8*kib)
		time.Sleep(time.Hour)
		if _, err := m.Charge(t.Context(), heavy, 8*kib, 0); err != nil {
			t.Errorf("an hour later: got %v, want it accepted", err)
		}
	})
}

// Strangers who write to all applications of a company use up the company's hour: what waits for its bots is bounded.
func TestACompanysVisitorsHaveAnHour(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := budget.New(budget.Config{Rates: defaults()})
		flood := func() (accepted int) {
			for n := range 4 {
				app, address := fmt.Sprint("a", n), fmt.Sprint("192.0.2.", n)
				accepted += drain(t, m, event.ForVisitor("c", app, "v"+app, address), 8*kib)
			}
			return accepted
		}
		const hour = 192 * mib / 8
		if got := flood(); got < hour || got > hour+4*256*kib {
			t.Errorf("got %d bytes accepted, want an hour's %d and what is little", got, hour)
		}
		if _, err := m.Charge(t.Context(), event.ForVisitor("d", "b", "v", "192.0.2.9"), 8*kib, 0); err != nil {
			t.Errorf("another company: got %v, want it accepted", err)
		}
		time.Sleep(time.Hour)
		if got := flood(); got < hour {
			t.Errorf("an hour later: got %d bytes accepted, want %d", got, hour)
		}
	})
}

// The networks of one IPv6 site count as one when a company's reserve is used: they cannot empty it.
func TestOneSiteCannotEmptyTheReserve(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := budget.New(budget.Config{Rates: defaults()})
		for n := range 5 { // uses up the application's hour
			address := fmt.Sprintf("192.0.2.%d", n)
			for visitor := range 4 {
				drain(t, m, event.ForVisitor("c", "a", fmt.Sprint(address, visitor), address), 8*kib)
			}
		}
		fromReserve := 0
		for n := range 200 {
			address := fmt.Sprintf("2001:db8:1:%x::/64", n)
			fromReserve += drain(t, m, event.ForVisitor("c", "a", address, address), 8*kib)
		}
		if most := mib + 64*kib; fromReserve > most {
			t.Errorf("got %d bytes of one site from the reserve, want at most %d", fromReserve, most)
		}
		if _, err := m.Charge(t.Context(), event.ForVisitor("c", "a", "v", "2001:db8:2:1::/64"), 8*kib, 0); err != nil {
			t.Errorf("a visitor of another site: got %v, want it accepted", err)
		}
	})
}

func TestAnAccountPaysOnce(t *testing.T) {
	t.Parallel()
	m := budget.New(budget.Config{Rates: config.Budgets{BytesCompany: config.Rate{Count: 1000, Per: time.Hour}}})
	a, err := m.Charge(t.Context(), event.ForCompany("c"), 600, 0)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := m.Charge(t.Context(), a, 600, 0); err != nil {
		t.Errorf("the event that was charged before: got %v, want it accepted", err)
	}
	if _, err := m.Charge(t.Context(), a, 1200, 0); err == nil {
		t.Error("a larger event: got it accepted, want the rest charged")
	}
	if _, err := m.Charge(t.Context(), event.Account{}, 1, 0); err == nil {
		t.Error("no account: got it accepted, want an error")
	}
}

// auditLog keeps the entries.
type auditLog []account.AuditEntry

func (l *auditLog) AppendAuditEntry(_ context.Context, e account.AuditEntry) error {
	*l = append(*l, e)
	return nil
}

// Budgets bound each tenant and not their sum: the last quarter of a stream is for those who use little.
func TestTheRestOfAStreamIsForThoseWhoUseLittle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := budget.New(budget.Config{Rates: defaults()})
		charge := func(a event.Account, size int, fill float64) error {
			_, err := m.Charge(t.Context(), a, size, fill)
			return err
		}
		heavy := event.ForVisitor("heavy", "a", "v", "192.0.2.1")
		for _, a := range []event.Account{
			heavy, event.ForVisitor("heavy", "z", "z", "203.0.113.1"),
			event.ForCompany("heavy"), event.ForAgent("heavy", "u"), event.ForBot("heavy", "a", "v"),
		} {
			if err := charge(a, 8*mib, 0.5); err != nil {
				t.Fatalf("%+v in a stream that is half full: got %v, want it accepted", a, err)
			}
		}
		for _, a := range []event.Account{
			heavy,
			event.ForVisitor("light", "b", "v", "192.0.2.1"), // the address has used much
			event.ForCompany("heavy"), event.ForAgent("heavy", "w"), event.ForBot("heavy", "c", "w"),
		} {
			err := charge(a, kib, 0.75)
			if !apperr.Is(err, apperr.Unavailable) || apperr.ReasonOf(err) != apperr.StreamFull.Reason {
				t.Errorf("%+v in the last quarter: got %v, want STREAM_FULL", a, err)
			}
		}
		for _, a := range []event.Account{
			event.ForVisitor("heavy", "a", "w", "192.0.2.2"), event.ForVisitor("light", "b", "w", "192.0.2.2"),
			event.ForCompany("light"), event.ForAgent("light", "u"), event.ForBot("light", "b", "v"),
		} {
			if err := charge(a, kib, 0.75); err != nil {
				t.Errorf("%+v, which uses little, in the last quarter: got %v, want it accepted", a, err)
			}
		}
		if err := charge(event.ForVisitor("heavy", "a", "w", "192.0.2.2"), kib, 0.875); err == nil {
			t.Error("a visitor of a company that has used much, in the last eighth: got it accepted")
		}
		if err := charge(event.ForVisitor("light", "b", "w", "192.0.2.2"), kib, 0.99); err != nil {
			t.Errorf("a visitor of a company that uses little, in the last eighth: got %v, want it accepted", err)
		}
		time.Sleep(24 * time.Hour)
		if err := charge(event.ForCompany("heavy"), kib, 0.99); err != nil {
			t.Errorf("a day later: got %v, want it accepted", err)
		}
	})
}
