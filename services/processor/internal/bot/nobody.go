package bot

import (
	"context"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
)

// Nobody answers for an installation without a bot: it hands each chat to the agents. As a bot it also sees
// the chats that agents hand back, and the visitor's next message returns them to the queue.
type Nobody struct{}

// Answer implements [Answerer].
func (Nobody) Answer(context.Context, event.VisitorMessageAccepted, Begin) (Result, error) {
	return Result{Handover: &chat.Handover{By: chat.ByNoBot}}, nil
}

// Forget implements [Answerer].
func (Nobody) Forget(string) {}
