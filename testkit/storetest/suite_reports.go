package storetest

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/idempotency"
	"github.com/parley-chat/parley/pkg/store"
)

func testStatuses(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	company, id := newID(), newID()
	_, err := s.MessageStatus(ctx, company, id)
	wantReason(t, "an unknown message", err, apperr.NotFound, "MESSAGE_NOT_FOUND")
	reports := []chat.MessageStatus{
		{AcceptedAt: at(time.Minute)},
		{AcceptedAt: at(0)},
		{ChatID: newID(), StoredAt: at(2 * time.Minute)},
		{DeliveredAt: at(3 * time.Minute), ReadAt: at(5 * time.Minute)},
		{DeliveredAt: at(4 * time.Minute), ReadAt: at(4 * time.Minute)},
		{Failure: chat.Failure{At: at(time.Minute), Reason: "b with blanks" + Nul + " é"}},
		{Failure: chat.Failure{At: at(time.Minute), Reason: "c"}},
		{Failure: chat.Failure{At: at(time.Hour), Reason: "a"}},
	}
	var all chat.MessageStatus
	for _, r := range reports {
		all = all.Join(r)
	}
	for i := range reports { // in every order by rotation, and twice
		message := id + fmt.Sprint(i)
		var last chat.MessageStatus
		for _, r := range slices.Concat(reports[i:], reports) {
			last = get[chat.MessageStatus](t)(s.JoinMessageStatus(ctx, company, message, r))
		}
		want(t, "what the last report returned", last, all)
		want(t, "the status", get[chat.MessageStatus](t)(s.MessageStatus(ctx, company, message)), all)
	}
	together(t, AtOnce, func(n int) (chat.MessageStatus, error) {
		return s.JoinMessageStatus(ctx, company, id, reports[n%len(reports)])
	})
	want(t, "after reports of many at once", get[chat.MessageStatus](t)(s.MessageStatus(ctx, company, id)), all)
	_, err = s.MessageStatus(ctx, newID(), id)
	wantCode(t, "another company's message", err, apperr.NotFound)
	odd := "a|b.$" + Nul + "é"
	want(t, "an odd id", get[chat.MessageStatus](t)(s.JoinMessageStatus(ctx, company, odd, reports[0])), reports[0])
	want(t, "an odd id, read", get[chat.MessageStatus](t)(s.MessageStatus(ctx, company, odd)), reports[0])
}

