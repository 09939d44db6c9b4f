package bot

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
)

// thinking answers after a delay.
type thinking struct{ time.Duration }

func (a thinking) Answer(ctx context.Context, _ event.VisitorMessageAccepted, _ Begin) ([]Answer, error) {
	select {
	case <-time.After(a.Duration):
		return []Answer{text("here")}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
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
			b := New(thinking{test.takes}, application{BotName: "Nora"}, &controls{}, nil, &replies, noParts{}, "", time.Now).WithTyping(func(s event.Signal) error {
				mu.Lock()
				defer mu.Unlock()
				signals = append(signals, s.(event.Typing))
				return nil
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

// When an answerer panics, the bot stops typing. The bus recovers from the panic.
func TestTypingEndsWithAPanic(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // a bubble must be empty at its end
		var replies published
		asked := wrote(chat.Text, `{"text":"hello"}`)
		asked.Message.CreatedAt = time.Now()
		b := New(panics{}, application{BotName: "Nora"}, &controls{}, nil, &replies, noParts{}, "", time.Now).WithTyping(func(event.Signal) error { return nil })
		defer func() {
			if recover() == nil {
				t.Error("got no panic")
			}
		}()
		_ = b.VisitorMessage(t.Context(), asked)
	})
}

type panics struct{}

func (panics) Answer(context.Context, event.VisitorMessageAccepted, Begin) ([]Answer, error) {
	panic("a fault")
}

func (panics) Forget(string) {}
