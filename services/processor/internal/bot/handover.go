package bot

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
)

// Controls gives a chat to the agents. A chat that they have already stays as it is, and a repeat with the same eventID is the same change.
type Controls interface {
	HandOver(ctx context.Context, c chat.Chat, h chat.Handover, eventID string) (chat.Chat, error)
}

// HandOver is the answer that gives the chat to the agents: after it the bot is silent until they hand the chat back. It is no message, and
// the last of the answers.
func HandOver(reason, note string) Answer {
	return Answer{Handover: &chat.Handover{By: chat.ByBot, Reason: reason, Note: note}}
}

// split returns the messages of answers, and the handover if there is one.
func split(answers []Answer) (messages []Answer, h *chat.Handover) {
	for _, a := range answers {
		if a.Handover != nil {
			h = a.Handover
			continue
		}
		messages = append(messages, a)
	}
	return messages, h
}

// handOver gives the chat of a message to the agents. It comes after the replies have been published: a crash before it repeats them under the
// same ids, and a crash after it repeats the same event.
func (b *Bot) handOver(ctx context.Context, e event.VisitorMessageAccepted, h chat.Handover) error {
	c, err := b.chats.Chat(ctx, e.ChatID)
	if err != nil {
		return fmt.Errorf("finding the chat to hand over: %w", err) // not stored yet: tried again
	}
	if c.ChatUserID != e.ChatUserID || c.CompanyID != e.CompanyID {
		return apperr.New(apperr.Invalid, "FOREIGN_CHAT", "The chat belongs to somebody else")
	}
	if !c.Open(b.now()) {
		return nil
	}
	if _, err := b.controls.HandOver(ctx, c, h, "handover-"+e.Message.ID); err != nil {
		return fmt.Errorf("handing the chat over: %w", err)
	}
	return nil
}

// parseHandover reads the member handover of a webhook's answer: true, or an object with a reason and a note for the agents. Absent, null
// and false hand nothing over.
func (w *Webhook) parseHandover(value json.RawMessage) ([]Answer, error) {
	value = bytes.TrimSpace(value)
	switch {
	case len(value) == 0 || string(value) == "null" || string(value) == "false":
		return nil, nil
	case string(value) == "true":
		return []Answer{HandOver("", "")}, nil
	}
	var said struct {
		Reason string `json:"reason"`
		Note   string `json:"note"`
	}
	if value[0] != '{' {
		return nil, w.wrongAnswer("has a handover that is neither a boolean nor an object", nil)
	}
	if err := json.Unmarshal(value, &said); err != nil {
		return nil, w.wrongAnswer("has a malformed handover", err)
	}
	answer := HandOver(said.Reason, said.Note)
	if faults := answer.Handover.Check("handover"); len(faults) > 0 {
		return nil, w.wrongAnswer(fmt.Sprintf("is wrong in %s: %s", faults[0].Field, faults[0].Message), nil)
	}
	return []Answer{answer}, nil
}
