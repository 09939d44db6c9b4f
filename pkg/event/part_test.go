package event_test

import (
	"testing"
	"unicode/utf16"

	"pgregory.net/rapid"

	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
)

// Whatever parts are lost, duplicated or from another attempt, a reader has a prefix of what was written, and all of it
// after the next full part.
func TestExtendAcceptsOnlyTheNextPart(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		var got event.MessagePart
		written, n := "", int32(0)
		prefixes := map[string]bool{}
		for range rapid.IntRange(1, 30).Draw(t, "parts") {
			if rapid.IntRange(0, 9).Draw(t, "again") == 0 {
				written = "" // another process starts over
			}
			part := event.MessagePart{MessageID: messageID, N: n, Offset: int32(event.UTF16Length(written)), Text: rapid.StringN(1, 5, -1).Draw(t, "text")}
			written += part.Text
			n++
			if rapid.IntRange(0, 4).Draw(t, "whole") == 0 {
				part.Offset, part.Text = 0, written
			}
			prefixes[written] = true
			for range rapid.IntRange(0, 2).Draw(t, "deliveries") {
				got.Extend(part)
			}
			if got.MessageID != "" && !prefixes[got.Text] {
				t.Fatalf("got %q, which was never written", got.Text)
			}
		}
		got.Extend(event.MessagePart{MessageID: messageID, N: n, Text: written})
		if got.Text != written {
			t.Fatalf("got %q after a whole part, want %q", got.Text, written)
		}
	})
}

func TestOffsetsCountUTF16(t *testing.T) {
	t.Parallel()
	for _, s := range []string{"", "abc", "grüße", "👍🏽 ok", "日本語"} {
		if got, want := event.UTF16Length(s), len(utf16.Encode([]rune(s))); got != want {
			t.Errorf("%q: got %d, want %d", s, got, want)
		}
	}
}

func TestAPartOfAnotherMessageAndTheEnd(t *testing.T) {
	t.Parallel()
	a := event.MessagePart{MessageID: "a", N: 7, Text: "one"}
	if a.Extend(event.MessagePart{MessageID: "b", N: 8, Offset: 3, Text: "x"}) || a.Text != "one" {
		t.Errorf("got %+v, want the middle of another message ignored", a)
	}
	if !a.Extend(event.MessagePart{MessageID: "b", Text: "two"}) || a.Text != "two" {
		t.Errorf("got %+v, want the beginning of another message", a)
	}
	if !a.Extend(event.MessagePart{MessageID: "b", N: 1, Offset: 3, Done: true}) || !a.Done {
		t.Errorf("got %+v, want it done", a)
	}
}

func TestStopSubjectRoundTrip(t *testing.T) {
	t.Parallel()
	app, visitor, message, ok := subject.ParseStop(subject.Stop(appID, chatUserID, messageID))
	if !ok || app != appID || visitor != chatUserID || message != messageID {
		t.Errorf("got %s %s %s %v, want the ids", app, visitor, message, ok)
	}
	if _, _, _, ok := subject.ParseStop("parley.stop." + appID); ok {
		t.Error("got a stop without a message")
	}
}
