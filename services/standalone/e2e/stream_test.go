package e2e

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"
	"unicode/utf16"
)

// shownPart is the payload of the event message.part.
type shownPart struct {
	MessageID    string
	N, Offset    int
	Text         string
	ChatID       string
	NameOfSender string
	Done         bool
}

// reading assembles the parts of one message, as described in docs/browser-client.md.
type reading struct {
	id, text, chat, sender string
	n, parts               int
	done                   bool
	at                     []time.Time
	final                  *delivery
	broken                 bool // parts may be missing or repeated: unusable ones are ignored
}

func (r *reading) take(t testing.TB, p shownPart) {
	t.Helper()
	r.at = append(r.at, time.Now())
	switch {
	case p.MessageID == r.id && p.N <= r.n:
		if !r.broken {
			t.Errorf("got part %d after %d, want each once", p.N, r.n)
		}
		return
	case p.Done:
		r.n, r.done = p.N, true
		return
	case p.Offset == 0:
		r.id, r.n, r.text, r.chat, r.sender = p.MessageID, p.N, p.Text, p.ChatID, p.NameOfSender
	case r.precedes(p):
		r.n, r.text = p.N, r.text+p.Text
	case r.broken:
		return
	default:
		t.Errorf("got %+v after %d units of %s, want what follows", p, len(utf16.Encode([]rune(r.text))), r.id)
	}
	r.parts++
}

// precedes reports whether a part follows on the text so far.
func (r *reading) precedes(p shownPart) bool {
	return p.MessageID == r.id && p.N == r.n+1 && p.Offset == len(utf16.Encode([]rune(r.text)))
}

// read reads parts until enough, or the message that ends them.
func (s *socket) read(t testing.TB, r *reading, enough func() bool) {
	t.Helper()
	for !enough() {
		e := s.await(t, "event")
		switch e.Event {
		case "message.part":
			if len(e.Args) != 1 {
				t.Fatalf("got %d arguments, want one: a second one would be an offset", len(e.Args))
			}
			var p shownPart
			check(t, json.Unmarshal(e.Args[0], &p))
			r.take(t, p)
		case "message":
			var d delivery
			check(t, json.Unmarshal(e.Args[0], &d))
			if !r.broken || d.ID == r.id { // otherwise an earlier reply, which the gateway that took over has emitted again
				r.final = &d
			}
		}
	}
}

// finish reads to the end of the message and compares it with the parts.
func (s *socket) finish(t testing.TB, r *reading) (text, finishReason string) {
	t.Helper()
	s.read(t, r, func() bool { return r.final != nil && r.done })
	text, finishReason = r.final.words(t)
	if r.text != text || r.id != r.final.ID || r.chat != r.final.ChatID || r.sender != r.final.NameOfSender {
		t.Errorf("got %q of %s in parts, want the message %s %q", r.text, r.id, r.final.ID, text)
	}
	return text, finishReason
}

func (d *delivery) words(t testing.TB) (text, finishReason string) {
	t.Helper()
	var data struct{ Text, FinishReason string }
	check(t, json.Unmarshal(d.Data, &data))
	return data.Text, data.FinishReason
}

func (v *visitor) stop(t testing.TB, messageID string) int {
	t.Helper()
	return v.api.call(t, http.MethodPost, "/message/"+messageID+"/stop", nil, bearer(v.token)).Status
}

// The demo bot streams an answer. A socket that connects late gets the text so far as one part, and both end
// with the message in the history.
func TestAnAnswerIsShownWhileItIsWritten(t *testing.T) {
	s := commonStandalone(t)
	v := register(t, s.place, s.widgetAPI(t))
	first := connected(t, s.WidgetBaseURL, v.token, "websocket")
	v.write(t, "stream")
	var early, late reading
	first.read(t, &early, func() bool { return early.parts >= 8 })
	second := connected(t, s.WidgetBaseURL, v.token, "websocket")
	second.read(t, &late, func() bool { return late.parts == 1 || late.final != nil })
	if late.n < 7 || late.text == "" {
		t.Errorf("got %+v as the first part of a late socket, want all that was written", late)
	}
	text, reason := first.finish(t, &early)
	second.finish(t, &late)
	if reason != "" || !strings.Contains(text, "word by word") || early.final.ID != late.final.ID {
		t.Errorf("got %q (%s) and %+v, want all of the demo bot's text", text, reason, late.final)
	}
	if took := early.at[len(early.at)-1].Sub(early.at[0]); float64(early.parts)/took.Seconds() > 25 {
		t.Errorf("got %d parts in %s, want at most 25 a second", early.parts, took)
	}
	history := v.history(t)
	if last := history[len(history)-1]; !last.same(early.final.record) {
		t.Errorf("got %+v at the end of the history, want %+v", last, early.final)
	}
	if got := v.stop(t, early.id); got != http.StatusConflict {
		t.Errorf("got %d for a stop after the end, want 409", got)
	}
	third := connected(t, s.WidgetBaseURL, v.token, "websocket")
	v.write(t, "thanks")
	if d := third.next(t); d.member(t, "text") != "You are welcome." {
		t.Errorf("got %s, want nothing of the answer before", d.Data)
	}
}

// A visitor stops an answer, and another visitor cannot.
func TestAVisitorStopsAnAnswer(t *testing.T) {
	s := commonStandalone(t)
	v, other := register(t, s.place, s.widgetAPI(t)), register(t, s.place, s.widgetAPI(t))
	socket := connected(t, s.WidgetBaseURL, v.token, "websocket")
	v.write(t, "stream")
	var shown reading
	socket.read(t, &shown, func() bool { return shown.parts >= 5 })
	if got := other.stop(t, shown.id); got != http.StatusNotFound {
		t.Errorf("got %d for another visitor's stop, want 404", got)
	}
	if got := v.stop(t, shown.id); got != http.StatusNoContent {
		t.Errorf("got %d for a stop, want 204", got)
	}
	text, reason := socket.finish(t, &shown)
	if reason != "stopped" || !strings.HasPrefix(text, "This answer") || strings.Contains(text, "When I am done") {
		t.Errorf("got %q (%s), want a beginning, stopped", text, reason)
	}
}
