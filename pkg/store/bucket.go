package store

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/parley-chat/parley/pkg/chat"
)

// A chat's messages lie in buckets, so that a history of 100 messages is one look-up by _id and not a hundred, or a scan. A
// bucket has room for 100 units. A message fills one, and one more for each 64 KiB of data, so that a full bucket stays
// far below MongoDB's 16 MiB for a document whatever is sent.
const (
	bucketUnits     = 100
	unitSize        = 64 << 10
	maxMessageSize  = 8 << 20
	maxMessageIDLen = 256
)

// bucketDocument holds message records by message id, so that writing one again changes nothing. When no more come, those that
// are there are sealed (see seal.go).
type bucketDocument struct {
	ID       string            `bson:"_id"`
	Messages map[string]string `bson:"m"`
	Sealed   []byte            `bson:"s,omitempty"`
}

// contents are the bucket's messages in no order; one may be there twice.
func (d bucketDocument) contents() ([]stored, error) {
	texts, err := unpack(d.Sealed)
	if err != nil {
		return nil, err
	}
	all := make([]stored, 0, len(texts)+len(d.Messages))
	for _, text := range slices.AppendSeq(texts, maps.Values(d.Messages)) {
		m, err := readHead(text)
		if err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	return all, nil
}

// find returns the record of the message with that id; NotFound where it is not there.
func (d bucketDocument) find(id string) (text string, err error) {
	if text, there := d.Messages[fieldName(id)]; there {
		return text, nil
	}
	texts, err := unpack(d.Sealed)
	if err != nil {
		return "", err
	}
	for _, text := range texts {
		if m, err := readHead(text); err == nil && m.id == id {
			return text, nil
		}
	}
	return "", notFound(messages)
}

// weight is how many units of a bucket the message fills.
func weight(m chat.Message) int64 { return 1 + int64(len(m.Data)/unitSize) }

func weightOf(messages []chat.Message) (sum int64) {
	for _, m := range messages {
		sum += weight(m)
	}
	return sum
}

// latestOf is the latest creation time of messages; zero without any.
func latestOf(messages []chat.Message) (latest time.Time) {
	for _, m := range messages {
		if at := utc(m.CreatedAt); at.After(latest) {
			latest = at
		}
	}
	return latest
}

// bucketOf is the number of the bucket in which a message lies that begins at a unit.
func bucketOf(unit int64) int64 { return unit / bucketUnits }

// bucketCount is how many buckets a chat may have. The first is always looked at: it may hold greetings that nobody counted.
func bucketCount(filled int64) int64 { return bucketOf(max(filled-1, 0)) + 1 }

func bucketID(chatID string, number int64) string {
	return chatID + ":" + strconv.FormatInt(number, 10)
}

// greet writes the first messages of a chat that is about to be opened, unless another opening has already. It returns those
// that are there.
func (s *Store) greet(ctx context.Context, chatID string, greetings []chat.Message) ([]chat.Message, error) {
	if len(greetings) == 0 {
		return nil, nil
	}
	d := bucketDocument{ID: bucketID(chatID, 0), Messages: make(map[string]string, len(greetings))}
	for _, m := range greetings {
		if err := validate(m); err != nil {
			return nil, err
		}
		d.Messages[fieldName(m.ID)] = record(m)
	}
	inserted, err := s.insert(ctx, buckets, d)
	if err != nil || inserted {
		return greetings, err
	}
	there, err := s.readBuckets(ctx, chatID, 0, 1)
	if err != nil {
		return nil, err
	}
	return parseAll(inOrder(there))
}

// fieldName is the message's id as a field's name, in which MongoDB reserves three characters. Our own ids, UUIDs, stay as
// they are; a processing layer of someone else's may send others.
func fieldName(id string) string {
	if !strings.ContainsAny(id, "%.$\x00") {
		return id
	}
	return strings.NewReplacer("%", "%25", ".", "%2E", "$", "%24", "\x00", "%00").Replace(id)
}
