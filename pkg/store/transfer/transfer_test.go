package transfer_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/store/transfer"
	"github.com/parley-chat/parley/testkit/storetest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func config(t *testing.T, from, to store.Portable) transfer.Config {
	return transfer.Config{
		From: from, To: to, FromName: "here", ToName: "there", Progress: filepath.Join(t.TempDir(), "progress.json"),
		// so that records of Fill that expire within an hour are compared
		Now: func() time.Time { return time.Now().Add(-2 * time.Hour) },
	}
}

// broken fails from its nth write on, like a store that becomes unavailable; the write itself may have happened.
type broken struct {
	store.Portable
	writes int
}

var errBroken = errors.New("broken")

func (b *broken) WriteRecords(ctx context.Context, kind store.Kind, records []store.Record) error {
	if err := b.Portable.WriteRecords(ctx, kind, records); err != nil {
		return err
	}
	if b.writes--; b.writes < 0 {
		return errBroken
	}
	return nil
}

func TestCopyResumesAndCompares(t *testing.T) {
	t.Parallel()
	from, to := storetest.Open(t), storetest.Open(t)
	for range 30 { // more than a batch of messages
		storetest.Fill(t, from)
	}
	c := config(t, from, to)
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
		n, err := from.CountRecords(t.Context(), s.Kind)
		if err != nil || s.Count != n || len(s.Hash) != 64 {
			t.Errorf("got %+v, want the count %d and a hash", s, n)
		}
		got, want := storetest.Records(t, to, s.Kind), storetest.Records(t, from, s.Kind)
		for i := range want {
			if got[i].Key != want[i].Key || string(got[i].Value) != string(want[i].Value) {
				t.Fatalf("%s: got %s, want %s", s.Kind, got[i].Value, want[i].Value)
			}
		}
	}
	if _, err := os.Stat(c.Progress); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the progress file after success: got %v, want none", err)
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	from, to := storetest.Open(t), storetest.Open(t)
	storetest.Fill(t, from)
	storetest.Fill(t, to)
	c := config(t, from, to)
	if _, err := transfer.Run(t.Context(), c); !errors.Is(err, transfer.ErrNotEmpty) {
		t.Errorf("a target with data of its own: got %v, want %v", err, transfer.ErrNotEmpty)
	}
	c.To = &broken{storetest.Open(t), 1}
	if _, err := transfer.Run(t.Context(), c); !errors.Is(err, errBroken) {
		t.Fatal(err)
	}
	c.ToName = "elsewhere"
	if _, err := transfer.Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "from here to there") {
		t.Errorf("another target: got %v, want that the progress is of another copy", err)
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
		records = f.change(records)
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
			r[0].Value = []byte(strings.Replace(string(r[0].Value), `"nameOfSender":"`, `"nameOfSender":"x`, 1))
			return r
		},
	} {
		c := config(t, from, forgetful{storetest.Open(t), "messages", change})
		if _, err := transfer.Run(t.Context(), c); err == nil || !strings.Contains(err.Error(), "messages differ") {
			t.Errorf("%s: got %v, want that messages differ", name, err)
		}
	}
}

// Stores remove expired records during the comparison.
func TestExpiredRecordsAreNotCompared(t *testing.T) {
	t.Parallel()
	from := storetest.Open(t)
	storetest.Fill(t, from)
	for _, kind := range []store.Kind{"idempotency", "files", "webhookDeliveries"} {
		removed := 0
		c := config(t, from, forgetful{storetest.Open(t), kind, func(r []store.Record) []store.Record {
			before := len(r)
			r = slices.DeleteFunc(r, func(r store.Record) bool { return !strings.Contains(string(r.Value), `"expiresAt":"0001-`) })
			removed += before - len(r)
			return r
		}})
		c.Now = func() time.Time { return time.Now().Add(2 * time.Hour) }
		if _, err := transfer.Run(t.Context(), c); err != nil || removed == 0 {
			t.Errorf("%s: got %v with %d removed records, want success", kind, err, removed)
		}
	}
}
