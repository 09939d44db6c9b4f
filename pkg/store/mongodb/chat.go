package mongodb

import (
	"context"
	"time"

	"github.com/google/uuid"
	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

type chatDocument struct {
	ID              string            `bson:"_id"`
	CompanyID       string            `bson:"companyId"`
	AppID           string            `bson:"appId"`
	ChatUserID      string            `bson:"chatUserId"`
	Channel         chat.Channel      `bson:"channel"`
	CreatedAt       time.Time         `bson:"createdAt"`
	WindowStartedAt time.Time         `bson:"windowStartedAt"`
	VisitorWroteAt  time.Time         `bson:"visitorWroteAt,omitempty"`
	ClosedAt        time.Time         `bson:"closedAt,omitempty"`
	Control         *controlDocument  `bson:"control,omitempty"`
	AgentsReadAt    time.Time         `bson:"agentsReadAt,omitempty"`
	Rating          *ratingDocument   `bson:"rating,omitempty"`
	RatedAt         time.Time         `bson:"ratedAt,omitempty"`   // the first time
	Greetings       []messageDocument `bson:"greetings,omitempty"` // not yet in the history; see writeGreetings
}

// controlDocument is a [chat.Control].
type controlDocument struct {
	Agent     bool              `bson:"agent"`
	Assignee  string            `bson:"assignee,omitempty"`
	ChangedAt time.Time         `bson:"changedAt"`
	Handover  *handoverDocument `bson:"handover,omitempty"`
}

func controlDocumentOf(c chat.Control) *controlDocument {
	if c.ChangedAt.IsZero() {
		return nil
	}
	return &controlDocument{
		Agent:     c.Agent,
		Assignee:  c.Assignee,
		ChangedAt: store.UTC(c.ChangedAt),
		Handover:  handoverDocumentOf(c.Handover),
	}
}

func (d *controlDocument) control() chat.Control {
	if d == nil {
		return chat.Control{}
	}
	return chat.Control{
		Agent:     d.Agent,
		Assignee:  d.Assignee,
		ChangedAt: store.UTC(d.ChangedAt),
		Handover:  d.Handover.handover(),
	}
}

// chatDocumentOf returns the document of a chat without greetings.
func chatDocumentOf(c chat.Chat) chatDocument {
	d := chatDocument{
		ID:              c.ID,
		CompanyID:       c.CompanyID,
		AppID:           c.AppID,
		ChatUserID:      c.ChatUserID,
		Channel:         c.Channel,
		CreatedAt:       store.UTC(c.CreatedAt),
		WindowStartedAt: store.UTC(c.WindowStartedAt),
		VisitorWroteAt:  store.UTC(c.VisitorWroteAt),
		ClosedAt:        store.UTC(c.ClosedAt),
		Control:         controlDocumentOf(c.Control),
		AgentsReadAt:    store.UTC(c.AgentsReadAt),
		RatedAt:         store.UTC(c.Rating.FirstAt),
	}
	if c.Rating.Score != 0 {
		d.Rating = &ratingDocument{Score: c.Rating.Score, Comment: c.Rating.Comment, At: store.UTC(c.Rating.At)}
	}
	return d
}

// chat converts the document, without the time that follows from the store's settings.
func (d chatDocument) chat() chat.Chat {
	return chat.Chat{
		ID: d.ID, CompanyID: d.CompanyID, AppID: d.AppID, ChatUserID: d.ChatUserID, Channel: d.Channel,
		CreatedAt: store.UTC(d.CreatedAt), WindowStartedAt: store.UTC(d.WindowStartedAt),
		VisitorWroteAt: store.UTC(d.VisitorWroteAt), ClosedAt: store.UTC(d.ClosedAt),
		Control:      d.Control.control(),
		AgentsReadAt: store.UTC(d.AgentsReadAt),
		Rating:       d.rating(),
	}
}

// chat converts the document. The idle close is derived from the visitor's last message, like the window.
func (s *Store) chat(d chatDocument) chat.Chat {
	c := d.chat()
	if s.idleClose > 0 && !c.WindowStartedAt.IsZero() {
		c.IdleClosesAt = c.WindowStartedAt.Add(s.idleClose)
	}
	return c
}

// Chat implements [store.Chats]. It also completes an OpenChat that a crash has interrupted: the chat is stored, its
// greetings are not yet in the history.
func (s *Store) Chat(ctx context.Context, id string) (chat.Chat, error) {
	d, err := get[chatDocument](ctx, s, chats, id)
	if err != nil {
		return chat.Chat{}, err
	}
	return s.chat(d), s.writeGreetings(ctx, d)
}

// ChangeChat implements [store.Chats]. A control and a rating are written if the stored ones are older, each with a
// command of its own; the times follow with the command that reads the chat.
func (s *Store) ChangeChat(ctx context.Context, id string, change store.ChatChange) (chat.Chat, error) {
	if at := store.UTC(change.Control.ChangedAt); !at.IsZero() {
		set := bson.D{{Key: "$set", Value: bson.D{{Key: "control", Value: controlDocumentOf(change.Control)}}}}
		if _, err := s.updateOne(ctx, chats, olderThan(id, "control.changedAt", at), set); err != nil {
			return chat.Chat{}, err
		}
	}
	if at := store.UTC(change.Rating.At); !at.IsZero() {
		rating := ratingDocument{Score: change.Rating.Score, Comment: change.Rating.Comment, At: at}
		set := bson.D{
			{Key: "$set", Value: bson.D{{Key: "rating", Value: rating}}},
			{Key: "$min", Value: bson.D{{Key: "ratedAt", Value: at}}},
		}
		if _, err := s.updateOne(ctx, chats, olderThan(id, "rating.at", at), set); err != nil {
			return chat.Chat{}, err
		}
	}
	times := movingTimes(
		movedTime{"$min", "closedAt", change.ClosedAt},
		movedTime{"$max", "agentsReadAt", change.AgentsReadAt},
	)
	if len(times) == 0 {
		return s.Chat(ctx, id)
	}
	d, err := modify[chatDocument](ctx, s, chats, byID(id), times)
	if err != nil {
		return chat.Chat{}, err
	}
	return s.chat(d), s.writeGreetings(ctx, d)
}

// olderThan selects a document unless the time in a field is the given one or later.
func olderThan(id, field string, at time.Time) bson.D {
	return append(byID(id), bson.E{Key: "$or", Value: bson.A{
		bson.D{{Key: field, Value: bson.D{{Key: "$lt", Value: at}}}},
		bson.D{{Key: field, Value: bson.D{{Key: "$exists", Value: false}}}},
	}})
}

// OpenChat implements [store.Chats].
//
// The id of a visitor's chat number n is derived from the visitor and n, and the chat is created only after number n-1
// has been closed. So concurrent calls insert the same id and one of them wins. The visitor's ChatNumber is only a hint
// where to begin; it may be outdated.
//
// A chat that is closed only by idleness is closed permanently before the next one is created: otherwise a message
// accepted for it in time, but stored only now, would open it again.
func (s *Store) OpenChat(ctx context.Context, v chat.Visitor, n store.NewChat) (c chat.Chat, opened bool, err error) {
	visitorID, err := uuid.Parse(v.ID)
	if err != nil {
		return chat.Chat{}, false, apperr.ValidationError.WithMessage("The visitor's id is not a UUID").Wrap(err)
	}
	for number := max(v.ChatNumber, 1); ; number++ {
		c, opened, err = s.openNumber(ctx, store.ChatID(visitorID, number), number <= v.ChatNumber, v, n)
		if err != nil {
			return chat.Chat{}, false, err
		}
		if c.Open(n.Now) {
			return c, opened, s.countChats(ctx, v, number)
		}
		if c.ClosedAt.IsZero() {
			if _, err := s.ChangeChat(ctx, c.ID, store.ChatChange{ClosedAt: c.IdleClosesAt}); err != nil {
				return chat.Chat{}, false, err
			}
		}
	}
}

// openNumber returns the chat with that id, which may be closed, and creates it if it does not exist. Reading
// one that is expected to exist saves a failing insert.
func (s *Store) openNumber(
	ctx context.Context, id string, expected bool, v chat.Visitor, n store.NewChat,
) (c chat.Chat, opened bool, err error) {
	if expected {
		if c, err = s.Chat(ctx, id); !apperr.Is(err, apperr.NotFound) {
			return c, false, err
		}
	}
	d := chatDocumentOf(chat.Chat{
		ID:              id,
		CompanyID:       v.CompanyID,
		AppID:           v.AppID,
		ChatUserID:      v.ID,
		Channel:         n.Channel,
		CreatedAt:       n.Now,
		WindowStartedAt: n.Now,
		Control:         n.Control(),
	})
	for _, m := range n.Greetings {
		if err := store.CheckMessage(m); err != nil {
			return chat.Chat{}, false, err
		}
		d.Greetings = append(d.Greetings, messageDocumentOf(id, m))
	}
	if opened, err = s.insert(ctx, chats, d); err != nil {
		return chat.Chat{}, false, err
	}
	if !opened {
		c, err = s.Chat(ctx, id)
		return c, false, err
	}
	return s.chat(d), true, s.writeGreetings(ctx, d)
}

// writeGreetings moves the greetings of a new chat into the history. They are inserted with the chat, so that only the
// greetings of the call that creates it count, and every reader of the chat moves them first: the chat is never visible
// without them, even if its creator crashed.
func (s *Store) writeGreetings(ctx context.Context, d chatDocument) error {
	if len(d.Greetings) == 0 {
		return nil
	}
	documents := make([]any, len(d.Greetings))
	for n, m := range d.Greetings {
		documents[n] = m
	}
	if _, err := s.insertAll(ctx, messages, documents); err != nil {
		return err
	}
	_, err := s.update(ctx, chats, d.ID, bson.D{{Key: "$unset", Value: bson.D{{Key: "greetings", Value: ""}}}})
	return err
}

// Chats implements [store.Chats].
func (s *Store) Chats(ctx context.Context, f store.ChatFilter, p store.Page) ([]chat.Chat, error) {
	q := listQuery{sort: bson.D{desc("createdAt"), asc("_id")}}
	if f.Status == "" {
		q.limit = p.Size()
	} else { // depends on the time; evaluated in Go
		q.wanted = p.Size()
	}
	// The most selective condition first.
	for _, condition := range []bson.E{
		{Key: "chatUserId", Value: f.ChatUserID},
		{Key: "appId", Value: f.AppID},
		{Key: "companyId", Value: f.CompanyID},
	} {
		if condition.Value != "" {
			q.filter = append(q.filter, condition)
		}
	}
	if p.After != "" {
		last, err := get[chatDocument](ctx, s, chats, p.After)
		if err != nil {
			return nil, err
		}
		q.filter = append(q.filter, after(last)...)
	}
	var halfOpen []chatDocument
	found, err := list(ctx, s, chats, q, func(d chatDocument) (chat.Chat, bool) {
		c := s.chat(d)
		wanted := f.Status == "" || c.Status(f.Now) == f.Status
		if wanted && len(d.Greetings) > 0 {
			halfOpen = append(halfOpen, d)
		}
		return c, wanted
	})
	for _, d := range halfOpen {
		if err == nil {
			err = s.writeGreetings(ctx, d)
		}
	}
	return found, err
}

// after selects the chats that follow one in the list. The first condition is the range of the index; the second only
// separates the chats of that one millisecond.
func after(last chatDocument) bson.D {
	return bson.D{
		{Key: "createdAt", Value: bson.D{{Key: "$lte", Value: last.CreatedAt}}},
		{Key: "$or", Value: bson.A{
			bson.D{{Key: "createdAt", Value: bson.D{{Key: "$lt", Value: last.CreatedAt}}}},
			bson.D{{Key: "_id", Value: bson.D{{Key: "$gt", Value: last.ID}}}},
		}},
	}
}
