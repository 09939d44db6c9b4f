package bot

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
)

// stage is a bus with parts and replies, and the view of a visitor.
type stage struct {
	mu      sync.Mutex
	parts   []event.MessagePart
	at      []time.Time
	replies []event.Reply
	refuse  int // number of parts that fail
	shown   event.MessagePart
}

func (s *stage) Publish(_ context.Context, _ event.Account, e event.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch e := e.(type) {
	case event.Reply:
		s.replies = append(s.replies, e)
	case event.MessagePart:
		if s.refuse > 0 {
			s.refuse--
			return apperr.Unreachable("NATS", errors.New("unavailable"))
		}
		if _, err := event.Decode[event.MessagePart](e.Subject(), e.AppendJSON(nil)); err != nil {
			return err
		}
		s.parts, s.at = append(s.parts, e), append(s.at, time.Now())
		s.shown.Extend(e)
	}
	return nil
}

// final returns the text of the first reply.
func (s *stage) final(t *testing.T) (text, finishReason string) {
	t.Helper()
	if len(s.replies) == 0 {
		t.Fatal("got no reply")
	}
	var d struct{ Text, FinishReason string }
	if err := json.Unmarshal(s.replies[0].Message.Data, &d); err != nil {
		t.Fatal(err)
	}
	if faults := chat.ValidateData(chat.Text, s.replies[0].Message.Data); len(faults) > 0 {
		t.Errorf("got %v in the reply", faults)
	}
	return d.Text, d.FinishReason
}

// script answers with pieces, each after a pause.
type script struct {
	pieces  []string
	pause   time.Duration
	end     error
	silence time.Duration
}

func (s *script) Forget(string) {}

func (s *script) Answer(ctx context.Context, _ event.VisitorMessageAccepted, begin Begin) (Result, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	i := 0
	answers, err := show(ctx, cancel, begin, s.silence, func() (piece, error) {
		if i == len(s.pieces) {
			if s.end == nil {
				<-ctx.Done()
				return piece{}, ctx.Err()
			}
			return piece{}, s.end
		}
		select {
		case <-time.After(s.pause):
		case <-ctx.Done():
			return piece{}, ctx.Err()
		}
		i++
		return piece{text: s.pieces[i-1]}, nil
	})
	if broken, ok := errors.AsType[*interruptedError](err); ok && broken != nil {
		err = nil
	}
	return answers, err
}

func (s *stage) bot(a Answerer, agent ...bool) *Bot {
	c := controls(agent)
	return New(Config{
		Answerer:     a,
		Settings:     always(bots.Settings{Kind: bots.Demo}),
		Applications: application{BotName: "Nora"},
		Chats:        &c,
		Publisher:    s,
		Now:          time.Now,
	})
}

// newMessage returns a message of now.
func newMessage(text string) event.VisitorMessageAccepted {
	e := wrote(chat.Text, `{"text":"`+text+`"}`)
	e.Message.CreatedAt = time.Now().UTC().Truncate(time.Millisecond)
	return e
}

// Whatever the speed of the source, a visitor gets 10 to 25 parts a second, the first one at once, and
// together they are the message.
func TestPartsAreRolledUp(t *testing.T) {
	t.Parallel()
	for _, pause := range []time.Duration{time.Millisecond, 20 * time.Millisecond} {
		synctest.Test(t, func(t *testing.T) {
			var s stage
			a := &script{pieces: make([]string, int(4*time.Second/pause)), pause: pause, end: io.EOF, silence: time.Minute}
			for i := range a.pieces {
				a.pieces[i] = "x"
			}
			began := time.Now()
			if pause == 20*time.Millisecond {
				a.pieces[3] = "👍 "
			}
			if err := s.bot(a).VisitorMessage(t.Context(), newMessage("go")); err != nil {
				t.Fatal(err)
			}
			if text, reason := s.final(t); text != strings.Join(a.pieces, "") || reason != "" || s.shown.Text != text || !s.shown.Done {
				t.Errorf("got %q (%s) as the message and %+v of the parts, want what was written", text, reason, s.shown)
			}
			if s.replies[0].Message.ID != s.parts[0].MessageID || s.parts[0].NameOfSender != "Nora" {
				t.Errorf("got %+v after %+v, want the same id and sender", s.replies[0].Message, s.parts[0])
			}
			if first := s.at[0].Sub(began); first > pause {
				t.Errorf("got the first part after %s, want it at once", first)
			}
			if rate := float64(len(s.parts)) / 4; rate < 10 || rate > 25 {
				t.Errorf("got %.1f parts a second, want 10 to 25", rate)
			}
		})
	}
}

