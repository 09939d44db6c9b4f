// Package bot answers visitors.
//
// bot.go publishes answers as replies. router.go passes each message to what its application's settings name: demo.go
// is the built-in bot, webhook.go calls a server, llm.go a language model (moderation.go first checks its text with
// another server). answering.go follows an answer for which the model calls tools: toolbox.go has these, action.go what the
// visitor is asked first. caller.go calls either of them, and exchange.go keeps the state of a message, excerpt.go repeats
// what a server said with a refusal; eventstream.go reads streamed answers, and parts.go publishes their parts.
// handover.go hands the chat to the agents if the result requests it. typing.go shows that the bot works. picture.go
// is the demo bot's picture.
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
	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/config"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/ratelimit"
	"github.com/parley-chat/parley/proto-events/subject"
)

// Answer is one message of a bot, before it has an id, a time and a sender.
type Answer struct {
	Type         chat.MessageType `json:"type"`
	Data         json.RawMessage  `json:"data"`
	NameOfSender string           `json:"nameOfSender"` // empty: the application's botName

	number int // of the id, if it is not the place in the result; 0: it is
}

// Result is what an answerer does about a visitor's message. The zero value says nothing.
type Result struct {
	Messages []Answer
	Handover *chat.Handover // hands the chat to the agents, after the messages; nil: the bot keeps it

	stream    *PartWriter     // has streamed the first message; nil: nothing was streamed
	citations []bots.Citation // of the first message, for the log of calls
}

// says returns the result of messages without a handover.
func says(messages ...Answer) Result { return Result{Messages: messages} }

// Answerer answers visitors' messages.
type Answerer interface {
	// Answer may be called again for a message: after an error, and for a redelivery, for which it must
	// return the same result. begin streams the first message of the result; it may be called once.
	Answer(ctx context.Context, e event.VisitorMessageAccepted, begin Begin) (Result, error)
	// Forget drops the state of the message with that id.
	Forget(messageID string)
}

// Applications finds the application of a bot.
type Applications interface {
	Application(ctx context.Context, id string) (chat.Application, error)
}

// Settings finds the settings in force for an application. Their kind is not [bots.Default], and an empty failure text
// is none. [Router.Settings] is one.
type Settings func(ctx context.Context, appID string) (bots.Settings, error)

// Chats returns the current state of a chat.
type Chats interface {
	Chat(ctx context.Context, id string) (chat.Chat, error)
}

// ReplyLog finds what was published for visitors.
type ReplyLog interface {
	// Published reports whether the stream has a reply to a visitor with that id, published since a time.
	Published(ctx context.Context, appID, chatUserID, id string, since time.Time) (bool, error)
}

// Config holds the dependencies of a [Bot].
type Config struct {
	Answerer     Answerer
	Settings     Settings
	Applications Applications
	Chats        Chats
	Controls     Controls
	Publisher    event.Publisher
	Replies      ReplyLog                 // of all processes; nil: there is no other process
	Signal       func(event.Signal) error // publishes the typing indicator; nil: none
	Now          func() time.Time
}

// Bot publishes an answerer's answers as replies. It is safe for concurrent use.
type Bot struct {
	cfg     Config
	writers writers // of the messages that are being streamed
	typists typists // of the messages that are being answered

	apologies *ratelimit.Limiter // failure texts that nobody pays for
}

// freeApologies is how often a visitor gets the failure text although nobody pays for it.
var freeApologies = config.Rate{Count: 1, Per: 10 * time.Minute}

// New returns a bot.
func New(cfg Config) *Bot {
	return &Bot{
		cfg:       cfg,
		apologies: ratelimit.New(ratelimit.Config{Name: "bot-failure-text", Rate: freeApologies, Now: cfg.Now}),
	}
}

// VisitorMessage answers one message. It skips messages that are older than the conversation window, as after
// a long outage or in the backlog of a disabled bot. While an agent has the chat the bot is silent: it checks
// before it asks for answers, which may take long, and again before it publishes them.
func (b *Bot) VisitorMessage(ctx context.Context, e event.VisitorMessageAccepted) error {
	return b.handle(ctx, e, false)
}

// Replay answers a message that was given up, and that an operator has replayed: also one with a failure text.
func (b *Bot) Replay(ctx context.Context, e event.VisitorMessageAccepted) error {
	return b.handle(ctx, e, true)
}

func (b *Bot) handle(ctx context.Context, e event.VisitorMessageAccepted, replayed bool) (err error) {
	defer func() { b.typists.tried(e.Message.ID, err) }() // also if the answerer panics: the bus recovers
	err = b.answer(ctx, e, replayed)
	if err == nil {
		b.cfg.Answerer.Forget(e.Message.ID)
	}
	return err
}

