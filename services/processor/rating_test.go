package processor_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
)

// The recorder stores a rating whose publisher crashed before storing it. A repeated or late rating changes
// nothing, and a visitor cannot rate another one's chat.
func TestRatingIsKept(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.run(w.config())
	kept, dead := w.acked(subject.Inbound, "recorder-ratings"), w.collect(subject.AllDead)
	first := event.ChatRated{
		CompanyID: w.company.ID, AppID: w.application.ID, ChatUserID: w.visitor.ID, ChatID: w.chat.ID, Score: 2, Comment: "Slow.", RatedAt: now(),
	}
	better, foreign := first, first
	better.Score, better.Comment, better.RatedAt = 4, "", first.RatedAt.Add(time.Second)
	foreign.ChatUserID, foreign.RatedAt = uuid.NewString(), first.RatedAt.Add(time.Minute)
	for _, e := range []event.ChatRated{better, first, foreign} {
		w.publish(e)
	}
	w.publishRaw(first.Subject(), first.AppendJSON(nil))
	kept.Await(4)
	if got := dead.Next().Header.Get(bus.HeaderDeadReason); !strings.Contains(got, "another visitor") {
		t.Errorf("got the reason %q, want that the chat is another visitor's", got)
	}
	c, err := w.store.Chat(t.Context(), w.chat.ID)
	w.must(err)
	if c.Rating.Score != 4 || c.Rating.Comment != "" || !c.Rating.At.Equal(better.RatedAt) {
		t.Errorf("got %+v, want the later rating", c.Rating)
	}
}