// A part that failed is included in the next one, which has the whole text; long texts are repeated as a
// whole periodically.
func TestAFailedPartIsFollowedByAWholeOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := stage{refuse: 5}
		a := &script{pieces: strings.SplitAfter(strings.Repeat("word ", 200), " "), pause: 100 * time.Millisecond, end: io.EOF, silence: time.Minute}
		if err := s.bot(a).VisitorMessage(t.Context(), newMessage("go")); err != nil {
			t.Fatal(err)
		}
		if text, _ := s.final(t); s.shown.Text != text || s.parts[0].Offset != 0 || s.parts[0].N != 8 {
			t.Errorf("got %+v of the parts, beginning with %+v, want the message %q", s.shown, s.parts[0], text)
		}
		whole := 0
		for _, p := range s.parts {
			if p.Offset == 0 && !p.Done {
				whole++
			}
		}
		if whole < 3 || whole > 6 {
			t.Errorf("got %d parts with all of the text in 20 seconds, want one each 5 seconds", whole)
		}
	})
}

func TestAnAnswerEndsEarly(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789", chat.MaxTextLength/10+5)
	for name, test := range map[string]struct {
		script       script
		text, reason string
	}{
		"silence":          {script{pieces: []string{"Half "}, silence: 30 * time.Second}, "Half ", "interrupted"},
		"a broken source":  {script{pieces: []string{"Half ", "way"}, end: io.ErrUnexpectedEOF, silence: time.Minute}, "Half way", "interrupted"},
		"too long a text":  {script{pieces: []string{long, "more"}, end: io.EOF, silence: time.Minute}, long[:chat.MaxTextLength], "length"},
		"nothing to read":  {script{pieces: []string{" ", "\n"}, end: io.EOF, silence: time.Minute}, "", ""},
		"nothing at all":   {script{end: io.EOF, silence: time.Minute}, "", ""},
		"an ordinary text": {script{pieces: []string{" All", " of it\n"}, end: io.EOF, silence: time.Minute}, " All of it\n", ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s stage
				began := time.Now()
				if err := s.bot(&test.script).VisitorMessage(t.Context(), newMessage("go")); err != nil {
					t.Fatal(err)
				}
				if test.text == "" {
					if len(s.replies) > 0 || len(s.parts) > 0 && !s.parts[len(s.parts)-1].Done {
						t.Errorf("got %+v and %+v, want no message, and an end of what was shown", s.replies, s.parts)
					}
					return
				}
				if text, reason := s.final(t); text != test.text || reason != test.reason || s.shown.Text != text {
					t.Errorf("got %q (%s) and %q of the parts, want %q (%s)", text, reason, s.shown.Text, test.text, test.reason)
				}
				if took := time.Since(began); name == "silence" && (took < 30*time.Second || took > 31*time.Second) {
					t.Errorf("got the end after %s, want it after 30 s without text", took)
				}
			})
		})
	}
}

func TestAVisitorStopsAnAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s stage
		b := s.bot(&script{pieces: strings.SplitAfter(strings.Repeat("word ", 100), " "), pause: 100 * time.Millisecond, end: io.EOF, silence: time.Minute})
		asked := newMessage("go")
		done := make(chan error)
		go func() { done <- b.VisitorMessage(t.Context(), asked) }()
		time.Sleep(time.Second)
		id := chat.AnswerID(asked.Message.ID, 0)
		if b.Stop(asked.AppID, "another visitor", id) || b.Stop(asked.AppID, asked.ChatUserID, "another message") {
			t.Error("got a stop of what another visitor reads")
		}
		if !b.Stop(asked.AppID, asked.ChatUserID, id) {
			t.Error("got no stop")
		}
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if text, reason := s.final(t); reason != "stopped" || len(text) < 30 || len(text) > 60 || s.shown.Text != text || !s.shown.Done {
			t.Errorf("got %q (%s) and %+v of the parts, want a second's words", text, reason, s.shown)
		}
		if b.Stop(asked.AppID, asked.ChatUserID, id) {
			t.Error("got a second stop, want none: it is complete")
		}
	})
}