func testReceipts(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	await := func(t testing.TB, chatID string, m chat.Message, delivered bool) time.Time {
		t.Helper()
		return get[time.Time](t)(s.AwaitReceipts(ctx, chatID, m, delivered))
	}
	readUpTo := func(t testing.TB, chatID string, m chat.Message, when time.Time) []string {
		t.Helper()
		return get[[]string](t)(s.ReadUpTo(ctx, chatID, m, when))
	}
	undelivered := func(t testing.TB, chatID string) []string {
		t.Helper()
		return get[store.ChatReceipts](t)(s.ChatReceipts(ctx, chatID)).Undelivered
	}

	t.Run("reports", func(t *testing.T) {
		chatID := newID()
		if found := undelivered(t, chatID); len(found) != 0 {
			t.Errorf("an unknown chat: got %v, want nothing", found)
		}
		must(t, s.NoteReceipt(ctx, chatID, "a", true))
		a, b, c, d := fromCompany("a", noon), fromCompany("b.$", noon.Add(time.Second)), fromCompany("c", noon.Add(time.Second)), fromCompany("d", noon.Add(time.Minute))
		for _, m := range []chat.Message{d, b, a, c, a} {
			want(t, "when it was read", await(t, chatID, m, m.ID == "c"), time.Time{})
		}
		want(t, "undelivered", undelivered(t, chatID), []string{"a", "b.$", "d"})
		want(t, "unread up to b", readUpTo(t, chatID, b, noon.Add(time.Hour)), []string{"a", "b.$"})
		want(t, "again", readUpTo(t, chatID, b, noon.Add(time.Hour)), []string{"a", "b.$"})
		must(t, s.NoteReceipt(ctx, chatID, "a", true))
		must(t, s.NoteReceipt(ctx, chatID, "b.$", false))
		want(t, "undelivered after reports", undelivered(t, chatID), []string{"d"})
		want(t, "unread up to c", readUpTo(t, chatID, c, noon.Add(2*time.Hour)), []string{"b.$", "c"})
		if found := readUpTo(t, chatID, a, noon.Add(3*time.Hour)); len(found) != 0 { // back to an earlier message
			t.Errorf("unread up to a: got %v, want nothing", found)
		}
		cursor := get[store.ChatReceipts](t)(s.ChatReceipts(ctx, chatID)).ReadUpTo
		want(t, "the cursor, which does not step back", cursor, chat.ReadCursor{At: entered(time.Second), MessageID: "c"})
		late := fromCompany("bb", noon.Add(time.Second))
		want(t, "a message that was read before it was stored", await(t, chatID, late, true), at(2*time.Hour))
		want(t, "a message after what was read", await(t, chatID, fromCompany("cc", noon.Add(time.Second)), true), time.Time{})
	})
	t.Run("at most so many", func(t *testing.T) {
		chatID := newID()
		message := func(n int) chat.Message {
			return fromCompany(fmt.Sprintf("m%04d", n), at(time.Duration(n)*time.Second))
		}
		imported := store.ReceiptsRecord{ChatID: chatID}
		for n := range store.MaxAwaited - 1 {
			m := message(n)
			imported.Unread = append(imported.Unread, store.AwaitedReceipt{CreatedAt: m.CreatedAt, MessageID: m.ID})
		}
		must(t, s.WriteRecords(ctx, "receipts", []store.Record{{Key: chatID, Value: imported}}))
		await(t, chatID, message(store.MaxAwaited-1), true)
		first, last, beyond := message(0), message(store.MaxAwaited-1), message(store.MaxAwaited)
		want(t, "one beyond the bound", await(t, chatID, beyond, false), time.Time{})
		want(t, "a repeat of one that waits", await(t, chatID, last, false), time.Time{})
		if slices.Contains(undelivered(t, chatID), beyond.ID) {
			t.Error("the message beyond the bound waits for its delivery report, want it left out")
		}
		must(t, s.NoteReceipt(ctx, chatID, first.ID, false)) // waits for its read report still
		want(t, "beyond the bound after a delivery", await(t, chatID, beyond, false), time.Time{})
		unread := readUpTo(t, chatID, beyond, at(0))
		if len(unread) != store.MaxAwaited || slices.Contains(unread, beyond.ID) {
			t.Errorf("got %d unread messages up to %s, want %d without it", len(unread), beyond.ID, store.MaxAwaited)
		}
		want(t, "one beyond the bound that has been read", await(t, chatID, beyond, false), at(0))
		for range 2 { // a repeat makes room for one only
			must(t, s.NoteReceipt(ctx, chatID, first.ID, true))
		}
		next, further := message(store.MaxAwaited+1), message(store.MaxAwaited+2)
		await(t, chatID, next, false)
		await(t, chatID, further, false)
		unread = readUpTo(t, chatID, further, at(0))
		if !slices.Contains(unread, next.ID) || slices.Contains(unread, further.ID) {
			t.Errorf("after one report got %d unread messages, want %s and not %s among them", len(unread), next.ID, further.ID)
		}
	})
	t.Run("storing while reading", func(t *testing.T) {
		for range 20 {
			chatID, m := newID(), fromCompany(newID(), noon)
			results := together(t, 2, func(n int) (bool, error) {
				if n == 0 {
					readAt, err := s.AwaitReceipts(ctx, chatID, m, false)
					return !readAt.IsZero(), err
				}
				unread, err := s.ReadUpTo(ctx, chatID, m, noon)
				return len(unread) > 0, err
			})
			if !results[0] && !results[1] {
				t.Fatal("neither found the other: the read report is lost")
			}
		}
	})
	t.Run("many at once", func(t *testing.T) {
		chatID := newID()
		together(t, AtOnce, func(n int) (time.Time, error) {
			return s.AwaitReceipts(ctx, chatID, fromCompany(fmt.Sprintf("m%02d", n), noon), false)
		})
		if n := len(undelivered(t, chatID)); n != AtOnce {
			t.Errorf("got %d undelivered, want %d", n, AtOnce)
		}
		together(t, AtOnce, func(n int) (struct{}, error) {
			return struct{}{}, s.NoteReceipt(ctx, chatID, fmt.Sprintf("m%02d", n), n%2 == 0)
		})
		if n := len(readUpTo(t, chatID, fromCompany("z", noon), noon)); n != AtOnce/2 {
			t.Errorf("got %d unread, want %d", n, AtOnce/2)
		}
	})
}

