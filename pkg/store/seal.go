package store

import (
	"bytes"
	"compress/flate"
	"context"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"go.mongodb.org/mongo-driver/v2/bson"

	"github.com/parley-chat/parley/pkg/apperr"
)

// A bucket is sealed when it is full and its writers have had time to finish: its records become one value, which costs the
// engines a fraction of what a hundred fields do, and readers find a record in it without parsing the others. Whose message
// takes a certain unit does it, so that there is one sealer for each bucket: two that had read different records would lose
// what only the first has seen. What is written afterwards lies beside the sealed records, as it would have before.

// sealingDelay is how many units of the next bucket are given away before a bucket is sealed.
const sealingDelay = 10

// recordSeparator begins each record of a JSON text sequence (RFC 7464): no JSON text contains it.
const recordSeparator = "\x1e"

// pack makes sealed records of messages: a JSON text sequence, deflated (RFC 1951), because the engines' share grows with the
// bytes and histories repeat themselves.
func pack(all []stored) []byte {
	var sealed bytes.Buffer
	w, _ := flate.NewWriter(&sealed, flate.DefaultCompression) // fails for a level that does not exist
	for _, m := range all {
		_, _ = io.WriteString(w, recordSeparator) // a buffer takes everything
		_, _ = io.WriteString(w, m.text)
	}
	_ = w.Close()
	return sealed.Bytes()
}

// unpack returns the sealed records.
func unpack(sealed []byte) ([]string, error) {
	if len(sealed) == 0 {
		return nil, nil
	}
	var text strings.Builder
	if _, err := io.Copy(&text, flate.NewReader(bytes.NewReader(sealed))); err != nil {
		return nil, fmt.Errorf("reading sealed messages: %w", err)
	}
	return strings.Split(text.String(), recordSeparator)[1:], nil
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
	var sealed bson.D
	for name := range d.Messages {
		sealed = append(sealed, bson.E{Key: "m." + name, Value: ""})
	}
	_, err = s.update(ctx, buckets, bucket, bson.D{
		{Key: "$set", Value: bson.D{{Key: "s", Value: pack(inOrder(all))}}}, {Key: "$unset", Value: sealed},
	})
	return err
}
