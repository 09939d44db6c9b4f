package conversation

import (
	"context"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/credential"
)

// Bots are bots that stream their messages.
type Bots interface {
	// RequestStop reports whether a bot was writing the message for the visitor, and has stopped.
	RequestStop(ctx context.Context, appID, chatUserID, messageID string) (stopped bool, err error)
}

// Stop makes the bot that streams a message to the visitor stop: the parts so far become the message. Errors:
// Unauthenticated if the visitor does not exist, Conflict if the message is complete, NotFound without such a
// message in the open chat, without an open chat or application.
func (s *Service) Stop(ctx context.Context, who credential.VisitorClaims, messageID string) error {
	c, err := s.currentChat(ctx, who)
	if err != nil {
		return err
	}
	if id, ok := chat.ParseID(messageID); ok {
		messageID = id
		stopped, err := s.cfg.Bots.RequestStop(ctx, who.AppID, who.ChatUserID, id)
		if err != nil || stopped {
			return err
		}
	}
	// No bot is writing it: it is complete, or there is no such message.
	if _, err := s.findMessage(ctx, c, messageID); err != nil {
		return err
	}
	return apperr.MessageComplete.New()
}
