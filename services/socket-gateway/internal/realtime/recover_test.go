package realtime

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
	"github.com/parley-chat/parley/testkit/bustest"
)

func publish(t *testing.T, b *bus.Bus, user string, data string) {
	t.Helper()
	err := b.Publish(t.Context(), event.Derived(), event.Reply{CompanyID: "company", AppID: "app", ChatUserID: user, ChatID: "chat", Message: chat.Message{
		ID: uuid.Must(uuid.NewV7()).String(), CreatedAt: time.Now(), Type: chat.Text, Data: json.RawMessage(data),
	}})
	if err != nil {
		t.Fatal(err)
	}
}

// stored is the subject under which the stream keeps the replies to a visitor.
func stored(t *testing.T, log *replyStream, user string) string {
	t.Helper()
	s, err := log.bus.Stored(t.Context(), subject.Replies, subject.Reply("app", user))
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The stream's sequences 1 to 10 go to Sara and Jo in turn.
func TestMissed(t *testing.T) {
	t.Parallel()
	b := bustest.Open(t, bustest.Start(t).URL())
	log := newReplyStream(b)
	for i := range 5 {
		publish(t, b, "sara", fmt.Sprintf(`{"text":"%d"}`, i))
		publish(t, b, "jo", `{"text":"x"}`)
	}
	stream, err := b.Stream(t.Context(), subject.Replies)
	if err != nil {
		t.Fatal(err)
	}
	if err := stream.DeleteMsg(t.Context(), 3); err != nil { // a gap is not the end
		t.Fatal(err)
	}
	again, err := b.Get(t.Context(), subject.Replies, 9) // 11: republished for another consumer; Sara has received it
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Replay(t.Context(), bus.DeadLetter{
		Sequence: 1, Stream: subject.Replies, Consumer: "recorder", Subject: again.Subject, Header: again.Header, Data: again.Data,
	}); !apperr.Is(err, apperr.NotFound) { // it is in the stream; there is no dead letter to remove
		t.Fatal(err)
	}
	created := stream.CachedInfo().Created
	now := time.Now()
	pid := func(position uint64) string { return newPID(bus.Place{Sequence: position, Time: now}, created) }
	offset := func(sequence uint64) string { return formatOffset(bus.Place{Sequence: sequence, Time: now}) }
	lost := bus.Place{Sequence: 7, Time: created.Add(-time.Second)} // the stream has another message there
	tests := []struct {
		name, pid, offset string
		want              string
	}{
		{"all", pid(0), "", "1 5 7 9"},
		{"after the pid", pid(5), "", "7 9"},
		{"after the offset", pid(0), offset(7), "9"},
		{"after an offset of another visitor's event", pid(0), offset(6), "7 9"},
		{"an offset from before the session", pid(8), offset(1), "9"},
		{"nothing", pid(10), "", ""},
		{"nothing after the offset", pid(0), offset(9), ""},
		{"an offset from the future", pid(0), offset(12), "no"},
		{"a pid from the future", pid(12), "", "no"},
		{"a malformed offset", pid(0), "1x", "no"},
		{"a malformed pid", "nonsense", offset(1), "no"},
		{"a pid of another stream", newPID(bus.Place{}, created.Add(time.Second)), "", "no"},
		{"an offset that was lost and used again", pid(0), formatOffset(lost), "no"},
		{"a pid that was lost and used again", newPID(lost, created), "", "no"},
	}
	for _, test := range tests {
		for _, replicas := range []int{1, 3} { // with replicas the leader is queried too
			got := offsets(t, log, replicas, test.pid, test.offset)
			if got != test.want {
				t.Errorf("%s: got %q, want %q", test.name, got, test.want)
			}
		}
	}
	if err := stream.Purge(t.Context()); err != nil {
		t.Fatal(err)
	}
	for position, want := range map[uint64]string{10: "no", 11: ""} {
		if got := offsets(t, log, 1, pid(position), ""); got != want {
			t.Errorf("got %q from %d of an empty stream that has had eleven, want %q", got, position, want)
		}
	}
}

func offsets(t *testing.T, log *replyStream, replicas int, pid, offset string) string {
	t.Helper()
	found, err := log.missed(t.Context(), "app", "sara", pid, offset)
	if errors.Is(err, errNotRecoverable) {
		return "no"
	}
	if err == nil && replicas > 1 {
		err = log.confirm(t.Context(), stored(t, log, "sara"), &found)
	}
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range found.events {
		got = append(got, strconv.FormatUint(e.at.Sequence, 10))
	}
	return strings.Join(got, " ")
}

// A replica that has answered before it had all is asked again for what the leader has.
func TestMissedConfirmsWithTheLeader(t *testing.T) {
	t.Parallel()
	b := bustest.Open(t, bustest.Start(t).URL())
	log := newReplyStream(b)
	for range 3 {
		publish(t, b, "sara", `{"text":"x"}`)
	}
	stale := missed{upTo: 1}
	if err := log.confirm(t.Context(), stored(t, log, "sara"), &stale); err != nil || len(stale.events) != 2 || stale.upTo != 3 {
		t.Errorf("got %d events up to %d and %v, want the two that were missing", len(stale.events), stale.upTo, err)
	}
	if last, err := log.lastOf(t.Context(), stored(t, log, "nobody")); last != 0 || err != nil {
		t.Errorf("got %d and %v for nobody, want 0", last, err)
	}
}

// What is sent to a client that comes back is bounded in number and in bytes.
func TestMissedIsBounded(t *testing.T) {
	t.Parallel()
	b := bustest.Open(t, bustest.Start(t).URL())
	log := newReplyStream(b)
	for range replayEvents {
		publish(t, b, "sara", `{"text":"x"}`)
	}
	stream, err := b.Stream(t.Context(), subject.Replies)
	if err != nil {
		t.Fatal(err)
	}
	pid := newPID(bus.Place{}, stream.CachedInfo().Created)
	if found, err := log.missed(t.Context(), "app", "sara", pid, ""); err != nil || len(found.events) != replayEvents {
		t.Errorf("got %d events and %v, want %d", len(found.events), err, replayEvents)
	}
	publish(t, b, "sara", `{"text":"x"}`)
	if _, err := log.missed(t.Context(), "app", "sara", pid, ""); !errors.Is(err, errNotRecoverable) {
		t.Errorf("got %v for one more, want that it is too much", err)
	}
	big := `{"text":"x","more":"` + strings.Repeat("x", 60<<10) + `"}`
	for range 10 {
		publish(t, b, "jo", big)
	}
	if _, err := log.missed(t.Context(), "app", "jo", pid, ""); !errors.Is(err, errNotRecoverable) {
		t.Errorf("got %v for 600 KiB, want that it is too much", err)
	}
}

// Many who ask at once share the answers.
func TestStateIsShared(t *testing.T) {
	t.Parallel()
	b := bustest.Open(t, bustest.Start(t).URL())
	log := newReplyStream(b)
	results := make(chan error, 500)
	for range cap(results) {
		go func() { _, err := log.state(t.Context()); results <- err }()
	}
	for range cap(results) {
		if err := <-results; err != nil {
			t.Error(err)
		}
	}
	publish(t, b, "sara", `{"text":"x"}`)
	if state, err := log.state(t.Context()); err != nil || state.Last != 1 || state.First != 1 {
		t.Errorf("got %+v and %v, want what is true at the time of asking", state, err)
	}
}
