package transfer_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/idempotency"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/store/transfer"
	"github.com/parley-chat/parley/pkg/webhook"
	"github.com/parley-chat/parley/testkit/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func config(from, to store.Portable) transfer.Config {
	return transfer.Config{
		From: from, To: to,
		// so that records of Fill that expire within an hour are compared
		Now: func() time.Time { return time.Now().Add(-2 * time.Hour) },
	}
}

// broken fails from its nth write on, like a store that becomes unavailable. Of that write only some records happen, in
// no order.
type broken struct {
	store.Portable
	writes int
}

var errBroken = errors.New("broken")

func (b *broken) WriteRecords(ctx context.Context, kind store.Kind, records []store.Record) error {
	b.writes--
	if b.writes >= 0 {
		return b.Portable.WriteRecords(ctx, kind, records)
	}
	if err := b.Portable.WriteRecords(ctx, kind, records[len(records)/2:]); err != nil {
		return err
	}
	return errBroken
}

func TestCopyContinuesAndCompares(t *testing.T) {
	t.Parallel()
	from, to := storetest.Open(t), storetest.Open(t)
	for range 30 { // more than a batch of messages
		storetest.Fill(t, from)
	}
	c := config(from, to)
	var summaries []transfer.Summary
	err := errBroken
	runs := 0
	for ; errors.Is(err, errBroken); runs++ {
		c.To = &broken{to, 2}
		summaries, err = transfer.Run(t.Context(), c)
	}
	if err != nil || runs < 4 {
		t.Fatalf("got %v after %d runs, want success after several", err, runs)
	}
	if len(summaries) != len(store.Kinds()) {
		t.Errorf("got %d summaries, want one for each kind", len(summaries))
	}
	for _, s := range summaries {
		got, want := storetest.Records(t, to, s.Kind), storetest.Records(t, from, s.Kind)
		if int(s.Count) != len(want) {
			t.Errorf("%s: got the count %d, want %d", s.Kind, s.Count, len(want))
		}
		if !reflect.DeepEqual(got, want) {
			t.Fatalf("%s: got %v, want %v", s.Kind, got, want)
		}
	}
	c.To = &broken{to, 0}
	if again, err := transfer.Run(t.Context(), c); err != nil || !slices.Equal(again, summaries) {
		t.Errorf("a copy of what is there: got %v, %v, want %v and no write", again, err, summaries)
	}
}

func TestForeignRecordsAreRefused(t *testing.T) {
	t.Parallel()
	from := storetest.Open(t)
	storetest.Fill(t, from)
	other := storetest.Open(t)
	storetest.Fill(t, other)
	if _, err := transfer.Run(t.Context(), config(from, &broken{other, 0})); !errors.Is(err, transfer.ErrForeign) {
		t.Errorf("a target with records of its own: got %v, want %v and no write", err, transfer.ErrForeign)
	}
	changed := storetest.Open(t)
	users := storetest.Records(t, from, "users")
	if err := changed.WriteRecords(t.Context(), "users", users); err != nil {
		t.Fatal(err)
	}
	if err := changed.DeleteUser(t.Context(), users[0].Key); err != nil {
		t.Fatal(err)
	}
	if _, err := transfer.Run(t.Context(), config(changed, &broken{from, 0})); !errors.Is(err, transfer.ErrForeign) {
		t.Errorf("a target with more records: got %v, want %v and no write", err, transfer.ErrForeign)
	}
}

// forgetful changes the records of a kind before it writes them.
type forgetful struct {
	store.Portable
	kind   store.Kind
	change func([]store.Record) []store.Record
}

func (f forgetful) WriteRecords(ctx context.Context, kind store.Kind, records []store.Record) error {
	if kind == f.kind {
		records = f.change(slices.Clone(records))
	}
	return f.Portable.WriteRecords(ctx, kind, records)
}

func TestDifferencesAreDetected(t *testing.T) {
	t.Parallel()
	from := storetest.Open(t)
	storetest.Fill(t, from)
	for name, change := range map[string]func([]store.Record) []store.Record{
		"a record is missing": func(r []store.Record) []store.Record { return r[1:] },
		"a value differs": func(r []store.Record) []store.Record {
			m := r[0].Value.(store.MessageRecord)
			m.Message.NameOfSender += "x"
			r[0].Value = m
			return r
		},
		"JSON has other white space": func(r []store.Record) []store.Record {
			m := r[0].Value.(store.MessageRecord)
			m.Message.Data = append([]byte(" "), m.Message.Data...)
			r[0].Value = m
			return r
		},
		"a record is too much": func(r []store.Record) []store.Record {
			m := r[0].Value.(store.MessageRecord)
			m.Message.ID = "other"
			return append(r, store.Record{Key: "other", Value: m})
		},
	} {
		c := config(from, forgetful{storetest.Open(t), "messages", change})
		if _, err := transfer.Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "messages differ") {
			t.Errorf("%s: got %v, want that messages differ", name, err)
		}
	}
}

// Stores remove expired records during the copy.
func TestExpiredRecordsAreNotCompared(t *testing.T) {
	t.Parallel()
	from := storetest.Open(t)
	storetest.Fill(t, from)
	expires := func(r store.Record) bool {
		switch v := r.Value.(type) {
		case idempotency.Record:
			return !v.ExpiresAt.IsZero()
		case chat.StoredFile:
			return !v.ExpiresAt.IsZero()
		case webhook.Delivery:
			return !v.ExpiresAt.IsZero()
		}
		return false
	}
	for _, kind := range []store.Kind{"idempotency", "files", "webhookDeliveries"} {
		removed := 0
		c := config(from, forgetful{storetest.Open(t), kind, func(r []store.Record) []store.Record {
			before := len(r)
			r = slices.DeleteFunc(r, expires)
			removed += before - len(r)
			return r
		}})
		c.Now = func() time.Time { return time.Now().Add(2 * time.Hour) }
		if _, err := transfer.Run(t.Context(), c); err != nil || removed == 0 {
			t.Errorf("%s: got %v with %d removed records, want success", kind, err, removed)
		}
	}
}
