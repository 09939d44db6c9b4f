package processor_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/testkit/bustest"
	"github.com/parley-chat/parley/testkit/storetest"
)

// A processor that is killed before it acknowledges its work loses and duplicates nothing: the next one
// handles the remaining events, and repeated events count once.
func TestKilledProcessorLosesAndDuplicatesNothing(t *testing.T) {
	t.Parallel()
	const messages = 60
	w := newWorld(t)
	binary := build(t)
	replies := w.collect(subject.AllReplies)
	kill := w.spawn(binary)
	var want []string
	answered := map[string]bool{} // by id: a plain subscriber also sees publishes that the stream drops as duplicates
	answer := func() { answered[decode[event.Reply](t, replies.Next()).Message.ID] = true }
	for i := range messages {
		e := w.wrote(chat.Text, fmt.Sprintf(`{"text":"message %d"}`, i))
		want = append(want, e.Message.ID)
		w.publish(e)
		if i == messages/2 {
			answer() // it is working
			kill()
			for replies.Pending() > 0 { // its work so far
				answer()
			}
			w.spawn(binary)
		}
	}
	for len(answered) < messages {
		awaitTakeover(t, replies)
		answer()
	}
	if got := w.count(subject.Replies); got != messages {
		t.Errorf("got %d replies, want %d", got, messages)
	}
	w.awaitHistory(2 * messages)
	seen := map[string]int{}
	for _, m := range w.history(w.chat.ID) {
		seen[m.ID]++
	}
	for _, id := range want {
		if seen[id] != 1 {
			t.Errorf("got message %s %d times in the history, want once", id, seen[id])
		}
	}
	if len(seen) != 2*messages {
		t.Errorf("got %d messages in the history, want %d", len(seen), 2*messages)
	}
}

// build returns the path of the processor's binary.
func build(t testing.TB) string {
	t.Helper()
	binary := filepath.Join(t.TempDir(), "processor")
	if out, err := exec.Command("go", "build", "-o", binary, "./cmd/processor").CombinedOutput(); err != nil {
		t.Fatalf("building the processor: %v\n%s", err, out)
	}
	return binary
}

// awaitTakeover waits until a new process continues after a crash. That takes the ack wait of the bus and the
// start of the new process, longer than any other wait of the tests; if the engines time out, the chat's
// messages are redelivered one by one.
func awaitTakeover(t testing.TB, collected *bustest.Collector) {
	t.Helper()
	for deadline := time.Now().Add(3 * time.Minute); collected.Pending() == 0; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("got nothing from the new process, want it to continue")
		}
	}
}

// spawn starts the binary as a process.
func (w *world) spawn(binary string, env ...string) (kill func()) {
	w.t.Helper()
	command := exec.Command(binary)
	command.Env = append(os.Environ(), "NATS_URL="+w.natsURL, "SQLITE_PATH="+w.storePath, "SECRETS_KEY_FILE="+storetest.KeyFile(w.t), "OPS_ADDR=127.0.0.1:0", "BOT=demo", "LOG_LEVEL=ERROR")
	command.Env = append(command.Env, env...)
	command.Stderr = os.Stderr
	w.must(command.Start())
	killed := false
	kill = func() {
		if !killed {
			killed = true
			_ = command.Process.Kill()
			_ = command.Wait()
		}
	}
	w.t.Cleanup(kill)
	return kill
}

// awaitHistory returns when the visitor's chat has n messages and the recorder has acknowledged the last. It
// fails if the recorder acknowledges nothing for as long as awaitTakeover waits.
func (w *world) awaitHistory(n int) {
	w.t.Helper()
	words := w.collect("$JS.ACK.*.recorder.>")
	for len(w.history(w.chat.ID)) < n {
		awaitTakeover(w.t, words)
		words.Await(words.Pending()) // reading a long history is slow: once for all pending acks
	}
}

// A processor that is killed around a handover hands the chat over once, and the visitor gets one notice.
func TestKilledProcessorHandsOverOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	binary := build(t)
	replies := w.collect(subject.AllReplies)
	acks := w.collect("$JS.ACK.>")
	kill := w.spawn(binary)
	asked := w.wrote(chat.Text, `{"text":"human"}`)
	w.publish(asked)
	awaitTakeover(t, replies) // the reply is published, the handover may be
	kill()
	w.spawn(binary)
	for ctx := t.Context(); ; awaitTakeover(t, acks) {
		acks.Await(acks.Pending()) // before the check: a later change has a later acknowledgement
		c, err := w.store.Chat(ctx, w.chat.ID)
		w.must(err)
		if c.Control.Waiting() && c.Control.Handover.By == chat.ByBot && len(w.history(w.chat.ID)) == 3 {
			break
		}
	}
	after := w.wrote(chat.Text, `{"text":"hello?"}`)
	w.publish(after)
	w.awaitHistory(4) // and no answer: the agents have the chat
	if got := w.count(subject.Replies); got != 2 {
		t.Errorf("got %d replies, want the bot's and the notice", got)
	}
	notices := 0
	for _, m := range w.history(w.chat.ID) {
		if strings.Contains(string(m.Data), `"notice":"handover"`) {
			notices++
		}
	}
	if notices != 1 {
		t.Errorf("got %d notices in the history, want 1", notices)
	}
	if got := w.count(subject.Inbound); got != 3 {
		t.Errorf("got %d events in INBOUND, want two messages and one handover", got)
	}
}
