package status

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/slot"
)

// slowLookups takes a minute for each lookup. The store knows no message.
type slowLookups struct {
	mu      sync.Mutex
	running map[string]int // by company
}

func (l *slowLookups) MessageStatus(context.Context, string, string) (chat.MessageStatus, error) {
	return chat.MessageStatus{}, apperr.MessageNotFound.New()
}

func (l *slowLookups) Accepted(_ context.Context, companyID, _ string) (time.Time, string, error) {
	l.add(companyID, 1)
	defer l.add(companyID, -1)
	time.Sleep(time.Minute)
	return time.Now(), "chat", nil
}

func (l *slowLookups) add(companyID string, n int) (running int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.running[companyID] += n
	return l.running[companyID]
}

// fullShare returns the share that is full; empty: the whole pool; "none" for another error.
func fullShare(err error) string {
	full, ok := errors.AsType[*slot.FullError](err)
	if !ok {
		return "none"
	}
	return full.Share
}

// A company has a part of the lookups at once, and all companies together have a bound. Others wait, a few of them,
// and are refused in the end.
func TestLookupsAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &slowLookups{running: map[string]int{}}
		s := New(l, l)
		lookUp := func(companyID string) error {
			_, _, err := s.Status(t.Context(), companyID, chat.NewID())
			return err
		}
		var requests sync.WaitGroup
		for range lookupsOfCompany {
			for _, companyID := range []string{"a", "b", "c"} {
				requests.Go(func() { _ = lookUp(companyID) })
			}
		}
		synctest.Wait()
		refused := make(chan error, waitingOfCompany)
		for range waitingOfCompany {
			requests.Go(func() { refused <- lookUp("a") })
		}
		synctest.Wait()
		began := time.Now()
		if err := lookUp("a"); fullShare(err) != "company" || time.Since(began) > 0 {
			t.Errorf("one more than may wait: got %v after %v, want a refusal at once", err, time.Since(began))
		}
		for range lookupsOfCompany {
			requests.Go(func() { _ = lookUp("d") })
		}
		synctest.Wait()
		if err := lookUp("e"); fullShare(err) != "" || time.Since(began) != lookupWait {
			t.Errorf("all are in use: got %v after %v, want a refusal after %v", err, time.Since(began), lookupWait)
		}
		for range waitingOfCompany {
			if err := <-refused; fullShare(err) != "company" {
				t.Errorf("the company's are in use: got %v, want a refusal", err)
			}
		}
		for _, companyID := range []string{"a", "b", "c", "d"} {
			if running := l.add(companyID, 0); running != lookupsOfCompany {
				t.Errorf("%s: got %d lookups at once, want %d", companyID, running, lookupsOfCompany)
			}
		}
		requests.Wait()
		if err := lookUp("e"); err != nil {
			t.Errorf("when all have ended: got %v, want a status", err)
		}
	})
}
