package event

import (
	"context"
	"fmt"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
)

// Visitors finds the recipients of messages.
type Visitors interface {
	Visitor(ctx context.Context, chatUserID string) (chat.Visitor, error)
}

// ToVisitor returns the event that sends a message to the visitor of a chat. It is the one table from a channel
// to its event: a [Reply] for the widget, an [OutboundMessage] for the connector of another channel. receipt asks
// for delivery and read receipts of a widget. Errors: those of visitors, and apperr.Invalid for an unknown channel.
func ToVisitor(
	ctx context.Context,
	visitors Visitors,
	c chat.Chat,
	m chat.Message,
	receipt bool,
) (Event, error) {
	switch c.Channel {
	case chat.ChannelWidget:
		return Reply{
			CompanyID:  c.CompanyID,
			AppID:      c.AppID,
			ChatUserID: c.ChatUserID,
			ChatID:     c.ID,
			Message:    m,
			Receipt:    receipt,
		}, nil
	case chat.ChannelPhone:
		recipient, err := visitors.Visitor(ctx, c.ChatUserID)
		if err != nil {
			return nil, err
		}
		return ToConnector(c, recipient, m), nil
	}
	return nil, apperr.New(apperr.Invalid, "UNKNOWN_CHANNEL", fmt.Sprintf("No one serves the channel %q", c.Channel))
}

// ToConnector returns the event that sends a message to a recipient through the connector of the chat's channel.
// A recipient without a name has none: a connector must not greet "Visitor".
func ToConnector(c chat.Chat, recipient chat.Visitor, m chat.Message) OutboundMessage {
	return OutboundMessage{
		CompanyID:  c.CompanyID,
		Channel:    c.Channel,
		ChatID:     c.ID,
		ChatUserID: c.ChatUserID,
		Recipient:  Recipient{Phone: recipient.Phone, Name: recipient.GivenName()},
		Message:    m,
	}
}
