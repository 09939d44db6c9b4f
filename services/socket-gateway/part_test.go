package socketgateway_test

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/event"
)

// writes publishes a part of a message, and returns what the visitor's sockets are to get.
func (w *world) writes(p event.MessagePart) string {
	w.t.Helper()
	if err := w.bus.Publish(w.t.Context(), event.Derived(), p); err != nil {
		w.t.Fatal(err)
	}
	return string(p.AppendShown(nil))
}

// Parts reach the sockets on every gateway in their order. A socket that comes late, or back, gets all that
// was written as one part, after the replies that it missed, and then the parts beyond it; once the message
// is done, nothing.
func TestParts(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	near, far := w.start(), w.start()
	v := w.visitor()
	part := event.MessagePart{
		CompanyID: "company", AppID: v.appID, ChatUserID: v.chatUserID, ChatID: v.chatID, MessageID: uuid.Must(uuid.NewV7()).String(),
		CreatedAt: time.Now().UTC().Truncate(time.Millisecond), NameOfSender: "Nora",
	}
	whole := part
	write := func(text string) string {
		p := part
		p.Text = text
		if part.N > 0 {
			p.NameOfSender = ""
		}
		shown := w.writes(p)
		part.Offset += int32(event.UTF16Length(text))
		whole.N, whole.Text = part.N, whole.Text+text
		part.N++
		return shown
	}
	first := connect(t, near.url, v.token)
	session := first.await("connect")
	missed := w.reply(v, `{"text":"before it"}`)
	offset := first.await("message").Offset
	for _, text := range []string{"Once ", "upon 👍 ", "a time "} {
		if want, got := write(text), string(first.await("message.part").Data); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	late := connect(t, far.url, v.token)
	late.await("connect")
	if want, got := string(whole.AppendShown(nil)), string(late.await("message.part").Data); got != want {
		t.Errorf("late: got %s, want %s", got, want)
	}
	var answer struct{ PID string }
	if err := json.Unmarshal(session.Data, &answer); err != nil {
		t.Fatal(err)
	}
	back := connectWith(t, far.url, "", map[string]string{"token": v.token, "pid": answer.PID})
	back.await("connect")
	if got := string(back.await("message").Data); got != missed || offset == "" {
		t.Errorf("back: got %s, want the reply that it missed", got)
	}
	if want, got := string(whole.AppendShown(nil)), string(back.await("message.part").Data); got != want {
		t.Errorf("back: got %s, want %s", got, want)
	}
	want := write("there was")
	for name, c := range map[string]*client{"first": first, "late": late, "back": back} {
		if got := string(c.await("message.part").Data); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	part.Done, part.NameOfSender = true, ""
	want = w.writes(part)
	for name, c := range map[string]*client{"first": first, "late": late, "back": back} {
		if got := string(c.await("message.part").Data); got != want {
			t.Errorf("%s: got %s, want %s", name, got, want)
		}
	}
	after := connect(t, near.url, v.token)
	after.await("connect")
	want = w.reply(v, `{"text":"after it"}`)
	if got := string(after.await("message").Data); got != want {
		t.Errorf("after the end: got %s, want only %s", got, want)
	}
}