func testIdempotency(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	// Engines remove expired records: these expire long after the test.
	forever := store.UTC(time.Now().Add(24 * time.Hour))
	fresh := func() idempotency.Record {
		return idempotency.Record{ID: newID(), Fingerprint: "f", MessageID: newID(), At: at(0), LeasedUntil: at(time.Minute), ExpiresAt: forever}
	}
	r := fresh()
	// stored returns the stored record: the insertion of another with its id changes nothing.
	stored := func() idempotency.Record {
		t.Helper()
		other := fresh()
		other.ID = r.ID
		found, inserted, err := s.InsertIdempotencyRecord(ctx, other)
		must(t, err)
		want(t, "inserted", inserted, false)
		return found
	}
	_, err := s.LeaseIdempotencyRecord(ctx, r.ID, noon)
	wantReason(t, "leasing an unknown record", err, apperr.NotFound, "RECORD_NOT_FOUND")
	_, err = s.EndIdempotencyLease(ctx, r.ID, "x")
	wantCode(t, "answering an unknown record", err, apperr.NotFound)
	_, err = s.EndIdempotencyLease(ctx, r.ID, "")
	wantCode(t, "ending the lease of an unknown record", err, apperr.NotFound)

	inserted := together(t, AtOnce, func(n int) (bool, error) {
		own := r
		own.Fingerprint = fmt.Sprint(n)
		found, inserted, err := s.InsertIdempotencyRecord(ctx, own)
		if inserted != (found.Fingerprint == own.Fingerprint) {
			err = errors.Join(err, fmt.Errorf("got inserted %t and the record %+v of call %d", inserted, found, n))
		}
		return inserted, err
	})
	if n := count(inserted); n != 1 {
		t.Errorf("one key by many at once: got %d calls that inserted it, want 1", n)
	}
	r.Fingerprint = fmt.Sprint(slices.Index(inserted, true))
	want(t, "the record", stored(), r)

	before := together(t, AtOnce, func(n int) (idempotency.Record, error) {
		return s.LeaseIdempotencyRecord(ctx, r.ID, noon.Add(time.Duration(n)*time.Hour))
	})
	var holders []bool
	for _, b := range before {
		holders = append(holders, b.Leases == r.Leases)
	}
	if n := count(holders); n != 1 {
		t.Errorf("a lease by many at once: got %d holders, want 1", n)
	}
	r.Leases, r.LeasedUntil = AtOnce, at(time.Duration(AtOnce-1)*time.Hour)
	want(t, "the leased record", stored(), r)
	want(t, "no answer", get[string](t)(s.EndIdempotencyLease(ctx, r.ID, "")), "")
	r.LeasedUntil = time.Time{}
	want(t, "after the lease", stored(), r)

	replaced := fresh()
	replaced.ID = r.ID
	must(t, s.ReplaceIdempotencyRecord(ctx, replaced))
	want(t, "the replaced record", stored(), replaced)
	answers := together(t, AtOnce, func(n int) (string, error) {
		return s.EndIdempotencyLease(ctx, r.ID, fmt.Sprintf("{\"n\":%d,\"%sé\":1e999}", n, Nul))
	})
	replaced.Answer, replaced.LeasedUntil = wantOneOf(t, "answers", answers), time.Time{}
	want(t, "the answered record", stored(), replaced)
	want(t, "the answer at the end of a lease", get[string](t)(s.EndIdempotencyLease(ctx, r.ID, "")), replaced.Answer)
	want(t, "after a lease without an answer", stored(), replaced)
}

func testFiles(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	// Engines remove expired records: the files expire long after the test, whose clock is later still.
	expiry := store.UTC(time.Now().Add(24 * time.Hour))
	visitor, app := newID(), newID()
	file := func(n int, expires time.Time) chat.StoredFile {
		return chat.StoredFile{
			ID: fmt.Sprint(n, newID()), CompanyID: newID(), AppID: app, ChatUserID: visitor, SenderID: visitor, Size: int64(n) << 32, CreatedAt: at(0), ExpiresAt: expires,
		}
	}
	kept, passing, third := file(1, time.Time{}), file(2, expiry), file(4, expiry)
	third.SenderID = newID() // an agent
	kept.Address, passing.Address = "192.0.2.1", "192.0.2.1"
	for _, f := range []chat.StoredFile{kept, passing, third, passing} {
		must(t, s.PutFile(ctx, f))
	}
	again := kept
	again.Size = 1
	must(t, s.PutFile(ctx, again))
	usage := func(of func(now time.Time) (store.FileUsage, error), now time.Time) store.FileUsage {
		return get[store.FileUsage](t)(of(now))
	}
	visitors := func(now time.Time) (store.FileUsage, error) {
		return s.FileUsage(ctx, store.FileOwner{Sender: visitor}, now)
	}
	apps := func(now time.Time) (store.FileUsage, error) {
		return s.FileUsage(ctx, store.FileOwner{Application: app}, now)
	}
	want(t, "a visitor's files", usage(visitors, noon), store.FileUsage{Bytes: 3 << 32, Count: 2})
	want(t, "an application's files", usage(apps, noon), store.FileUsage{Bytes: 7 << 32, Count: 3})
	want(t, "just before they expire", usage(apps, expiry.Add(-time.Millisecond)), store.FileUsage{Bytes: 7 << 32, Count: 3})
	want(t, "when they have expired", usage(apps, expiry), store.FileUsage{Bytes: 1 << 32, Count: 1})
	want(t, "a visitor's when they have expired", usage(visitors, expiry), store.FileUsage{Bytes: 1 << 32, Count: 1})
	want(t, "a company's files", get[store.FileUsage](t)(s.FileUsage(ctx, store.FileOwner{Company: third.CompanyID}, noon)), store.FileUsage{Bytes: 4 << 32, Count: 1})
	want(t, "an address's files", get[store.FileUsage](t)(s.FileUsage(ctx, store.FileOwner{Address: kept.Address}, noon)), store.FileUsage{Bytes: 3 << 32, Count: 2})
	must(t, s.DeleteFile(ctx, kept.ID))
	must(t, s.DeleteFile(ctx, kept.ID))
	want(t, "after one is deleted", usage(visitors, noon), store.FileUsage{Bytes: 2 << 32, Count: 1})
	want(t, "an unknown visitor's files", get[store.FileUsage](t)(s.FileUsage(ctx, store.FileOwner{Sender: newID()}, noon)), store.FileUsage{})
}
