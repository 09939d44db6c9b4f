package store

import (
	"context"
	"strconv"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
)

type chatDocument struct {
	ID              string       `bson:"_id"`
	CompanyID       string       `bson:"companyId"`
	AppID           string       `bson:"appId"`
	ChatUserID      string       `bson:"chatUserId"`
	Channel         chat.Channel `bson:"channel"`
	CreatedAt       time.Time    `bson:"createdAt"`
	WindowStartedAt time.Time    `bson:"windowStartedAt"`
	VisitorWroteAt  time.Time    `bson:"visitorWroteAt,omitempty"`
	ClosedAt        time.Time    `bson:"closedAt,omitempty"`
	Filled          int64        `bson:"filled"`           // units of its buckets that have been given away, see bucket.go
	Latest          time.Time    `bson:"latest,omitempty"` // the latest creation time of a message that has a place, see page.go
	Late            int64        `bson:"late,omitempty"`   // milliseconds by which a message came after a later one at most
}

// chat is the document as our noun. When it closes by idleness follows from the visitor's last word, as its window does:
// that one time decides both, and is moved by the update that takes a visitor's message in.
func (s *Store) chat(d chatDocument) chat.Chat {
	c := chat.Chat{
		ID: d.ID, CompanyID: d.CompanyID, AppID: d.AppID, ChatUserID: d.ChatUserID, Channel: d.Channel,
		CreatedAt: utc(d.CreatedAt), WindowStartedAt: utc(d.WindowStartedAt),
		VisitorWroteAt: utc(d.VisitorWroteAt), ClosedAt: utc(d.ClosedAt),
	}
	if s.idleClose > 0 && !c.WindowStartedAt.IsZero() {
		c.IdleClosesAt = c.WindowStartedAt.Add(s.idleClose)
	}
	return c
}

// Chat returns the chat, or NotFound.
func (s *Store) Chat(ctx context.Context, id string) (chat.Chat, error) {
	d, err := get[chatDocument](ctx, s, chats, id)
	return s.chat(d), err
}

// CloseChat closes the chat; the first closing stays. NotFound when there is no such chat. Whoever caches chats believes in
// the open one for a moment longer: tell them to forget it, as CachedChat.
func (s *Store) CloseChat(ctx context.Context, id string, at time.Time) error {
	found, err := s.update(ctx, chats, id, bson.D{{Key: "$min", Value: bson.D{{Key: "closedAt", Value: utc(at)}}}})
	if err == nil && !found {
		return notFound(chats)
	}
	return err
}

// NewChat says how a chat begins, should one have to be opened.
type NewChat struct {
	Channel   chat.Channel
	Now       time.Time
	Greetings []chat.Message // in the history from the start, in the order of their times and ids
}

// OpenChat returns the chat of the visitor that is open at n.Now, or a new one; opened says which.
//
// The visitor's nth chat has an id that follows from the visitor and n, and comes into being only when the one before is
// closed. So two calls at once insert the same id, one of them wins, and a visitor never has two open chats. The visitor's
// ChatNumber only says where to begin to look; it may be out of date.
//
// A chat that only its idleness has closed is closed for good before another follows it: a message that was accepted for it
// in time, but is stored only now, would otherwise open it again.
func (s *Store) OpenChat(ctx context.Context, v chat.Visitor, n NewChat) (c chat.Chat, opened bool, err error) {
	owner, err := uuid.Parse(v.ID)
	if err != nil {
		return chat.Chat{}, false, apperr.New(apperr.Invalid, "VALIDATION_ERROR", "The visitor's id is not a UUID").Wrap(err)
	}
	for number := max(v.ChatNumber, 1); ; number++ {
		c, opened, err = s.openNumber(ctx, chatID(owner, number), v, n)
		if err != nil {
			return chat.Chat{}, false, err
		}
		if c.Open(n.Now) {
			return c, opened, s.countChats(ctx, v, number)
		}
		if c.ClosedAt.IsZero() {
			if err := s.CloseChat(ctx, c.ID, c.IdleClosesAt); err != nil {
				return chat.Chat{}, false, err
			}
		}
	}
}

// CurrentChat returns the chat of the visitor that is open at now, or NotFound where [Store.OpenChat] would open one.
func (s *Store) CurrentChat(ctx context.Context, v chat.Visitor, now time.Time) (chat.Chat, error) {
	owner, err := uuid.Parse(v.ID)
	if err != nil {
		return chat.Chat{}, notFound(chats)
	}
	for number := max(v.ChatNumber, 1); ; number++ {
		if c, err := s.Chat(ctx, chatID(owner, number)); err != nil || c.Open(now) {
			return c, err
		}
	}
}

// chatID is the id of a visitor's nth chat.
func chatID(visitor uuid.UUID, number int) string {
	return uuid.NewSHA1(visitor, []byte(strconv.Itoa(number))).String()
}

// openNumber returns the chat with that id, which may be closed; it makes it if it is not there.
func (s *Store) openNumber(ctx context.Context, id string, v chat.Visitor, n NewChat) (c chat.Chat, opened bool, err error) {
	c, err = s.Chat(ctx, id)
	if !apperr.Is(err, apperr.NotFound) {
		return c, false, err
	}
	// The greetings first, so that whoever sees the chat sees them. Both are inserts: who comes second changes nothing.
	greetings, err := s.greet(ctx, id, n.Greetings)
	if err != nil {
		return c, false, err
	}
	d := chatDocument{
		ID: id, CompanyID: v.CompanyID, AppID: v.AppID, ChatUserID: v.ID, Channel: n.Channel,
		CreatedAt: utc(n.Now), WindowStartedAt: utc(n.Now), Filled: weightOf(greetings), Latest: latestOf(greetings),
	}
	opened, err = s.insert(ctx, chats, d)
	if err != nil || opened {
		return s.chat(d), opened, err
	}
	c, err = s.Chat(ctx, id)
	return c, false, err
}

// countChats notes how many chats the visitor has had, where that is news.
func (s *Store) countChats(ctx context.Context, v chat.Visitor, number int) error {
	if number <= v.ChatNumber {
		return nil
	}
	_, err := s.update(ctx, visitors, v.ID, bson.D{{Key: "$max", Value: bson.D{{Key: "chatNumber", Value: number}}}})
	return err
}
