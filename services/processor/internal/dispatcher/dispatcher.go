// Package dispatcher sends companies' messages to the channel of the chat: to the widget's visitor as a
// reply, to a phone number as an outbound message.
//
// dispatcher.go: a message into a chat; [event.ToVisitor] has the events of the channels. push.go: a template
// to a phone number, whose chat is found or created.
//
// Every published event has the id that the Client API gave the message, so a redelivery publishes the same
// event again and the stream drops it.
package dispatcher

import (
	"context"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/store"
)

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
	publisher  event.Publisher
}

// New returns a dispatcher.
func New(directory Directory, recipients Recipients, publisher event.Publisher) *Dispatcher {
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
	sent, err := event.ToVisitor(ctx, d.directory, c, e.Message, true)
	if err != nil {
		return err
	}
	return d.publisher.Publish(ctx, event.Derived(), sent)
}
