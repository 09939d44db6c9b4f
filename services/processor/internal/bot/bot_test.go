package bot

import (
	"context"
	"slices"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// published collects what a bot publishes.
type published []event.Reply

func (p *published) Publish(_ context.Context, _ event.Account, e event.Event) error {
	*p = append(*p, e.(event.Reply))
	return nil
}

type application chat.Application

func (a application) Application(context.Context, string) (chat.Application, error) {
	return chat.Application(a), nil
}

func TestRepliesComeAfterTheMessageAndInOrder(t *testing.T) {
	t.Parallel()
	asked := wrote(chat.Text, `{"text":"hello"}`)
	clocks := map[string]time.Time{
		"a later clock":  asked.Message.CreatedAt.Add(40 * time.Millisecond),
		"the same clock": asked.Message.CreatedAt,
		"a slow clock":   asked.Message.CreatedAt.Add(-time.Minute),
	}
	for name, now := range clocks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var replies published
			b := New(Config{
				Answerer:     NewDemo(""),
				Settings:     always(bots.Settings{Kind: bots.Demo}),
				Applications: application{BotName: "Nora"},
				Chats:        &controls{},
				Publisher:    &replies,
				Now:          func() time.Time { return now },
			})
			if err := b.VisitorMessage(t.Context(), asked); err != nil {
				t.Fatal(err)
			}
			if len(replies) != 2 {
				t.Fatalf("got %d replies, want 2", len(replies))
			}
			before := asked.Message
			for _, r := range replies {
				if r.Message.ID <= before.ID {
					t.Errorf("got %s, want it after %s", r.Message.ID, before.ID)
				}
				if r.Message.NameOfSender != "Nora" || !r.Message.IsFromSupport || r.ChatID != asked.ChatID || r.AppID != asked.AppID {
					t.Errorf("got %+v, want it from Nora and support into the same chat", r)
				}
				before = r.Message
			}
		})
	}
}

// controls lists, for each call of Chat, whether an agent has the chat; false after the end.
type controls []bool

func (c *controls) Chat(_ context.Context, id string) (chat.Chat, error) {
	found := chat.Chat{ID: id}
	if len(*c) > 0 {
		found.Control.Agent, *c = (*c)[0], (*c)[1:]
	}
	return found, nil
}

// answers counts its calls.
type answers int

func (a *answers) Answer(context.Context, event.VisitorMessageAccepted, Begin) (Result, error) {
	*a++
	return says(text("yes")), nil
}

func (a *answers) Forget(string) {}

func TestTheBotIsSilentWhileAnAgentHasTheChat(t *testing.T) {
	t.Parallel()
	asked := wrote(chat.Text, `{"text":"hello"}`)
	for name, test := range map[string]struct {
		agent           controls
		asked, answered int
	}{
		"bot":                  {controls{false, false}, 1, 1},
		"agent":                {controls{true}, 0, 0},
		"taken over meanwhile": {controls{false, true}, 1, 0},
	} {
		var replies published
		var answerer answers
		b := New(Config{
			Answerer:     &answerer,
			Settings:     always(bots.Settings{Kind: bots.Demo}),
			Applications: application{},
			Chats:        &test.agent,
			Publisher:    &replies,
			Now:          func() time.Time { return asked.Message.CreatedAt },
		})
		if err := b.VisitorMessage(t.Context(), asked); err != nil {
			t.Fatal(err)
		}
		if int(answerer) != test.asked || len(replies) != test.answered {
			t.Errorf("%s: got %d questions and %d answers, want %d and %d", name, answerer, len(replies), test.asked, test.answered)
		}
	}
}

// always returns the same settings for each application.
func always(s bots.Settings) Settings {
	return func(context.Context, string) (bots.Settings, error) { return s, nil }
}

// The visitor of a message that is given up gets the failure text, under one id however often that is
// repeated; not if an agent has the chat, the message is old, or an operator has replayed it.
func TestFailureText(t *testing.T) {
	t.Parallel()
	asked := wrote(chat.Text, `{"text":"hello"}`)
	for name, test := range map[string]struct {
		text  string
		agent controls
		age   time.Duration
		again bool
		want  int
	}{
		"given up":           {"Sorry.", controls{}, 0, false, 1},
		"no text":            {"", controls{}, 0, false, 0},
		"an agent has it":    {"Sorry.", controls{true, true}, 0, false, 0},
		"old":                {"Sorry.", controls{}, chat.Window + time.Second, false, 0},
		"replayed in vain":   {"Sorry.", controls{}, 0, true, 0},
		"at the last moment": {"Sorry.", controls{}, chat.Window, false, 1},
	} {
		var replies published
		b := New(Config{
			Answerer:     NewDemo(""),
			Settings:     always(bots.Settings{Kind: bots.Demo, FailureText: test.text}),
			Applications: application{BotName: "Nora"},
			Chats:        &test.agent,
			Publisher:    &replies,
			Now:          func() time.Time { return asked.Message.CreatedAt.Add(test.age) },
		})
		for range 2 { // as after a crash
			if err := b.GaveUp(t.Context(), asked, test.again); err != nil {
				t.Fatal(err)
			}
		}
		if len(replies) != 2*test.want {
			t.Errorf("%s: got %d replies, want %d", name, len(replies), 2*test.want)
			continue
		}
		if test.want > 0 && (replies[0].Message.ID != replies[1].Message.ID || string(replies[0].Message.Data) != `{"text":"Sorry."}` || replies[0].Message.NameOfSender != "Nora") {
			t.Errorf("%s: got %+v, want the text from Nora under one id", name, replies)
		}
		if at := asked.Message.CreatedAt.Add(test.age); test.want > 0 && !replies[0].Message.CreatedAt.Equal(at) {
			t.Errorf("%s: got the time %s, want now, %s, or the history shows it after the next answer", name, replies[0].Message.CreatedAt, at)
		}
	}
}