// failureIndex gives the failure text an id that no answer has.
const failureIndex = maxAnswers

// takeover is the age from which another process may have answered a message or given it up: the time after which a
// silent process counts as gone (memberTimeout in pkg/bus).
const takeover = 2 * time.Second

// isPublished reports whether another process has published an answer to a message, with one of the numbers. The stream drops the same answer from two processes, but not an answer of one beside the failure text of
// another: a process that stood still goes on with what it had begun. The store may not have the reply yet.
func (b *Bot) isPublished(ctx context.Context, e event.VisitorMessageAccepted, numbers ...int) (bool, error) {
	if b.cfg.Replies == nil || b.cfg.Now().Sub(e.Message.CreatedAt) < takeover {
		return false, nil
	}
	for _, number := range numbers {
		id := chat.AnswerID(e.Message.ID, number)
		found, err := b.cfg.Replies.Published(ctx, e.AppID, e.ChatUserID, id, e.Message.CreatedAt)
		if err != nil {
			return false, fmt.Errorf("finding what another process has answered: %w", err)
		}
		if found {
			return true, nil
		}
	}
	return false, nil
}

// GaveUp sends the visitor the failure text, and hands the chat to the agents if the settings say so; a repeated call
// sends nothing new. again: the message was given up before and an operator has replayed it, so the visitor has the
// text. Nothing is done while an agent has the chat, for an old message, or if another process has answered.
func (b *Bot) GaveUp(ctx context.Context, e event.VisitorMessageAccepted, again bool) error {
	b.typists.stop(e.Message.ID)
	b.cfg.Answerer.Forget(e.Message.ID)
	if again || b.tooOld(e) {
		return nil
	}
	settings, err := b.cfg.Settings(ctx, e.AppID)
	if err != nil || settings.Kind == bots.None {
		return err
	}
	if silent, err := b.agentInControl(ctx, e.ChatID); err != nil || silent {
		return err
	}
	if answered, err := b.isPublished(ctx, e, 0, questionIndex); err != nil || answered {
		return err
	}
	if settings.FailureText != "" {
		if err := b.sayFailed(ctx, e, settings.FailureText); err != nil {
			return err
		}
	}
	if settings.Handover.OnFailure {
		return b.handOver(ctx, e, *byBot("The bot has not answered", ""))
	}
	return nil
}

// sayFailed sends the visitor the failure text.
func (b *Bot) sayFailed(ctx context.Context, e event.VisitorMessageAccepted, failureText string) error {
	application, err := b.cfg.Applications.Application(ctx, e.AppID)
	if apperr.Is(err, apperr.NotFound) {
		return nil // no widget to show it
	}
	if err != nil {
		return fmt.Errorf("finding the application: %w", err)
	}
	sorry := reply(e, failureIndex, text(failureText), application.BotName, b.cfg.Now().UTC())
	if err := b.apologize(ctx, e, sorry); err != nil {
		return fmt.Errorf("publishing the failure text: %w", err)
	}
	return nil
}

// apologize publishes the failure text. An exhausted budget may be why the bot gave up: then a visitor has it for
// nothing once in [freeApologies], because a free text for each message would fill REPLIES for all.
func (b *Bot) apologize(ctx context.Context, e event.VisitorMessageAccepted, sorry event.Reply) error {
	err := b.cfg.Publisher.Publish(ctx, accountOf(e), sorry)
	refused := apperr.Is(err, apperr.TooMany) || apperr.ReasonOf(err) == apperr.StreamFull.Reason
	if !refused {
		return err
	}
	if !b.apologies.Take(ctx, e.ChatUserID).Allowed {
		return nil
	}
	err = b.cfg.Publisher.Publish(ctx, event.Derived(), sorry)
	if err != nil {
		b.apologies.Return(e.ChatUserID) // the bus calls GaveUp again
	}
	return err
}

func (b *Bot) answer(ctx context.Context, e event.VisitorMessageAccepted, replayed bool) error {
	if b.tooOld(e) {
		return nil
	}
	if silent, err := b.agentInControl(ctx, e.ChatID); err != nil || silent {
		return err
	}
	application, err := b.cfg.Applications.Application(ctx, e.AppID)
	if err != nil {
		return fmt.Errorf("finding the application: %w", err)
	}
	settings, err := b.cfg.Settings(ctx, e.AppID)
	if err != nil {
		return err
	}
	result, err := b.result(ctx, e, settings, application.BotName)
	if err != nil || len(result.Messages) == 0 && result.Handover == nil {
		return err
	}
	b.typists.stop(e.Message.ID) // before the message, which ends the indicator in the browser
	if result.stream == nil {    // otherwise the visitor has read it
		if silent, err := b.agentInControl(ctx, e.ChatID); err != nil || silent {
			return err
		}
	}
	if !replayed {
		if givenUp, err := b.isPublished(ctx, e, failureIndex); err != nil || givenUp {
			return b.withdraw(result, err)
		}
	}
	if err := b.publish(ctx, e, result, application.BotName); err != nil {
		return err
	}
	if result.Handover != nil {
		return b.handOver(ctx, e, *result.Handover)
	}
	return nil
}

