package attachment_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/attachment"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/notice"
)

const (
	mib      = 1 << 20
	capacity = 8 * mib  // of the store
	fileSize = 64 * kib // of each file
)

// auditLog keeps the entries.
type auditLog []account.AuditEntry

func (l *auditLog) AppendAuditEntry(_ context.Context, e account.AuditEntry) error {
	*l = append(*l, e)
	return nil
}

// sharing is a service on a store of that capacity, without quotas.
type sharing struct {
	*testing.T
	service *attachment.Service
	told    auditLog
}

func newSharing(t *testing.T) *sharing {
	s := &sharing{T: t}
	log := slog.New(slog.DiscardHandler)
	s.service = attachment.New(attachment.Config{
		Store: &broken{capacity: capacity}, Records: new(ledger), AtOnce: attachment.AtOnce{All: 64}, Retention: 90 * 24 * time.Hour,
		Timeout: time.Minute, Notices: notice.NewBoard(&s.told, time.Now, log), Logger: log, Now: time.Now,
	})
	return s
}

// visitor is the only one at its address. Each company has one application.
func visitor(company, address string) attachment.Sender {
	return attachment.Sender{CompanyID: company, AppID: "app of " + company, ChatUserID: address, ID: address, Address: address}
}

func agent(company, user string) attachment.Sender {
	return attachment.Sender{CompanyID: company, AppID: "app of " + company, ChatUserID: "visitor", ID: user, Address: "office of " + company}
}

// send stores a file, and returns the reason of a refusal.
func (s *sharing) send(from attachment.Sender) string {
	s.Helper()
	u, err := s.service.Begin(s.Context(), from)
	if err != nil {
		s.Fatalf("Begin: %v", err)
	}
	defer u.End()
	content := strings.NewReader(strings.Repeat("x", fileSize))
	_, err = u.Keep(s.Context(), chat.Application{}, attachment.Incoming{Content: content, MaxSize: fileSize})
	if err == nil {
		return ""
	}
	return apperr.ReasonOf(err)
}

// fill stores files until one is refused, and returns their bytes and the reason.
func (s *sharing) fill(from attachment.Sender) (stored int, refused string) {
	s.Helper()
	for stored <= capacity {
		if refused = s.send(from); refused != "" {
			return stored, refused
		}
		stored += fileSize
	}
	return stored, ""
}

// An address holds an eighth of the store, however many visitors, applications and companies it writes to,
// and so does an agent. Neither takes anything from the others.
func TestShareOfAnOrigin(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, stored := newSharing(t), 0
		for n := range 4 {
			from := visitor(fmt.Sprint("company ", n), "192.0.2.1")
			from.ID = fmt.Sprint("visitor ", n)
			from.ChatUserID = from.ID
			n, refused := s.fill(from)
			if stored += n; refused != "FILE_QUOTA_EXCEEDED" {
				t.Errorf("an address: got %q, want FILE_QUOTA_EXCEEDED", refused)
			}
		}
		if stored > capacity/8 || stored < capacity/8-2*fileSize {
			t.Errorf("an address with four applications: got %d bytes stored, want an eighth of %d", stored, capacity)
		}
		if stored, refused := s.fill(agent("company", "first")); refused != "FILE_QUOTA_EXCEEDED" || stored > capacity/8 {
			t.Errorf("an agent: got %d bytes stored and %q, want at most an eighth of %d", stored, refused, capacity)
		}
		if refused := s.send(agent("company", "second")); refused != "" {
			t.Errorf("another agent of the office: got %s, want room", refused)
		}
		if refused := s.send(visitor("company", "192.0.2.2")); refused != "" {
			t.Errorf("a visitor at another address: got %s, want room", refused)
		}
		if len(s.told) != 0 {
			t.Errorf("got the entries %+v, want none: nothing of a company is used up", s.told)
		}
	})
}

// Files from many addresses fill three quarters of the store. Visitors who use little go on, and in the last
// eighth those of companies that use little.
func TestReserveOfTheStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, stored, refused := newSharing(t), 0, ""
		for n := 0; refused != "FILE_STORE_FULL"; n++ {
			var bytes int
			bytes, refused = s.fill(visitor("large", fmt.Sprint("flood ", n)))
			stored += bytes
		}
		if most := capacity * 3 / 4; stored > most || stored < most-2*fileSize {
			t.Errorf("a flood: got %d bytes stored, want three quarters of %d", stored, capacity)
		}
		for n := 0; ; n++ {
			if refused = s.send(visitor("large", fmt.Sprint("one file ", n))); refused != "" {
				break
			}
			stored += fileSize
		}
		if most := capacity * 7 / 8; refused != "FILE_STORE_FULL" || stored > most || stored < most-2*fileSize {
			t.Errorf("visitors who use little: got %d bytes stored and %q, want seven eighths of %d and FILE_STORE_FULL", stored, refused, capacity)
		}
		if refused := s.send(visitor("small", "198.51.100.1")); refused != "" {
			t.Errorf("another company's visitor: got %s, want room", refused)
		}
		if refused := s.send(visitor("small", "flood 0")); refused != "FILE_QUOTA_EXCEEDED" {
			t.Errorf("the flood to another company: got %q, want FILE_QUOTA_EXCEEDED", refused)
		}
		if len(s.told) != 1 || s.told[0].CompanyID != "large" || s.told[0].Action != attachment.ActionRefused {
			t.Errorf("got the entries %+v, want one for the large company", s.told)
		}
	})
}

// Uploads that are on their way count as stored: together they do not pass the reserve.
func TestReserveOfConcurrentUploads(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSharing(t)
		content, stalled := io.Pipe()
		large := func(address string) error {
			u, err := s.service.Begin(t.Context(), visitor("large", address))
			if err != nil {
				return err
			}
			defer u.End()
			_, err = u.Keep(t.Context(), chat.Application{}, attachment.Incoming{Content: content, MaxSize: capacity/8 - 2*kib})
			return err
		}
		for n := range 6 {
			go func() { _ = large(fmt.Sprint(n)) }()
		}
		synctest.Wait()
		if err := large("more"); apperr.ReasonOf(err) != "FILE_STORE_FULL" {
			t.Errorf("got %v, want FILE_STORE_FULL", err)
		}
		_ = stalled.CloseWithError(io.ErrUnexpectedEOF)
		synctest.Wait()
		if refused := s.send(visitor("large", "more")); refused != "" {
			t.Errorf("after they have failed: got %s, want room", refused)
		}
	})
}
