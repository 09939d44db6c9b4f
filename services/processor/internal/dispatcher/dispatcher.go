// Package dispatcher sends companies' messages to the channel of the chat: to the widget's visitor as a
// reply, to a phone number as an outbound message.
//
// dispatcher.go: a message into a chat. push.go: a template to a phone number, whose chat is found or created.
//
// Every published event has the id that the Client API gave the message, so a redelivery publishes the same
// event again and the stream drops it.
package dispatcher

import (
	"context"
	"fmt"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/store"
)

// Publisher publishes an event; nil means that the stream has stored it.
type Publisher interface {
	Publish(ctx context.Context, a event.Account, e event.Event) error
}

// Directory looks up records; each may be a second or two old.
type Directory interface {
	Chat(ctx context.Context, id string) (chat.Chat, error)
	Visitor(ctx context.Context, chatUserID string) (chat.Visitor, error)
	Template(ctx context.Context, id string) (chat.MessageTemplate, error)
}

// Recipients finds or creates the recipient of a push.
type Recipients interface {
	Company(ctx context.Context, id string) (chat.Company, error)
	Register(ctx context.Context, r store.Registration) (store.Registered, error)
}

// Dispatcher sends messages to the channel of their chat.
type Dispatcher struct {
	directory  Directory
	recipients Recipients
	publisher  Publisher
}

// New returns a dispatcher.
func New(directory Directory, recipients Recipients, publisher Publisher) *Dispatcher {
	return &Dispatcher{directory: directory, recipients: recipients, publisher: publisher}
}

// CompanyMessage sends a company's message in a chat. The message keeps its data and its id.
func (d *Dispatcher) CompanyMessage(ctx context.Context, e event.CompanyMessageAccepted) error {
	c, err := d.directory.Chat(ctx, e.ChatID)
	if err != nil {
		return err
	}
	if c.CompanyID != e.CompanyID {
		return apperr.New(apperr.Invalid, "FOREIGN_CHAT", "The chat belongs to another company")
	}
	e.Message.IsFromSupport = true
	return d.send(ctx, c, e.Message)
}

// send is the one place that maps a channel to its event.
func (d *Dispatcher) send(ctx context.Context, c chat.Chat, m chat.Message) error {
	switch c.Channel {
	case chat.ChannelWidget:
		return d.publisher.Publish(ctx, event.Derived(), event.Reply{
			CompanyID: c.CompanyID, AppID: c.AppID, ChatUserID: c.ChatUserID, ChatID: c.ID, Message: m, Receipt: true,
		})
	case chat.ChannelPhone:
		recipient, err := d.directory.Visitor(ctx, c.ChatUserID)
		if err != nil {
			return err
		}
		return d.publisher.Publish(ctx, event.Derived(), outbound(c, recipient, m))
	}
	return apperr.New(apperr.Invalid, "UNKNOWN_CHANNEL", fmt.Sprintf("No one serves the channel %q", c.Channel))
}

func outbound(c chat.Chat, recipient chat.Visitor, m chat.Message) event.OutboundMessage {
	return event.OutboundMessage{
		CompanyID:  c.CompanyID,
		Channel:    c.Channel,
		ChatID:     c.ID,
		ChatUserID: c.ChatUserID,
		Recipient:  event.Recipient{Phone: recipient.Phone, Name: displayName(recipient)},
		Message:    m,
	}
}

// displayName returns "" for a recipient without a name: a connector must not greet "Visitor".
func displayName(v chat.Visitor) string {
	if v.FirstName == "" && v.LastName == "" {
		return ""
	}
	return v.Name()
}
