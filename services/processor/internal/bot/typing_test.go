package bot

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
)

// thinking answers after a delay.
type thinking struct{ time.Duration }

func (a thinking) Answer(ctx context.Context, _ event.VisitorMessageAccepted, _ Begin) (Result, error) {
	select {
	case <-time.After(a.Duration):
		return says(text("here")), nil
	case <-ctx.Done():
		return Result{}, ctx.Err()
	}
}

func (thinking) Forget(string) {}

// A slow bot signals typing until it answers; one that answers at once does not.
func TestBotTypes(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		takes time.Duration
		want  int
	}{{0, 0}, {400 * time.Millisecond, 0}, {time.Second, 1}, {10 * time.Second, 3}} {
		synctest.Test(t, func(t *testing.T) {
			var mu sync.Mutex
			var signals []event.Typing
			var replies published
			asked := wrote(chat.Text, `{"text":"hello"}`)
			asked.Message.CreatedAt = time.Now()
			b := New(Config{
				Answerer:     thinking{test.takes},
				Settings:     always(bots.Settings{Kind: bots.Demo}),
				Applications: application{BotName: "Nora"},
				Chats:        &controls{},
				Publisher:    &replies,
				Now:          time.Now,
				Signal: func(s event.Signal) error {
					mu.Lock()
					defer mu.Unlock()
					signals = append(signals, s.(event.Typing))
					return nil
				},
			})
			if err := b.VisitorMessage(t.Context(), asked); err != nil {
				t.Fatal(err)
			}
			if len(signals) != test.want || len(replies) != 1 {
				t.Fatalf("an answer after %v: got %d signals and %d replies, want %d and 1", test.takes, len(signals), len(replies), test.want)
			}
			for i, s := range signals {
				if s.Side != subject.SideSupport || s.Name != "Nora" || s.ChatUserID != asked.ChatUserID || s.CompanyID != asked.CompanyID {
					t.Errorf("got %+v, want the bot typing to the visitor", s)
				}
				if i > 0 && s.At.Sub(signals[i-1].At) >= event.TypingTTL {
					t.Errorf("got %v between two, want less than one lasts", s.At.Sub(signals[i-1].At))
				}
				if replies[0].Message.CreatedAt.Before(s.At) {
					t.Error("got a signal after the message, want the message to end it")
				}
			}
		})
	}
}

// failing fails each try at once until a time.
type failing struct {
	until time.Time
	err   error
}

func (f failing) Answer(context.Context, event.VisitorMessageAccepted, Begin) (Result, error) {
	if time.Now().Before(f.until) {
		return Result{}, f.err
	}
	return says(text("here")), nil
}

func (failing) Forget(string) {}

// takenOver is a chat that an agent takes at a time.
type takenOver struct{ at time.Time }

func (c takenOver) Chat(_ context.Context, id string) (chat.Chat, error) {
	return chat.Chat{ID: id, Control: chat.Control{Agent: !c.at.IsZero() && !time.Now().Before(c.at)}}, nil
}

// The indicator lasts while a message is retried. It ends with the answer, the failure, an agent, or retries
// that do not come.
func TestTypingLastsOverRetries(t *testing.T) {
	t.Parallel()
	const step = time.Second // between two tries
	down := apperr.New(apperr.Unavailable, "WEBHOOK_AWAY", "The webhook answered 503")
	paused := &apperr.Error{Code: apperr.TooMany, Reason: "WEBHOOK_PAUSED", RetryAfter: 30 * time.Second}
	for name, test := range map[string]struct {
		err           error
		fails         time.Duration // how long the tries fail
		tries, gaveUp time.Duration // how long it is tried, and when it is given up; zero: never
		agent         time.Duration // when an agent takes the chat; zero: never
		last          time.Duration // the last signal comes within the typingRepeat before
	}{
		"the answer":             {err: down, fails: 30 * time.Second, tries: time.Minute, last: 30 * time.Second},
		"the failure":            {err: down, fails: time.Hour, tries: 20 * time.Second, gaveUp: 20 * time.Second, last: 20 * time.Second},
		"an agent":               {err: down, fails: time.Hour, tries: time.Minute, agent: 15 * time.Second, last: 15 * time.Second},
		"an agent, in a pause":   {err: paused, fails: time.Hour, tries: step, agent: 15 * time.Second, last: 15 * time.Second},
		"no retry":               {err: down, fails: time.Hour, tries: step, last: retryWait},
		"no retry after a pause": {err: paused, fails: time.Hour, tries: step, last: 30*time.Second + retryWait},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var mu sync.Mutex
				var signals []time.Duration
				var replies published
				began := time.Now()
				asked := wrote(chat.Text, `{"text":"hello"}`)
				asked.Message.CreatedAt = began
				var taken takenOver
				if test.agent > 0 {
					taken.at = began.Add(test.agent)
				}
				b := New(Config{
					Answerer:     failing{began.Add(test.fails), test.err},
					Settings:     always(bots.Settings{Kind: bots.Demo}),
					Applications: application{BotName: "Nora"},
					Chats:        taken,
					Publisher:    &replies,
					Now:          time.Now,
					Signal: func(event.Signal) error {
						mu.Lock()
						defer mu.Unlock()
						signals = append(signals, time.Since(began))
						return nil
					},
				})
				defer b.Close()
				for time.Since(began) < test.tries && b.VisitorMessage(t.Context(), asked) != nil {
					time.Sleep(step)
				}
				if test.gaveUp > 0 {
					if err := b.GaveUp(t.Context(), asked, false); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(2 * time.Minute)
				mu.Lock()
				defer mu.Unlock()
				at := time.Duration(0)
				for _, s := range signals {
					if s-at >= event.TypingTTL {
						t.Errorf("got no signal from %v to %v, want the indicator all the time", at, s)
					}
					at = s
				}
				if at > test.last || at <= test.last-typingRepeat {
					t.Errorf("got the last signal after %v, want it at most %v before %v", at, typingRepeat, test.last)
				}
			})
		})
	}
}

// When an answerer panics, the bot stops typing. The bus recovers from the panic.
func TestTypingEndsWithAPanic(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // a bubble must be empty at its end
		var replies published
		asked := wrote(chat.Text, `{"text":"hello"}`)
		asked.Message.CreatedAt = time.Now()
		b := New(Config{
			Answerer:     panics{},
			Settings:     always(bots.Settings{Kind: bots.Demo}),
			Applications: application{BotName: "Nora"},
			Chats:        &controls{},
			Publisher:    &replies,
			Now:          time.Now,
			Signal:       func(event.Signal) error { return nil },
		})
		defer func() {
			if recover() == nil {
				t.Error("got no panic")
			}
		}()
		_ = b.VisitorMessage(t.Context(), asked)
	})
}

type panics struct{}

func (panics) Answer(context.Context, event.VisitorMessageAccepted, Begin) (Result, error) {
	panic("a fault")
}

func (panics) Forget(string) {}