// A process that dies while streaming leaves its parts; the next one streams again, and the visitor sees its text.
func TestAnotherProcessStreamsAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s stage
		asked := newMessage("go")
		dying, die := context.WithCancel(t.Context())
		time.AfterFunc(500*time.Millisecond, die)
		first := &script{pieces: strings.SplitAfter(strings.Repeat("word ", 100), " "), pause: 100 * time.Millisecond, end: io.EOF, silence: time.Minute}
		if err := s.bot(first).VisitorMessage(dying, asked); err == nil || len(s.replies) > 0 || s.shown.Done || s.shown.Text == "" {
			t.Fatalf("got %v, %+v, %+v, want what was shown to stay", err, s.replies, s.shown)
		}
		second := &script{pieces: []string{"Some", "thing ", "else"}, pause: 100 * time.Millisecond, end: io.EOF, silence: time.Minute}
		if err := s.bot(second).VisitorMessage(t.Context(), asked); err != nil {
			t.Fatal(err)
		}
		if text, _ := s.final(t); text != "Something else" || s.shown.Text != text {
			t.Errorf("got %q and %q of the parts, want the second process's text", text, s.shown.Text)
		}
	})
}

// The answer is published, but NATS has lost that the message was handled: the model writes another one. The stream
// drops it, and the visitor must not read its parts.
func TestAnAnsweredMessageIsNotStreamedAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s, asked := &stage{}, newMessage("x")
		b := s.bot(&script{pieces: []string{"another ", "answer"}, pause: partInterval})
		b.cfg.Replies = elsewhere{chat.AnswerID(asked.Message.ID, 0)}
		b.cfg.Now = func() time.Time { return asked.Message.CreatedAt.Add(takeover) }
		if err := b.VisitorMessage(t.Context(), asked); err != nil || len(s.parts) != 0 {
			t.Errorf("got %d parts and %v, want none", len(s.parts), err)
		}
	})
}

func TestNothingIsShownWhileAnAgentHasTheChat(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		agent   []bool
		replies int
	}{
		"taken over before the first word": {[]bool{false, true}, 0},
		"taken over in the middle":         {[]bool{false, false, true}, 1},
	} {
		var s stage
		b := s.bot(&script{pieces: []string{"Hello"}, end: io.EOF, silence: time.Minute}, test.agent...)
		if err := b.VisitorMessage(t.Context(), newMessage("go")); err != nil || len(s.replies) != test.replies || len(s.parts) > 0 != (test.replies > 0) {
			t.Errorf("%s: got %v, %d replies and %d parts, want %d replies", name, err, len(s.replies), len(s.parts), test.replies)
		}
	}
}

// streaming is a webhook that answers with events.
func streaming(t *testing.T, body string, more ...func(http.ResponseWriter)) *Webhook {
	return openWebhook(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		io.WriteString(w, body)
		for _, f := range more {
			f(w)
		}
	})
}

func TestAWebhookMayStream(t *testing.T) {
	t.Parallel()
	const menu = `{"messages":[{"type":"MULTIPLE_CHOICE","data":{"text":"And now?","choices":[{"title":"A","payload":"a"}]}}]}`
	for name, test := range map[string]struct {
		body         string
		text, reason string
		replies      int
		code         apperr.Code
	}{
		"to [DONE]":             {"data: {\"text\":\"One \"}\n\ndata: {\"text\":\"two\"}\n\ndata: [DONE]\n\n", "One two", "", 1, ""},
		"to done":               {": hello\r\ndata:{\"text\":\"One\"}\r\n\r\nevent: done\r\ndata: {}\r\n\r\n", "One", "", 1, ""},
		"and more messages":     {"data: {\"text\":\"One\"}\n\nevent: done\ndata: " + menu + "\n\n", "One", "", 2, ""},
		"broken off":            {"data: {\"text\":\"One\"}\n\ndata: {\"text\":\"tw", "One", "interrupted", 1, ""},
		"wrong JSON later":      {"data: {\"text\":\"One\"}\n\ndata: {\"text\":7}\n\n", "One", "interrupted", 1, ""},
		"too large later":       {"data: {\"text\":\"One\"}\n\ndata: " + strings.Repeat("x", maxAnswer) + "\n\n", "One", "interrupted", 1, ""},
		"wrong messages":        {"data: {\"text\":\"One\"}\n\nevent: done\ndata: {\"messages\":[{\"type\":\"POEM\"}]}\n\n", "One", "interrupted", 1, ""},
		"nothing but the end":   {"data: [DONE]\n\n", "", "", 0, ""},
		"wrong from the start":  {"data: hello\n\n", "", "", 0, apperr.Invalid},
		"broken from the start": {"data: {\"text\":\"One\"}", "", "", 0, apperr.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s stage
			err := s.bot(streaming(t, test.body)).VisitorMessage(t.Context(), newMessage("go"))
			if test.code != "" {
				if apperr.CodeOf(err) != test.code || len(s.parts) > 0 {
					t.Errorf("got %v and %d parts, want %s", err, len(s.parts), test.code)
				}
				return
			}
			if err != nil || len(s.replies) != test.replies {
				t.Fatalf("got %v and %d replies, want %d", err, len(s.replies), test.replies)
			}
			if test.replies == 0 {
				return
			}
			if text, reason := s.final(t); text != test.text || reason != test.reason || s.shown.Text != text || !s.shown.Done {
				t.Errorf("got %q (%s) and %+v of the parts, want %q (%s)", text, reason, s.shown, test.text, test.reason)
			}
		})
	}
}

