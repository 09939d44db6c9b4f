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

// Controls hands a chat to the agents. A chat that they already have stays as it is, and a repeat with the
// same eventID is the same change.
type Controls interface {
	HandOver(ctx context.Context, a event.Account, c chat.Chat, h chat.Handover, eventID string) (chat.Chat, error)
}

// byBot returns the handover of a [Result]: the bot is silent from then on until the agents hand the chat back.
func byBot(reason, note string) *chat.Handover {
	return &chat.Handover{By: chat.ByBot, Reason: reason, Note: note}
}

// handOver hands the chat of a message to the agents, after the replies have been published: a crash before
// it repeats them under the same ids, and a crash after it repeats the same event.
func (b *Bot) handOver(ctx context.Context, e event.VisitorMessageAccepted, h chat.Handover) error {
	c, err := b.cfg.Chats.Chat(ctx, e.ChatID)
	if err != nil {
		return fmt.Errorf("finding the chat to hand over: %w", err) // not stored yet: retried
	}
	if c.ChatUserID != e.ChatUserID || c.CompanyID != e.CompanyID {
		return apperr.New(apperr.Invalid, "FOREIGN_CHAT", "The chat belongs to another visitor")
	}
	if !c.Open(b.cfg.Now()) {
		return nil
	}
	if _, err := b.cfg.Controls.HandOver(ctx, accountOf(e), c, h, "handover-"+e.Message.ID); err != nil {
		return fmt.Errorf("handing the chat over: %w", err)
	}
	return nil
}

// parseHandover parses the member handover of a webhook's answer: true, or an object with a reason and a note
// for the agents. Absent, null and false mean no handover.
func (w *Webhook) parseHandover(value json.RawMessage) (*chat.Handover, error) {
	value = bytes.TrimSpace(value)
	switch {
	case len(value) == 0 || string(value) == "null" || string(value) == "false":
		return nil, nil
	case string(value) == "true":
		return byBot("", ""), nil
	}
	var input struct {
		Reason string `json:"reason"`
		Note   string `json:"note"`
	}
	if value[0] != '{' {
		return nil, w.wrongAnswer("has a handover that is neither a boolean nor an object", nil)
	}
	if err := json.Unmarshal(value, &input); err != nil {
		return nil, w.wrongAnswer("has a malformed handover", err)
	}
	handover := byBot(input.Reason, input.Note)
	if faults := handover.Check("handover"); len(faults) > 0 {
		return nil, w.wrongAnswer(fmt.Sprintf("is wrong in %s: %s", faults[0].Field, faults[0].Message), nil)
	}
	return handover, nil
}
