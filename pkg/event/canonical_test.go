package event_test

import (
	"bytes"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
)

func sampleReply(data, sender string) event.Reply {
	return event.Reply{
		CompanyID: "company", AppID: "app", ChatUserID: "visitor", ChatID: "chat",
		Message: chat.Message{
			ID: "0194f0b5-7a3c-7e11-8d4f-2f6a1b9c0d21", CreatedAt: time.Date(2026, 11, 21, 10, 0, 0, 123_000_000, time.UTC),
			Type: chat.Text, Data: []byte(data), NameOfSender: sender, IsFromSupport: true,
		},
	}
}

// storedAt is when the stream stored the replies.
var storedAt = time.Date(2026, 11, 21, 10, 0, 1, 2_003_004, time.UTC)

// sameReply fails the test unless DecodeReply and DecodeStored return the same result.
func sameReply(t *testing.T, subj string, data []byte) {
	t.Helper()
	want, wantErr := event.DecodeStored[event.Reply](subj, bytes.Clone(data), storedAt)
	got, gotErr := event.DecodeReply(subj, data, storedAt)
	if (gotErr == nil) != (wantErr == nil) || gotErr != nil && gotErr.Error() != wantErr.Error() {
		t.Fatalf("%q: got error %v, want %v", data, gotErr, wantErr)
	}
	if wantErr == nil && !reflect.DeepEqual(got, want) {
		t.Fatalf("%q:\ngot  %+v\nwant %+v", data, got, want)
	}
}

func replySeeds() (seeds []string) {
	for _, e := range []event.Reply{
		sampleReply(`{"text":"hello"}`, "Nora"), sampleReply(`{}`, ""), sampleReply(`{"a":[1,{"b":"}\"{"}],"c":1e9}`, "Nóra \u2028"),
		sampleReply(`{"text":"x"}`, "<&>\"\\\n"), sampleReply(strings.Repeat(`{"a":`, 200)+"1"+strings.Repeat("}", 200), "deep"),
		sampleReply("{\"text\":\"\xff\"}", "no UTF-8"), sampleReply(`{"a":01}`, "no JSON"), sampleReply(`{"a":[1}]`, "no JSON"),
	} {
		seeds = append(seeds, string(e.AppendJSON(nil)))
		e.Receipt, e.Message.IsFromSupport = true, false
		seeds = append(seeds, string(e.AppendJSON(nil)))
	}
	whole := seeds[0]
	for _, change := range [][2]string{
		{`"companyId":"company"`, `"companyId":""`}, {`"companyId":"company"`, `"companyId":"a.b"`}, {`"app"`, `"other"`}, {`"TEXT"`, `""`},
		{`0194f0b5`, `0194F0B5`}, {`.123Z`, `Z`}, {`.123Z`, `.1234567Z`}, {`.123Z`, `.12345+01:00`}, {`-11-21T`, `-02-30T`}, {`{"text":"hello"}`, `[]`},
		{`{"text":"hello"}`, `{"text":"hello"`}, {`{"text":"hello"}`, `{"text":"he\u006clo"}`}, {`,"chatId"`, ` ,"chatId"`}, {`}}`, `}} `}, {`}}`, `}}}`},
		{`"Nora"`, `"No\u0072a"`}, {`true}}`, `true},"receipt":true,"more":1}`}, {`true}}`, `true},"receipt":false}`}, {`true}}`, `true,"x":1}}`},
	} {
		seeds = append(seeds, strings.Replace(whole, change[0], change[1], 1))
	}
	for i := range whole {
		seeds = append(seeds, whole[:i])
	}
	return seeds
}

func TestDecodeReplyEqualsDecodeStored(t *testing.T) {
	t.Parallel()
	subj := sampleReply(`{}`, "").Subject()
	for _, seed := range replySeeds() {
		sameReply(t, subj, []byte(seed))
		sameReply(t, "chat.reply.app.another", []byte(seed))
	}
}

func FuzzDecodeReply(f *testing.F) {
	for _, seed := range replySeeds()[:30] {
		f.Add([]byte(seed))
	}
	subj := sampleReply(`{}`, "").Subject()
	f.Fuzz(func(t *testing.T, data []byte) { sameReply(t, subj, data) })
}

func BenchmarkDecodeReply(b *testing.B) {
	e := sampleReply(`{"text":"hello there, how are you?"}`, "Nora")
	subj, data := e.Subject(), e.AppendJSON(nil)
	b.Run("canonical", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = event.DecodeReply(subj, data, storedAt)
		}
	})
	b.Run("any", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			_, _ = event.DecodeStored[event.Reply](subj, data, storedAt)
		}
	})
}
