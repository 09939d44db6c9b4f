package storetest

import (
	"testing"

	"github.com/parley-chat/parley/pkg/idempotency"
	"github.com/parley-chat/parley/pkg/store"
)

// Unanswer makes every request with an Idempotency-Key one that is still in progress.
func Unanswer(t testing.TB, s store.Store) {
	t.Helper()
	records, err := s.ReadRecords(t.Context(), "idempotency", "", 100)
	if err != nil {
		t.Fatalf("reading the idempotency records: %v", err)
	}
	for i := range records {
		r := records[i].Value.(idempotency.Record)
		r.Answer, r.LeasedUntil = "", r.ExpiresAt
		records[i].Value = r
	}
	if err := s.WriteRecords(t.Context(), "idempotency", records); err != nil {
		t.Fatalf("writing the idempotency records: %v", err)
	}
}