// A bot's text is Markdown, also while it is written, unless the bot says that it is plain.
func TestFormatsOfAnswers(t *testing.T) {
	t.Parallel()
	whole := func(data string) *Webhook {
		return openWebhook(t, func(w http.ResponseWriter, _ *http.Request) {
			io.WriteString(w, `{"messages":[{"type":"TEXT","data":`+data+`}]}`)
		})
	}
	for name, test := range map[string]struct {
		answerer Answerer
		format   string // empty: the answer is refused
	}{
		"a model":                     {openLLM(t, &model{words: []string{"**Hi**"}}, nil), "markdown"},
		"a streaming webhook":         {streaming(t, "data: {\"text\":\"**Hi**\"}\n\ndata: [DONE]\n\n"), "markdown"},
		"a plain streaming webhook":   {streaming(t, "data: {\"format\":\"plain\"}\n\ndata: {\"text\":\"**Hi**\"}\n\ndata: [DONE]\n\n"), "plain"},
		"a streaming webhook in HTML": {streaming(t, "data: {\"format\":\"html\",\"text\":\"**Hi**\"}\n\ndata: [DONE]\n\n"), ""},
		"a webhook":                   {whole(`{"text":"**Hi**"}`), "markdown"},
		"a plain webhook":             {whole(`{"text":"**Hi**","format":"plain"}`), "plain"},
		"a webhook in HTML":           {whole(`{"text":"**Hi**","format":"html"}`), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var s stage
			err := s.bot(test.answerer).VisitorMessage(t.Context(), newMessage("go"))
			if test.format == "" {
				if !apperr.Is(err, apperr.Invalid) || !strings.Contains(err.Error(), "must be one of markdown, plain") || len(s.replies) > 0 {
					t.Errorf("got %v and %d replies, want the format refused", err, len(s.replies))
				}
				return
			}
			var d struct{ Text, Format string }
			if err != nil || len(s.replies) != 1 || json.Unmarshal(s.replies[0].Message.Data, &d) != nil || d.Format != test.format || d.Text != "**Hi**" {
				t.Errorf("got %v and %+v, want the text as it was sent, in the format %s", err, d, test.format)
			}
			for _, p := range s.parts {
				if want := p.Offset == 0 && !p.Done; want != (p.Format == chat.Format(test.format)) {
					t.Errorf("got %+v, want the format with a part of the whole text", p)
				}
			}
		})
	}
}

// A visitor's stop ends the request to the webhook.
func TestAStopEndsTheCall(t *testing.T) {
	t.Parallel()
	ended := make(chan struct{})
	w := openWebhook(t, func(rw http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		rw.Header().Set("Content-Type", "text/event-stream")
		io.WriteString(rw, "data: {\"text\":\"Once upon a time\"}\n\n")
		rw.(http.Flusher).Flush()
		<-r.Context().Done()
		close(ended)
	})
	var s stage
	b := s.bot(w)
	asked := newMessage("go")
	done := make(chan error)
	go func() { done <- b.VisitorMessage(t.Context(), asked) }()
	for !b.Stop(asked.AppID, asked.ChatUserID, chat.AnswerID(asked.Message.ID, 0)) {
		time.Sleep(time.Millisecond)
	}
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	<-ended
	if text, reason := s.final(t); text != "Once upon a time" || reason != "stopped" {
		t.Errorf("got %q (%s), want what was written", text, reason)
	}
}
