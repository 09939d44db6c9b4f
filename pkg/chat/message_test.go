package chat_test

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"github.com/parley-chat/parley/pkg/chat"
)

func TestMessageRecord(t *testing.T) {
	t.Parallel()
	m := chat.Message{
		ID:            "01890a5d-ac96-774b-bcce-b302099a8057",
		CreatedAt:     time.Date(2026, 3, 1, 14, 0, 0, 7_999_999, time.FixedZone("", 2*60*60)),
		Type:          chat.Text,
		Data:          json.RawMessage(`{"text":"<b>\u00e9</b>", "n":1.50e+2,"big":12345678901234567890}`),
		NameOfSender:  "A \"B\"\n",
		IsFromSupport: true,
	}
	const members = `"id":"01890a5d-ac96-774b-bcce-b302099a8057","createdAt":"2026-03-01T12:00:00.007Z","type":"TEXT",` +
		`"data":{"text":"<b>\u00e9</b>", "n":1.50e+2,"big":12345678901234567890},"nameOfSender":"A \"B\"\n","isFromSupport":true`
	if got, want := string(m.AppendJSON([]byte("x"))), "x{"+members+"}"; got != want {
		t.Errorf("AppendJSON:\ngot  %s\nwant %s", got, want)
	}
	if got, want := string(m.AppendDelivery(nil, "c1")), "{"+members+`,"chatId":"c1"}`; got != want {
		t.Errorf("AppendDelivery:\ngot  %s\nwant %s", got, want)
	}
}

// plainMessage has Message's fields without its methods, so that encoding/json encodes it itself.
type plainMessage chat.Message

func TestAppendJSONIsEquivalentToEncodingJSON(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		data, err := json.Marshal(rapid.MapOf(rapid.String(), rapid.String()).Draw(t, "data"))
		if err != nil {
			t.Fatal(err)
		}
		m := chat.Message{
			ID:            rapid.String().Draw(t, "id"),
			CreatedAt:     time.UnixMilli(rapid.Int64Range(0, 253402300799999).Draw(t, "createdAt")).UTC(),
			Type:          chat.MessageType(rapid.String().Draw(t, "type")),
			Data:          data,
			NameOfSender:  rapid.String().Draw(t, "nameOfSender"),
			IsFromSupport: rapid.Bool().Draw(t, "isFromSupport"),
		}
		encoded := m.AppendJSON(nil)
		if !bytes.Contains(encoded, data) {
			t.Fatalf("got %s, want the data %s in it byte for byte", encoded, data)
		}
		var ours, back plainMessage
		if err := json.Unmarshal(encoded, &ours); err != nil {
			t.Fatalf("%s: %v", encoded, err)
		}
		theirs, err := json.Marshal(plainMessage(m))
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(theirs, &back); err != nil {
			t.Fatal(err)
		}
		if !ours.CreatedAt.Equal(back.CreatedAt) {
			t.Fatalf("createdAt: got %v, want %v", ours.CreatedAt, back.CreatedAt)
		}
		ours.CreatedAt, ours.Data, back.Data = back.CreatedAt, nil, nil
		if ours.ID != back.ID || ours.Type != back.Type || ours.NameOfSender != back.NameOfSender || ours.IsFromSupport != back.IsFromSupport {
			t.Fatalf("got %+v, want %+v", ours, back)
		}
	})
}

func FuzzAppendString(f *testing.F) {
	for _, s := range []string{"", "plain", `"\`, "\x00\x1f\x7f", "é\u2028😀", "\xff\xc3", "<&>", "a\nb"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		encoded := chat.AppendString([]byte("x"), s)
		var got, want string
		if err := json.Unmarshal(encoded[1:], &got); err != nil {
			t.Fatalf("%q: got %s, which is not JSON: %v", s, encoded, err)
		}
		theirs, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(theirs, &want); err != nil {
			t.Fatal(err)
		}
		if got != want || utf8.ValidString(s) && got != s {
			t.Errorf("%q: got %q, want %q", s, got, want)
		}
		if encoded[0] != 'x' || !utf8.Valid(encoded) {
			t.Errorf("%q: got %q, want valid UTF-8 appended", s, encoded)
		}
	})
}

func TestAppendJSONDoesNotAllocate(t *testing.T) {
	m := chat.Message{
		ID: "01890a5d-ac96-774b-bcce-b302099a8057", CreatedAt: noon, Type: chat.Text,
		Data: json.RawMessage(`{"text":"hello"}`), NameOfSender: "Ada",
	}
	buffer := make([]byte, 0, 512)
	if got := testing.AllocsPerRun(100, func() { buffer = m.AppendJSON(buffer[:0]) }); got != 0 {
		t.Errorf("allocations: got %v, want 0", got)
	}
}

func TestAppendTimeEqualsAppendFormat(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		seconds := rapid.Int64Range(-70_000_000_000, 300_000_000_000).Draw(t, "seconds") // before the year 0 and after 9999
		at := time.Unix(seconds, rapid.Int64Range(0, 999_999_999).Draw(t, "nanoseconds")).In(time.FixedZone("", 3600))
		if got, want := string(chat.AppendTime(nil, at)), at.UTC().Format(chat.TimeFormat); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	})
}

func TestSortMessagesIsByTimeThenID(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		messages := rapid.SliceOf(rapid.Custom(func(t *rapid.T) chat.Message {
			return chat.Message{
				ID:        rapid.SampledFrom([]string{"a", "b", "c", "d"}).Draw(t, "id"),
				CreatedAt: noon.Add(time.Duration(rapid.IntRange(0, 3).Draw(t, "ms")) * time.Millisecond),
			}
		})).Draw(t, "messages")
		sorted := slices.Clone(messages)
		chat.SortMessages(sorted)
		for i := 1; i < len(sorted); i++ {
			a, b := sorted[i-1], sorted[i]
			if b.CreatedAt.Before(a.CreatedAt) || a.CreatedAt.Equal(b.CreatedAt) && strings.Compare(a.ID, b.ID) > 0 {
				t.Fatalf("got %s at %v before %s at %v", a.ID, a.CreatedAt, b.ID, b.CreatedAt)
			}
		}
		if len(sorted) != len(messages) {
			t.Fatalf("got %d messages, want %d", len(sorted), len(messages))
		}
	})
}