// elsewhere has the ids of what another process has published.
type elsewhere []string

func (p elsewhere) Published(_ context.Context, _, _, id string, _ time.Time) (bool, error) {
	return slices.Contains(p, id), nil
}

// A process that stood still goes on with what it had begun, while another one has taken its messages over. The visitor
// gets an answer or the failure text, not both.
func TestAnAnswerAndAFailureTextExcludeEachOther(t *testing.T) {
	t.Parallel()
	asked := wrote(chat.Text, `{"text":"thanks"}`)
	givenUp := elsewhere{chat.AnswerID(asked.Message.ID, failureIndex)}
	answered := elsewhere{chat.AnswerID(asked.Message.ID, 0)}
	answer := func(b *Bot) error { return b.VisitorMessage(t.Context(), asked) }
	replay := func(b *Bot) error { return b.Replay(t.Context(), asked) }
	giveUp := func(b *Bot) error { return b.GaveUp(t.Context(), asked, false) }
	for name, test := range map[string]struct {
		others elsewhere
		age    time.Duration
		handle func(b *Bot) error
		want   int // messages
	}{
		"answered":              {nil, takeover, answer, 1},
		"given up elsewhere":    {givenUp, takeover, answer, 0},
		"too early for that":    {givenUp, 0, answer, 1},
		"replayed":              {givenUp, time.Hour, replay, 1},
		"given up":              {nil, takeover, giveUp, 1},
		"given up, twice":       {givenUp, takeover, giveUp, 1},
		"answered elsewhere":    {answered, takeover, giveUp, 0},
		"answered a second ago": {answered, time.Second, giveUp, 1},
	} {
		var replies published
		b := New(Config{
			Answerer:     NewDemo(""),
			Settings:     always(bots.Settings{Kind: bots.Demo, FailureText: "Sorry."}),
			Applications: application{BotName: "Nora"},
			Chats:        &controls{},
			Publisher:    &replies,
			Replies:      test.others,
			Now:          func() time.Time { return asked.Message.CreatedAt.Add(test.age) },
		})
		if err := test.handle(b); err != nil || len(replies) != test.want {
			t.Errorf("%s: got %d messages and %v, want %d", name, len(replies), err, test.want)
		}
	}
}

// stingy refuses events for which a bot pays.
type stingy struct{ published }

func (s *stingy) Publish(ctx context.Context, a event.Account, e event.Event) error {
	if a.Payer == event.PayerBot {
		return bus.Permanent(apperr.ByteBudgetExceeded.New())
	}
	return s.published.Publish(ctx, a, e)
}

// A visitor whose budgets are used up gets the failure text for nothing, but not for each message.
func TestFreeFailureTextsAreBounded(t *testing.T) {
	t.Parallel()
	var replies stingy
	now := time.Now()
	b := New(Config{
		Answerer: NewDemo(""), Applications: application{BotName: "Nora"}, Chats: &controls{}, Publisher: &replies,
		Settings: always(bots.Settings{Kind: bots.Demo, FailureText: "Sorry."}), Now: func() time.Time { return now },
	})
	for _, want := range []int{1, 1, 2} {
		if err := b.GaveUp(t.Context(), newMessage("x"), false); err != nil {
			t.Fatal(err)
		}
		if len(replies.published) != want {
			t.Errorf("got %d failure texts, want %d", len(replies.published), want)
		}
		now = now.Add(freeApologies.Per / 2)
	}
}

func TestOldMessagesAreSkipped(t *testing.T) {
	t.Parallel()
	asked := wrote(chat.Text, `{"text":"hello"}`)
	for age, want := range map[time.Duration]int{chat.Window: 2, chat.Window + time.Millisecond: 0} {
		var replies published
		b := New(Config{
			Answerer:     NewDemo(""),
			Settings:     always(bots.Settings{Kind: bots.Demo}),
			Applications: application{},
			Chats:        &controls{},
			Publisher:    &replies,
			Now:          func() time.Time { return asked.Message.CreatedAt.Add(age) },
		})
		if err := b.VisitorMessage(t.Context(), asked); err != nil || len(replies) != want {
			t.Errorf("after %s got %d replies and %v, want %d", age, len(replies), err, want)
		}
	}
}
