package store

import (
	"context"
	"iter"
	"log/slog"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/parley-chat/parley/pkg/apperr"
)

// A bucket is sealed when it is full and its writers have had time to finish: its records become one text, which costs the
// engines a fraction of what a hundred fields do, and readers find a record in it without parsing the others. Whose message
// takes a certain unit does it, so that there is one sealer for each bucket: two that had read different records would lose
// what only the first has seen. What is written afterwards lies beside the sealed records, as it would have before.

// sealingDelay is how many units of the next bucket are given away before a bucket is sealed.
const sealingDelay = 10

// Sealed records are a JSON text sequence (RFC 7464): a record separator, which no JSON text contains, before each.
const recordSeparator = "\x1e"

func unsealed(text string) iter.Seq[string] {
	return func(yield func(string) bool) {
		for record := range strings.SplitSeq(text, recordSeparator) {
			if record != "" && !yield(record) {
				return
			}
		}
	}
}

// sealable is how many buckets may be sealed when so many units have been given away.
func sealable(filled int64) int64 { return bucketOf(max(filled-sealingDelay, 0)) }

// sealBuckets seals those buckets that the units from filled on made ready. A bucket that could not be sealed stays as it is:
// that costs time and nothing else.
func (s *Store) sealBuckets(ctx context.Context, chatID string, filled, units int64) {
	for n := sealable(filled); n < sealable(filled+units); n++ {
		if err := s.seal(ctx, bucketID(chatID, n)); err != nil {
			s.log.LogAttrs(ctx, slog.LevelWarn, "sealing a bucket of messages failed", slog.String("error", apperr.LogText(err)))
			return
		}
	}
}

func (s *Store) seal(ctx context.Context, bucket string) error {
	d, err := get[bucketDocument](ctx, s, buckets, bucket)
	if apperr.Is(err, apperr.NotFound) || err == nil && len(d.Messages) == 0 {
		return nil
	}
	if err != nil {
		return err
	}
	all, err := d.contents()
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, e := range inOrder(all) {
		text.WriteString(recordSeparator)
		text.WriteString(e.text)
	}
	var sealed bson.D
	for name := range d.Messages {
		sealed = append(sealed, bson.E{Key: "m." + name, Value: ""})
	}
	_, err = s.update(ctx, buckets, bucket, bson.D{
		{Key: "$set", Value: bson.D{{Key: "s", Value: text.String()}}}, {Key: "$unset", Value: sealed},
	})
	return err
}
