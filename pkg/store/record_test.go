package store

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/chat"
)

func FuzzReadHead(f *testing.F) {
	f.Add("0198c6f2-7c1e-7a3b-9d52-0d1c4f6b8a90", int64(1_780_000_000_123), `{"text":"hi"}`)
	f.Add(`with "quotes" and \`, int64(0), `{}`)
	f.Add("наш-id\u2028", int64(-1), `{"id":"another","createdAt":"then"}`)
	f.Fuzz(func(t *testing.T, id string, milliseconds int64, data string) {
		m := chat.Message{ID: id, CreatedAt: time.UnixMilli(milliseconds % (1 << 47)).UTC(), Type: chat.Text, Data: json.RawMessage(data)}
		if validate(m) != nil || m.CreatedAt.Year() > 9999 {
			return // never stored
		}
		want, err := parseRecord(record(m))
		if err != nil {
			t.Fatal(err)
		}
		got, err := readHead(record(m))
		if err != nil || got.id != want.ID || !got.at.Equal(want.CreatedAt) || got.text != record(m) {
			t.Errorf("got %q, %v, %v, want %q, %v", got.id, got.at, err, want.ID, want.CreatedAt)
		}
	})
}

func TestReadHeadOfNoRecord(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "{", `{"id":`, `{"id":"a`, `{"id":"a","createdAt":"2026`, `{"id":"a\`} {
		if got, err := readHead(text); err == nil {
			t.Errorf("%q: got %+v, want an error", text, got)
		}
	}
}

func TestDamagedSealIsAnError(t *testing.T) {
	t.Parallel()
	sealed := pack([]stored{{text: `{"id":"a","createdAt":"2026-05-04T03:02:01.987Z"}`}, {text: `{"id":"b","createdAt":"2026-05-04T03:02:01.988Z"}`}})
	if texts, err := unpack(sealed); err != nil || len(texts) != 2 {
		t.Fatalf("got %q, %v, want both records", texts, err)
	}
	for _, d := range []bucketDocument{{Sealed: sealed[:len(sealed)-3]}, {Sealed: []byte("x")}} {
		if all, err := d.contents(); err == nil {
			t.Errorf("%q: got %v, want an error", d.Sealed, all)
		}
		if _, err := d.find("b"); err == nil {
			t.Errorf("%q: found a record, want an error", d.Sealed)
		}
	}
}
