package conversation

import (
	"context"
	"slices"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/credential"
	"github.com/parley-chat/parley/pkg/store"
)

// ChatList selects a page of a visitor's chats.
type ChatList struct {
	After string // the id of the previous page's last chat; empty: from the newest
	Limit int    // positive
}

// ListChats returns a page of the visitor's chats, newest first, and whether there are more. Errors:
// Unauthenticated if the visitor does not exist or the token is revoked, NotFound without the application,
// Invalid if l.After is not a chat of this visitor.
func (s *Service) ListChats(
	ctx context.Context,
	who credential.VisitorClaims,
	l ChatList,
) (chats []chat.Chat, more bool, err error) {
	visitor, app, err := s.visitorAndApplication(ctx, who)
	if err != nil {
		return nil, false, asNoChat(err)
	}
	page := store.Page{Limit: l.Limit + 1} // one more shows that there are more
	if l.After != "" {
		last, err := s.chatOfVisitor(ctx, visitor, l.After)
		if apperr.Is(err, apperr.NotFound) {
			err = apperr.Fields{{Name: "after", Message: "must be the id of a chat"}}.Err()
		}
		if err != nil {
			return nil, false, err
		}
		page.After = last.ID
	}
	chats, err = s.cfg.Chats.Chats(ctx, store.ChatFilter{ChatUserID: visitor.ID}, page)
	if err != nil {
		return nil, false, err
	}
	now := s.now()
	closedToToken := slices.IndexFunc(chats, func(c chat.Chat) bool { return !mayRead(who, app, c, now) })
	if closedToToken >= 0 { // and so are all chats before it
		chats = chats[:closedToToken]
	}
	if len(chats) > l.Limit {
		return chats[:l.Limit], true, nil
	}
	return chats, false, nil
}

// ChatHistory is [Service.History] for one of the visitor's chats, open or closed. NotFound if the visitor
// has no such chat.
func (s *Service) ChatHistory(
	ctx context.Context,
	who credential.VisitorClaims,
	chatID string,
	q PageQuery,
	answer func(Answer) error,
) error {
	visitor, app, err := s.visitorAndApplication(ctx, who)
	if err != nil {
		return asNoChat(err)
	}
	c, err := s.chatOfVisitor(ctx, visitor, chatID)
	if err == nil && !mayRead(who, app, c, s.now()) {
		err = apperr.ChatNotFound.New()
	}
	if err != nil {
		return err
	}
	return s.answerHistory(ctx, c, q, answer)
}

// chatOfVisitor returns the chat with that id if it is the visitor's, else NotFound.
func (s *Service) chatOfVisitor(ctx context.Context, visitor chat.Visitor, chatID string) (chat.Chat, error) {
	id, ok := chat.ParseID(chatID)
	if !ok {
		return chat.Chat{}, apperr.ChatNotFound.New()
	}
	c, err := s.cfg.Chats.Chat(ctx, id)
	if err == nil && c.ChatUserID != visitor.ID {
		err = apperr.ChatNotFound.New()
	}
	return c, asNoChat(err)
}

// mayRead reports whether a token of the chat's visitor reads the chat. If the application does not verify
// identities, anyone can claim one, so a token reads only the chats that were open when it was issued or
// later: it could read those anyway.
func mayRead(who credential.VisitorClaims, app chat.Application, c chat.Chat, now time.Time) bool {
	ended := c.EndedAt(now)
	return ended.IsZero() || app.Identity.On() || who.IssuedAt.Before(ended)
}
