package store

import (
	"context"
	"errors"
	"slices"
	"time"
	"unicode/utf8"

	"go.mongodb.org/mongo-driver/v2/bson"
	"go.mongodb.org/mongo-driver/v2/mongo"
	"go.mongodb.org/mongo-driver/v2/mongo/options"
	"golang.org/x/sync/errgroup"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
)

// placeDocument says where a message is, in the chat's buckets and in time. It is inserted before the message is written and
// never changes, so that a message that is appended again, by whomever and whenever, lands in the same place.
type placeDocument struct {
	ID        string    `bson:"_id"` // the message's id
	ChatID    string    `bson:"chatId"`
	Bucket    int64     `bson:"bucket"`
	CreatedAt time.Time `bson:"createdAt"`
}

// AppendMessage adds a message to the chat's history. Appending a message that is already there changes nothing and returns
// nil, also if it says something else by now: the first stays. Appending again also completes what a crash left half done. A
// visitor's message moves the chat's window.
// Errors: NotFound (no such chat), Invalid (also where the message's id belongs to another chat: an id that is used twice is
// somebody's fault, to be seen in DEAD), Unavailable.
func (s *Store) AppendMessage(ctx context.Context, chatID string, m chat.Message) error {
	if err := validate(m); err != nil {
		return err
	}
	place, err := get[placeDocument](ctx, s, messages, m.ID)
	known := err == nil
	if apperr.Is(err, apperr.NotFound) {
		place, err = s.place(ctx, chatID, m)
	}
	if err != nil {
		return err
	}
	if place.ChatID != chatID {
		return apperr.New(apperr.Invalid, "MESSAGE_EXISTS", "A message with this id is in another chat")
	}
	bucket := bucketID(chatID, place.Bucket)
	if known {
		if written, err := s.isWritten(ctx, bucket, m.ID); err != nil || written {
			return err
		}
	}
	if !place.CreatedAt.IsZero() {
		m.CreatedAt = utc(place.CreatedAt)
	}
	return s.writeMessage(ctx, bucket, m)
}

// place decides in which bucket the message goes. Of two deciders at once the first to insert is right; the units that the
// other took stay empty.
func (s *Store) place(ctx context.Context, chatID string, m chat.Message) (placeDocument, error) {
	before, err := s.takeUnits(ctx, chatID, m)
	if err != nil {
		return placeDocument{}, err
	}
	if err := s.noteLateness(ctx, before, m); err != nil {
		return placeDocument{}, err
	}
	s.sealBuckets(ctx, chatID, before.Filled, weight(m))
	place := placeDocument{ID: m.ID, ChatID: chatID, Bucket: bucketOf(before.Filled), CreatedAt: utc(m.CreatedAt)}
	inserted, err := s.insert(ctx, messages, place)
	if err != nil || inserted {
		return place, err
	}
	return get[placeDocument](ctx, s, messages, m.ID)
}

// takeUnits reserves the message's units in the chat's buckets and returns the chat as it was before: they begin where that
// was filled to. In the same update a visitor's message moves the chat's window; whoever finds a placed message can rely on that.
func (s *Store) takeUnits(ctx context.Context, chatID string, m chat.Message) (before chatDocument, err error) {
	at := utc(m.CreatedAt)
	forward := bson.D{{Key: "latest", Value: at}}
	if !m.IsFromSupport {
		forward = append(forward, bson.E{Key: "visitorWroteAt", Value: at}, bson.E{Key: "windowStartedAt", Value: at})
	}
	change := bson.D{{Key: "$inc", Value: bson.D{{Key: "filled", Value: weight(m)}}}, {Key: "$max", Value: forward}}
	err = s.do(ctx, "taking a message's place", func(ctx context.Context) error {
		return s.in(chats).FindOneAndUpdate(ctx, byID(chatID), change,
			options.FindOneAndUpdate().SetReturnDocument(options.Before)).Decode(&before)
	})
	return before, missing(err, chats)
}

// noteLateness remembers by how much messages of the chat have come after later ones, before anyone can see this one. Mostly
// there is nothing new to remember.
func (s *Store) noteLateness(ctx context.Context, before chatDocument, m chat.Message) error {
	late := before.Latest.Sub(utc(m.CreatedAt)).Milliseconds()
	if before.Latest.IsZero() || late <= before.Late {
		return nil
	}
	_, err := s.update(ctx, chats, before.ID, bson.D{{Key: "$max", Value: bson.D{{Key: "late", Value: late}}}})
	return err
}

// isWritten reports whether the bucket has the message.
func (s *Store) isWritten(ctx context.Context, bucket, messageID string) (bool, error) {
	var d bucketDocument
	err := s.do(ctx, "looking for a message", func(ctx context.Context) error {
		only := bson.D{{Key: "m." + fieldName(messageID), Value: 1}, {Key: "s", Value: 1}}
		return s.in(buckets).FindOne(ctx, byID(bucket), options.FindOne().SetProjection(only)).Decode(&d)
	})
	if errors.Is(err, mongo.ErrNoDocuments) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, err = d.find(messageID)
	if apperr.Is(err, apperr.NotFound) {
		return false, nil
	}
	return err == nil, err
}

// writeMessage puts the message into its bucket.
func (s *Store) writeMessage(ctx context.Context, bucket string, m chat.Message) error {
	change := bson.D{{Key: "$set", Value: bson.D{{Key: "m." + fieldName(m.ID), Value: record(m)}}}}
	return s.do(ctx, "writing a message", func(ctx context.Context) error {
		return again(func() error {
			_, err := s.in(buckets).UpdateOne(ctx, byID(bucket), change, options.UpdateOne().SetUpsert(true))
			return err
		})
	})
}

// History returns all messages of the chat, ascending by creation time, then by id; each once. NotFound when there is no
// such chat.
func (s *Store) History(ctx context.Context, chatID string) ([]chat.Message, error) {
	d, err := get[chatDocument](ctx, s, chats, chatID)
	if err != nil {
		return nil, err
	}
	all, err := s.readBuckets(ctx, chatID, 0, bucketCount(d.Filled))
	if err != nil {
		return nil, err
	}
	return parseAll(inOrder(all))
}

// readBuckets reads a chat's buckets from first to before end, a few at a time, and returns their messages in no order. A
// bucket that is not there, because all who took its units crashed, is empty.
func (s *Store) readBuckets(ctx context.Context, chatID string, first, end int64) ([]stored, error) {
	read := make([][]stored, end-first)
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(4)
	for n := range read {
		group.Go(func() error {
			d, err := get[bucketDocument](ctx, s, buckets, bucketID(chatID, first+int64(n)))
			if apperr.Is(err, apperr.NotFound) {
				return nil
			}
			if err != nil {
				return err
			}
			read[n], err = d.contents()
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	return slices.Concat(read...), nil
}

// validate refuses what could never be stored.
func validate(m chat.Message) error {
	var wrong apperr.Fields
	if m.ID == "" || len(m.ID) > maxMessageIDLen || !utf8.ValidString(m.ID) {
		wrong.Add("id", "must be text of 1 to 256 bytes")
	}
	if len(m.Data) > maxMessageSize {
		wrong.Add("data", "must not be larger than 8 MiB")
	} else if !isJSON(m.Data) {
		wrong.Add("data", "must be JSON")
	}
	return wrong.Err()
}
