package conversation

import (
	"context"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/credential"
)

// Bots are the bots that write messages part by part.
type Bots interface {
	// AskToStop reports whether a bot was writing the message for the visitor, and has stopped.
	AskToStop(ctx context.Context, appID, chatUserID, messageID string) (stopped bool, err error)
}

// Stop makes the bot that is writing a message for the visitor stop: what it has written becomes the message. It returns Unauthenticated
// when the token's visitor is gone, Conflict when the message is complete, and NotFound when there is no such message in the open chat,
// no open chat, or no application any more.
func (d *Service) Stop(ctx context.Context, who credential.VisitorClaims, messageID string) error {
	visitor, err := d.visitor(ctx, who)
	if err != nil {
		return err
	}
	if _, err := d.admit(ctx, visitor); err != nil {
		return asNoChat(err)
	}
	c, err := d.cfg.Chats.CurrentChat(ctx, visitor, d.now())
	if err != nil {
		return asNoChat(err)
	}
	if id, ok := chat.ParseID(messageID); ok {
		messageID = id
		if stopped, err := d.cfg.Bots.AskToStop(ctx, visitor.AppID, visitor.ID, id); err != nil || stopped {
			return err
		}
	}
	if _, err := d.message(ctx, c, messageID); err != nil {
		return err
	}
	return apperr.MessageComplete.New()
}
