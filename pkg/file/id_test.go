package file_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/file"
)

func TestIDs(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	id := file.NewID(at)
	if !file.ValidID(id) || id == file.NewID(at) || len(id) != 40 {
		t.Errorf("got %q, want an id of its own", id)
	}
	if got := file.ExpiryOf(id); !got.Equal(at) {
		t.Errorf("ExpiryOf: got %v, want %v", got, at)
	}
	if got := file.ExpiryOf(file.NewID(at.Add(time.Millisecond))); !got.Equal(at.Add(time.Second)) {
		t.Errorf("ExpiryOf: got %v, want it rounded up", got)
	}
	if file.Expired(id, at.Add(-time.Nanosecond)) || !file.Expired(id, at) {
		t.Error("Expired: want it from that moment on")
	}
	forever := file.NewID(time.Time{})
	if !file.ValidID(forever) || !file.ExpiryOf(forever).IsZero() || file.Expired(forever, at.AddDate(5000, 0, 0)) {
		t.Errorf("got %q, want an id that never expires", forever)
	}
	if far := file.NewID(at.AddDate(5000, 0, 0)); !file.ExpiryOf(far).IsZero() {
		t.Errorf("got %q, want never for a time too far in the future", far)
	}
}

// Ids sort by expiry: stores depend on it.
func TestIDsSortByExpiry(t *testing.T) {
	t.Parallel()
	var ids []string
	for _, days := range []int{0, 1, 400, 4000, 40000, 400000} {
		ids = append(ids, file.NewID(time.Date(2001, 1, 1, 0, 0, 0, 0, time.UTC).AddDate(0, 0, days)))
	}
	ids = append(ids, file.NewID(time.Time{}))
	if !slices.IsSorted(ids) {
		t.Errorf("got %q, want them sorted", ids)
	}
}

func TestInvalidIDs(t *testing.T) {
	t.Parallel()
	id := file.NewID(time.Time{})
	for _, wrong := range []string{"", "x", id[1:], id + "A", strings.Replace(id, "-", "_", 1), "zzzz/zz" + id[7:], "ZZZZZZZ" + id[7:], "+zzzzzz" + id[7:], id[:39] + "*", id[:39] + ".", id[:39] + ">"} {
		if file.ValidID(wrong) {
			t.Errorf("ValidID(%q): got true, want false", wrong)
		}
	}
}
