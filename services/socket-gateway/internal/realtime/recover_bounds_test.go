package realtime

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/slot"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/testkit/bustest"
)

const freshPID = "fresh"

// recoverer returns an authenticator that recovers with the bytes of production. A read of a nil reader panics.
func recoverer(t *testing.T, replies *replyStream) *authenticator {
	t.Helper()
	metrics, err := NewMetrics(nil)
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now() // a clock that stands still: no bytes come back
	stopped := func() time.Time { return began }
	perMinute := config.Rate{Count: 64 << 20, Per: time.Minute}
	return &authenticator{
		replies:    replies,
		metrics:    metrics,
		recoveries: newRecoveryBounds(config.Rate{}, perMinute, stopped),
		receipts:   newReceiptQueue(nil, metrics, nil, newRecoveryReports(nil, stopped), stopped),
	}
}

// recoveredPID returns the pid that a visitor gets after a reconnect with the pid shown.
func recoveredPID(t *testing.T, a *authenticator, company, user, shown string) string {
	t.Helper()
	claims := credential.VisitorClaims{CompanyID: company, AppID: "app", ChatUserID: user}
	known := &socketState{room: Room("app", user)}
	pid, err := a.recover(t.Context(), nil, known, claims, handshake{PID: shown}, freshPID)
	if err != nil {
		t.Fatal(err)
	}
	return pid
}

// occupy takes places of a company's recoveries, each of another visitor.
func occupy(t *testing.T, a *authenticator, company string, places int) (taken []*slot.Slot) {
	t.Helper()
	for n := range places {
		place, ok := a.recoveries.start(t.Context(), company, Room("app", fmt.Sprintf("%s-%d", company, n)))
		if !ok {
			t.Fatalf("got recovery %d of %s refused, want a place", n+1, company)
		}
		taken = append(taken, place)
	}
	return taken
}

// One more than a company, a visitor or the gateway may have at once waits, and then loads the history without a read.
func TestRecoveriesAtOnceAreBounded(t *testing.T) {
	t.Parallel()
	for name, occupied := range map[string]map[string]int{
		"of a company": {"acme": recoveriesOfCompany},
		"of a visitor": {"acme": recoveriesOfVisitor},
		"of a gateway": {"one": recoveriesOfCompany, "two": recoveriesAtOnce - recoveriesOfCompany},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				a := recoverer(t, nil)
				for company, places := range occupied {
					occupy(t, a, company, places)
				}
				began := time.Now()
				if got := recoveredPID(t, a, "acme", "acme-0", "shown"); got != freshPID {
					t.Errorf("got %q, want a fresh pid", got)
				}
				if waited := time.Since(began); waited != recoveryWait {
					t.Errorf("got an answer after %v, want %v", waited, recoveryWait)
				}
			})
		})
	}
}

// A recovery that waits gets the first place that becomes free, and another company's does not wait for it.
func TestRecoveryWaitsForItsTurn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := recoverer(t, nil)
		taken := occupy(t, a, "acme", recoveriesOfCompany)
		time.AfterFunc(recoveryWait/2, taken[0].Release)
		began := time.Now()
		occupy(t, a, "other", 1)
		if waited := time.Since(began); waited != 0 {
			t.Errorf("got a wait of %v for another company, want none", waited)
		}
		if _, ok := a.recoveries.start(t.Context(), "acme", "app-sara"); !ok || time.Since(began) != recoveryWait/2 {
			t.Errorf("got %v after %v, want the place that became free", ok, time.Since(began))
		}
	})
}

// Beyond those that may wait a client gets its answer at once.
func TestRecoveriesThatWaitAreBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		a := recoverer(t, nil)
		occupy(t, a, "acme", recoveriesOfCompany)
		for n := range recoveriesWaitingOfCompany {
			go a.recoveries.start(t.Context(), "acme", fmt.Sprintf("app-waits-%d", n))
		}
		synctest.Wait()
		began := time.Now()
		if _, ok := a.recoveries.start(t.Context(), "acme", "app-sara"); ok || time.Since(began) != 0 {
			t.Errorf("got %v after %v, want no place at once", ok, time.Since(began))
		}
		time.Sleep(recoveryWait)
	})
}

// A company pays for what was read and is too much to recover. With its bytes used up nothing is read.
func TestUnrecoverableRepliesAreCharged(t *testing.T) {
	t.Parallel()
	b := bustest.Open(t, bustest.Start(t).URL())
	big := `{"text":"x","more":"` + strings.Repeat("x", 60<<10) + `"}`
	for range 10 {
		publish(t, b, "jo", big)
	}
	stream, err := b.Stream(t.Context(), subject.Replies)
	if err != nil {
		t.Fatal(err)
	}
	pid := newPID(bus.Place{}, stream.CachedInfo().Created)
	a := recoverer(t, newReplyStream(b))
	left := func() int { return a.recoveries.bytes.TakeN(t.Context(), "company", 0).Left }
	before := left()
	if got := recoveredPID(t, a, "company", "jo", pid); got != freshPID {
		t.Errorf("got %q, want a fresh pid for too many bytes", got)
	}
	if charged := before - left(); charged <= replayBytes {
		t.Errorf("got %d bytes charged, want those that were read, more than %d", charged, replayBytes)
	}
	a.recoveries.pay(t.Context(), "company", left()-recoveryReserve+1)
	a.replies = nil // a read would panic
	if got := recoveredPID(t, a, "company", "jo", pid); got != freshPID {
		t.Errorf("got %q, want a fresh pid without bytes left", got)
	}
}
