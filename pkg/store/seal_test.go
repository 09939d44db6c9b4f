package store_test

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strings"
	"testing"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

// rawBucket is a bucket as it lies in the database.
func rawBucket(t *testing.T, raw rawDatabase, id string) (unsealed map[string]string, sealed []string) {
	t.Helper()
	var d struct {
		M map[string]string `bson:"m"`
		S []byte            `bson:"s"`
	}
	if err := raw.Collection("buckets").FindOne(t.Context(), bson.D{{Key: "_id", Value: id}}).Decode(&d); err != nil {
		t.Fatalf("reading bucket %s: %v", id, err)
	}
	return d.M, strings.FieldsFunc(inflate(t, d.S), func(r rune) bool { return r == 0x1e })
}

func inflate(t *testing.T, sealed []byte) string {
	t.Helper()
	if len(sealed) == 0 {
		return ""
	}
	text, err := io.ReadAll(flate.NewReader(bytes.NewReader(sealed)))
	if err != nil {
		t.Fatalf("inflating sealed records: %v", err)
	}
	return string(text)
}

func deflate(t testing.TB, text string) []byte {
	t.Helper()
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestSpeed)
	if err != nil {
		t.Fatal(err)
	}
	_, _ = io.WriteString(w, text)
	_ = w.Close()
	if text == "" {
		return nil
	}
	return b.Bytes()
}

// sealedChat is a chat whose first bucket has just been sealed by appending.
func sealedChat(t *testing.T) (s *store.Store, raw rawDatabase, chatID string, all []chat.Message) {
	t.Helper()
	s, raw = openRaw(t)
	c := openChat(t, s)
	wasteUnits(t, raw, c.ID, 80)
	for n := range 29 {
		m := text(fmt.Sprint(n), at(n), n%2 == 0)
		m.Data = json.RawMessage(trickyJSON)
		all = append(all, m)
	}
	all[3].ID, all[4].ID = "an.id$with%2Eall", `with "quotes" and \`
	appendAll(t, s, c.ID, all...)
	if in, _ := rawBucket(t, raw, c.ID+":0"); len(in) != 20 {
		t.Fatalf("before its time: got %d messages unsealed, want all 20", len(in))
	}
	last := text("the tenth of the next bucket", at(29), true)
	appendAll(t, s, c.ID, last)
	return s, raw, c.ID, append(all, last)
}

func TestFullBucketIsSealed(t *testing.T) {
	t.Parallel()
	s, raw, chatID, all := sealedChat(t)
	in, sealed := rawBucket(t, raw, chatID+":0")
	if len(in) != 0 || len(sealed) != 20 {
		t.Fatalf("got %d messages unsealed and %d sealed, want all 20 sealed", len(in), len(sealed))
	}
	for n, record := range sealed {
		if want := string(all[n].AppendJSON(nil)); record != want {
			t.Errorf("got %s, want %s", record, want)
		}
	}
	if got, err := s.History(t.Context(), chatID); err != nil || !reflect.DeepEqual(got, all) {
		t.Errorf("got %d messages, %v, want the %d in order", len(got), err, len(all))
	}
	if got := walk(t, s, chatID, func() int { return 3 }, func() {}); !reflect.DeepEqual(got, all) {
		t.Errorf("page by page: got %s, want %s", ids(got), ids(all))
	}
	for _, m := range all {
		if in, got, err := s.FindMessage(t.Context(), m.ID); err != nil || in != chatID || !reflect.DeepEqual(got, m) {
			t.Errorf("finding %q: got %+v, %v, want %+v", m.ID, got, err, m)
		}
		if got, err := s.Message(t.Context(), chatID, m.ID); err != nil || !reflect.DeepEqual(got, m) {
			t.Errorf("asking for %q: got %+v, %v, want %+v", m.ID, got, err, m)
		}
	}
}

func TestAppendingAgainLeavesTheSealedAlone(t *testing.T) {
	t.Parallel()
	s, raw, chatID, all := sealedChat(t)
	for _, m := range all {
		m.NameOfSender = "Somebody else"
		appendAll(t, s, chatID, m)
	}
	if in, _ := rawBucket(t, raw, chatID+":0"); len(in) != 0 {
		t.Errorf("got %d messages beside the sealed ones, want none", len(in))
	}
	if got, err := s.History(t.Context(), chatID); err != nil || !reflect.DeepEqual(got, all) {
		t.Errorf("got %d messages, %v, want the first of each", len(got), err)
	}
}

// A writer that took its place before a bucket was sealed may write long after.
func TestWritingLateIntoASealedBucket(t *testing.T) {
	t.Parallel()
	s, raw, chatID, all := sealedChat(t)
	late := text("late", at(7), false)
	insert(t, raw, "messages", bson.M{"_id": late.ID, "chatId": chatID, "bucket": int64(0), "createdAt": late.CreatedAt})
	appendAll(t, s, chatID, late, late)
	want := slices.SortedStableFunc(slices.Values(append(all, late)), chat.CompareMessages)
	if got, err := s.History(t.Context(), chatID); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("got %s, %v, want %s", ids(got), err, ids(want))
	}
	if got, err := s.Message(t.Context(), chatID, late.ID); err != nil || !reflect.DeepEqual(got, late) {
		t.Errorf("got %+v, %v, want %+v", got, err, late)
	}
}

// A large message that overhangs seals the bucket that it lies in itself: it comes to lie beside the sealed ones.
func TestLargeMessageSealsItsOwnBucket(t *testing.T) {
	t.Parallel()
	s, raw := openRaw(t)
	c := openChat(t, s)
	wasteUnits(t, raw, c.ID, 97)
	all := []chat.Message{text("97", at(1), true), text("98", at(2), true), text("", at(3), true), text("110", at(4), true)}
	all[2].Data = jsonOf(640 << 10) // units 99 to 109
	appendAll(t, s, c.ID, all...)
	if in, sealed := rawBucket(t, raw, c.ID+":0"); len(in) != 1 || len(sealed) != 2 {
		t.Errorf("got %d unsealed and %d sealed, want the sealing message beside the two before it", len(in), len(sealed))
	}
	if got, err := s.History(t.Context(), c.ID); err != nil || !reflect.DeepEqual(got, all) {
		t.Errorf("got %d messages, %v, want all", len(got), err)
	}
}
