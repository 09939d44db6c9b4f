package chat_test

import (
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/parley-chat/parley/pkg/chat"
)

// steps are the statuses in the order in which a message can reach them.
var steps = []string{"", chat.StatusAccepted, chat.StatusStored, chat.StatusFailed, chat.StatusDelivered, chat.StatusRead}

// someStatus generates partial reports, including the same status at different times.
func someStatus() *rapid.Generator[chat.MessageStatus] {
	return rapid.Custom(func(t *rapid.T) (s chat.MessageStatus) {
		s.ChatID = rapid.SampledFrom([]string{"", "chat"}).Draw(t, "chat")
		for _, at := range []*time.Time{&s.AcceptedAt, &s.StoredAt, &s.DeliveredAt, &s.ReadAt, &s.Failure.At} {
			if n := rapid.IntRange(0, 4).Draw(t, "at"); n > 0 {
				*at = time.UnixMilli(int64(n)).UTC()
			}
		}
		if !s.Failure.At.IsZero() {
			s.Failure.Reason = rapid.SampledFrom([]string{"", "busy", "gone"}).Draw(t, "reason")
		}
		return s
	})
}

// Reports lead to the same state in any order and with duplicates, and no report removes a status.
func TestStatusNeverStepsBack(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		reports := rapid.SliceOfN(someStatus(), 1, 6).Draw(t, "reports")
		again := rapid.SliceOfN(rapid.SampledFrom(reports), 0, 4).Draw(t, "repeated")
		want := joined(t, reports)
		if got := joined(t, rapid.Permutation(append(slices.Clone(reports), again...)).Draw(t, "order")); got != want {
			t.Fatalf("got %+v in another order, want %+v", got, want)
		}
	})
}

func joined(t *rapid.T, reports []chat.MessageStatus) (s chat.MessageStatus) {
	for _, r := range reports {
		next := s.Join(r)
		if slices.Index(steps, next.Status()) < slices.Index(steps, s.Status()) {
			t.Fatalf("got %s after %s for %+v", next.Status(), s.Status(), r)
		}
		if again := next.Join(r); again != next {
			t.Fatalf("got %+v for the same report again, want %+v", again, next)
		}
		s = next
	}
	return s
}

func TestStatusIsTheLatestReached(t *testing.T) {
	t.Parallel()
	at := func(n int64) time.Time { return time.UnixMilli(n).UTC() }
	all := chat.MessageStatus{AcceptedAt: at(1), StoredAt: at(2), DeliveredAt: at(3), ReadAt: at(4), Failure: chat.Failure{At: at(5)}}
	for i, forget := range []func(*chat.MessageStatus){
		func(*chat.MessageStatus) {},
		func(s *chat.MessageStatus) { s.ReadAt = time.Time{} },
		func(s *chat.MessageStatus) { s.DeliveredAt = time.Time{} },
		func(s *chat.MessageStatus) { s.Failure = chat.Failure{} },
		func(s *chat.MessageStatus) { s.StoredAt = time.Time{} },
		func(s *chat.MessageStatus) { s.AcceptedAt = time.Time{} },
	} {
		forget(&all)
		if want := steps[len(steps)-1-i]; all.Status() != want {
			t.Errorf("got %q, want %q of %+v", all.Status(), want, all)
		}
	}
	if got := (chat.MessageStatus{ReadAt: at(4)}).Delivered(); !got.Equal(at(4)) {
		t.Errorf("got %v, want what was read delivered by then", got)
	}
}
