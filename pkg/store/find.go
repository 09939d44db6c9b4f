package store

import (
	"context"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
)

// FindMessage returns a message of the history by its id alone, and the chat that it is in. NotFound where it is not there: not
// yet, or never. Greetings are not found, because nobody appended them.
func (s *Store) FindMessage(ctx context.Context, id string) (chatID string, m chat.Message, err error) {
	place, err := get[placeDocument](ctx, s, messages, id)
	if err != nil {
		return "", chat.Message{}, err
	}
	bucket, err := get[bucketDocument](ctx, s, buckets, bucketID(place.ChatID, place.Bucket))
	if err != nil {
		return "", chat.Message{}, err
	}
	text, err := bucket.find(id)
	if err != nil {
		return "", chat.Message{}, err
	}
	m, err = parseRecord(text)
	return place.ChatID, m, err
}

// Message returns a message of the chat; NotFound when there is none, or not yet, or it is another chat's.
func (s *Store) Message(ctx context.Context, chatID, id string) (chat.Message, error) {
	bucket, err := s.bucketOfMessage(ctx, chatID, id)
	if apperr.Is(err, apperr.Invalid) {
		return chat.Message{}, notFound(messages)
	}
	if err != nil {
		return chat.Message{}, err
	}
	d, err := get[bucketDocument](ctx, s, buckets, bucketID(chatID, bucket))
	if err != nil && !apperr.Is(err, apperr.NotFound) {
		return chat.Message{}, err
	}
	text, err := d.find(id)
	if err != nil {
		return chat.Message{}, err
	}
	return parseRecord(text)
}