// result asks the answerer, unless the visitor's text requests the agents.
func (b *Bot) result(
	ctx context.Context, e event.VisitorMessageAccepted, s bots.Settings, sender string,
) (Result, error) {
	if s.Kind != bots.None { // agents answer: there is nothing to indicate
		if s.Handover.Requests(chat.TextOf(e.Message.Data)) {
			return Result{Handover: byBot("The visitor has asked for an agent", "")}, nil
		}
		b.typing(e, sender)
	}
	return b.cfg.Answerer.Answer(ctx, e, b.begin(e, sender))
}

// publish publishes the messages of a result as replies.
func (b *Bot) publish(ctx context.Context, e event.VisitorMessageAccepted, result Result, sender string) error {
	now := b.cfg.Now().UTC()
	for i, message := range result.Messages {
		if err := b.cfg.Publisher.Publish(ctx, accountOf(e), reply(e, i, message, sender, now)); err != nil {
			return fmt.Errorf("publishing answer %d: %w", i+1, err)
		}
	}
	if result.stream != nil {
		result.stream.Done()
	}
	return nil
}

// withdraw ends what the visitor has read of a result that is not published; an error lets it be tried again.
func (b *Bot) withdraw(result Result, err error) error {
	if err == nil && result.stream != nil {
		result.stream.Done()
	}
	return err
}

// tooOld reports whether a message is older than the conversation window.
func (b *Bot) tooOld(e event.VisitorMessageAccepted) bool {
	return b.cfg.Now().Sub(e.Message.CreatedAt) > chat.Window
}

// accountOf returns the account of the answers to a message.
func accountOf(e event.VisitorMessageAccepted) event.Account {
	return event.ForBot(e.CompanyID, e.AppID, e.ChatUserID)
}

// begin streams the first answer to a message, instead of the typing indicator.
func (b *Bot) begin(e event.VisitorMessageAccepted, sender string) Begin {
	return func(ctx context.Context, format chat.Format, stop func()) (*PartWriter, error) {
		if silent, err := b.agentInControl(ctx, e.ChatID); err != nil || silent {
			return nil, err
		}
		b.typists.stop(e.Message.ID)
		answered, err := b.isPublished(ctx, e, 0)
		if err != nil {
			return nil, err
		}
		to := b.cfg.Publisher
		if answered {
			to = discard{} // NATS has lost that the message was handled; the visitor has the answer
		}
		first := event.MessagePart{
			CompanyID: e.CompanyID, AppID: e.AppID, ChatUserID: e.ChatUserID, ChatID: e.ChatID,
			MessageID:    chat.AnswerID(e.Message.ID, 0),
			CreatedAt:    b.cfg.Now().UTC(),
			NameOfSender: sender,
			Format:       format,
		}
		n := firstPart(first.CreatedAt.Sub(e.Message.CreatedAt))
		release := b.writers.add(subject.Stop(e.AppID, e.ChatUserID, first.MessageID), stop)
		return newPartWriter(to, b.cfg.Now, first, n, release), nil
	}
}

// discard publishes nothing.
type discard struct{}

// Publish implements [event.Publisher].
func (discard) Publish(context.Context, event.Account, event.Event) error { return nil }

// agentInControl reports whether an agent has the chat. A chat that is not stored yet belongs to the bot.
func (b *Bot) agentInControl(ctx context.Context, chatID string) (bool, error) {
	c, err := b.cfg.Chats.Chat(ctx, chatID)
	if apperr.Is(err, apperr.NotFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("finding the chat: %w", err)
	}
	return c.Control.Agent, nil
}

// reply returns answer number i.
func reply(e event.VisitorMessageAccepted, i int, a Answer, sender string, at time.Time) event.Reply {
	return event.Reply{
		CompanyID: e.CompanyID, AppID: e.AppID, ChatUserID: e.ChatUserID, ChatID: e.ChatID,
		Message: chat.Message{
			ID:            chat.AnswerID(e.Message.ID, cmp.Or(a.number, i)),
			CreatedAt:     at,
			Type:          a.Type,
			Data:          a.Data,
			NameOfSender:  cmp.Or(a.NameOfSender, sender),
			IsFromSupport: true,
		},
	}
}
