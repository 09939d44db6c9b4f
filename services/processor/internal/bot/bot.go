// Package bot answers visitors.
//
// bot.go publishes answers as replies. demo.go is the built-in bot, webhook.go calls the operator's server,
// llm.go a language model (moderation.go first checks its text with another server). caller.go calls either
// server, and exchange.go keeps the state of a message, excerpt.go repeats what a server said with a refusal;
// eventstream.go reads streamed answers, and parts.go publishes their parts. handover.go hands the chat to
// the agents if an answer requests it. typing.go shows that the bot works. picture.go is the demo bot's picture.
//
// The id of a reply is derived from the answered message and the index of the answer. A redelivery publishes
// the same events, the stream drops them, and the history keeps the first.
package bot

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/proto-events/subject"
)

// Answer is one message of a bot, before it has an id, a time and a sender.
type Answer struct {
	Type         chat.MessageType `json:"type"`
	Data         json.RawMessage  `json:"data"`
	NameOfSender string           `json:"nameOfSender"` // empty: the application's botName
	Handover     *chat.Handover   `json:"-"`            // not nil: no message, see [HandOver]

	at      time.Time   // start of streaming; zero: not streamed
	written *PartWriter // streams it; nil: not streamed
}

// Answerer answers visitors' messages. An empty list is a valid answer.
type Answerer interface {
	// Answer may be called again for a message: after an error, and for a redelivery, for which it must
	// return the same answers. begin streams the first answer, at most one per message.
	Answer(ctx context.Context, e event.VisitorMessageAccepted, begin Begin) ([]Answer, error)
	// Forget drops the state of the message with that id.
	Forget(messageID string)
}

// Applications finds the application of a bot.
type Applications interface {
	Application(ctx context.Context, id string) (chat.Application, error)
}

// Chats returns the current state of a chat.
type Chats interface {
	Chat(ctx context.Context, id string) (chat.Chat, error)
}

// PartLog returns the last part published for a visitor; NotFound if there is none.
type PartLog interface {
	LastPart(ctx context.Context, appID, chatUserID string) (event.MessagePart, error)
}

// Bot publishes an answerer's answers as replies.
type Bot struct {
	answerer     Answerer
	applications Applications
	chats        Chats
	controls     Controls
	publisher    event.Publisher
	parts        PartLog
	failureText  string
	now          func() time.Time
	writers      writers
	signal       func(event.Signal) error // nil: no typing indicator
	typists      typists
}

// New returns a bot. failureText is the reply to a message that is given up; empty: none. now is the clock.
func New(
	answerer Answerer,
	applications Applications,
	chats Chats,
	controls Controls,
	publisher event.Publisher,
	parts PartLog,
	failureText string,
	now func() time.Time,
) *Bot {
	return &Bot{
		answerer:     answerer,
		applications: applications,
		chats:        chats,
		controls:     controls,
		publisher:    publisher,
		parts:        parts,
		failureText:  failureText,
		now:          now,
	}
}

// VisitorMessage answers one message. It skips messages that are older than the conversation window, as after
// a long outage or in the backlog of a disabled bot. While an agent has the chat the bot is silent: it checks
// before it asks for answers, which may take long, and again before it publishes them.
func (b *Bot) VisitorMessage(ctx context.Context, e event.VisitorMessageAccepted) (err error) {
	defer func() { b.typists.tried(e.Message.ID, err) }() // also if the answerer panics: the bus recovers
	err = b.answer(ctx, e)
	if err == nil {
		b.answerer.Forget(e.Message.ID)
	}
	return err
}

// failureIndex gives the failure text an id that no answer has.
const failureIndex = maxAnswers

// GaveUp sends the visitor the failure text; a repeated call sends nothing new. again: the message was given
// up before and an operator has replayed it, so the visitor has the text. Nothing is sent while an agent has
// the chat, or for an old message.
func (b *Bot) GaveUp(ctx context.Context, e event.VisitorMessageAccepted, again bool) error {
	b.typists.stop(e.Message.ID)
	b.answerer.Forget(e.Message.ID)
	if again || b.failureText == "" || b.now().Sub(e.Message.CreatedAt) > chat.Window {
		return nil
	}
	if silent, err := b.agentInControl(ctx, e.ChatID); err != nil || silent {
		return err
	}
	application, err := b.applications.Application(ctx, e.AppID)
	if apperr.Is(err, apperr.NotFound) {
		return nil // no widget to show it
	}
	if err != nil {
		return fmt.Errorf("finding the application: %w", err)
	}
	sorry := reply(e, failureIndex, text(b.failureText), application.BotName, b.answeredAt(e.Message.CreatedAt))
	if err := b.publisher.Publish(ctx, event.Derived(), sorry); err != nil { // a budget may be why the bot gave up
		return fmt.Errorf("publishing the failure text: %w", err)
	}
	return nil
}

func (b *Bot) answer(ctx context.Context, e event.VisitorMessageAccepted) error {
	if b.now().Sub(e.Message.CreatedAt) > chat.Window {
		return nil
	}
	if silent, err := b.agentInControl(ctx, e.ChatID); err != nil || silent {
		return err
	}
	application, err := b.applications.Application(ctx, e.AppID)
	if err != nil {
		return fmt.Errorf("finding the application: %w", err)
	}
	b.typing(e, application.BotName)
	answers, err := b.answerer.Answer(ctx, e, b.begin(e, application.BotName))
	if err != nil || len(answers) == 0 {
		return err
	}
	b.typists.stop(e.Message.ID) // before the message, which ends the indicator in the browser
	written := answers[0].written
	if written == nil { // otherwise the visitor has read it
		if silent, err := b.agentInControl(ctx, e.ChatID); err != nil || silent {
			return err
		}
	}
	answers, handover := split(answers)
	at := b.answeredAt(e.Message.CreatedAt)
	for i, answer := range answers {
		if err := b.publisher.Publish(ctx, accountOf(e), reply(e, i, answer, application.BotName, at)); err != nil {
			return fmt.Errorf("publishing answer %d: %w", i+1, err)
		}
	}
	if written != nil {
		written.Done()
	}
	if handover != nil {
		return b.handOver(ctx, e, *handover)
	}
	return nil
}

// accountOf returns the account of the answers to a message.
func accountOf(e event.VisitorMessageAccepted) event.Account {
	return event.ForBot(e.CompanyID, e.AppID, e.ChatUserID)
}

// begin streams the first answer to a message, instead of the typing indicator. Its parts continue the
// numbering of a process that has died.
func (b *Bot) begin(e event.VisitorMessageAccepted, sender string) Begin {
	return func(ctx context.Context, stop func()) (*PartWriter, error) {
		if silent, err := b.agentInControl(ctx, e.ChatID); err != nil || silent {
			return nil, err
		}
		b.typists.stop(e.Message.ID)
		first := event.MessagePart{
			CompanyID: e.CompanyID, AppID: e.AppID, ChatUserID: e.ChatUserID, ChatID: e.ChatID,
			MessageID: chat.AnswerID(e.Message.ID, 0), CreatedAt: b.answeredAt(e.Message.CreatedAt), NameOfSender: sender,
		}
		n := int32(0)
		if last, err := b.parts.LastPart(ctx, e.AppID, e.ChatUserID); err == nil && last.MessageID == first.MessageID {
			n = last.N + 1
		}
		release := b.writers.add(subject.Stop(e.AppID, e.ChatUserID, first.MessageID), stop)
		return newPartWriter(b.publisher, b.now, first, n, release), nil
	}
}

// agentInControl reports whether an agent has the chat. A chat that is not stored yet belongs to the bot.
func (b *Bot) agentInControl(ctx context.Context, chatID string) (bool, error) {
	c, err := b.chats.Chat(ctx, chatID)
	if apperr.Is(err, apperr.NotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("finding the chat: %w", err)
	}
	return c.Control.Agent, nil
}

// answeredAt returns the current time, but never one before the question: clocks of two machines differ, and
// the history is sorted by time. Messages of one millisecond are sorted by id (see [chat.AnswerID]).
func (b *Bot) answeredAt(asked time.Time) time.Time {
	if now := b.now().UTC().Truncate(time.Millisecond); now.After(asked) {
		return now
	}
	return asked
}

// reply returns answer number i.
func reply(e event.VisitorMessageAccepted, i int, a Answer, sender string, at time.Time) event.Reply {
	if !a.at.IsZero() {
		at = a.at
	}
	return event.Reply{
		CompanyID: e.CompanyID, AppID: e.AppID, ChatUserID: e.ChatUserID, ChatID: e.ChatID,
		Message: chat.Message{
			ID:            chat.AnswerID(e.Message.ID, i),
			CreatedAt:     at,
			Type:          a.Type,
			Data:          a.Data,
			NameOfSender:  cmp.Or(a.NameOfSender, sender),
			IsFromSupport: true,
		},
	}
}
