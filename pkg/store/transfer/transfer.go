// Package transfer copies a deployment from one store to another, for `parleyctl migrate`, and compares the two.
//
// Run reads the records of both stores in the order of their keys, three times. First it refuses a target with records
// that are not those of the source. Then it copies what the target lacks. Last it compares each record. So an
// interrupted copy needs no notes: the next run finds what is there. No other process may write to either store.
package transfer

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"time"

	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/idempotency"
	"github.com/parley-chat/parley/pkg/store"
	"github.com/parley-chat/parley/pkg/webhook"
)

// batch is the number of records read and written at once. A message has at most 8 MiB, and usually a few hundred
// bytes.
const batch = 200

// settled is the minimum remaining lifetime of a compared record, because stores remove expired records during the
// copy.
const settled = time.Hour

// Config configures a copy.
type Config struct {
	From, To store.Portable

	Now    func() time.Time                    // nil: time.Now
	Copied func(kind store.Kind, copied int64) // called after each batch; optional
}

// Summary counts the records of one kind, equal in both stores.
type Summary struct {
	Kind  store.Kind
	Count int64 // without records that are about to expire
}

// ErrForeign is returned, before anything is written, if the target has records that the source does not have, or has
// with other values.
var ErrForeign = errors.New("the target has records that are not those of the source")

// Run copies all records, compares both stores, and counts the records of each kind. After an error, another call
// continues the copy.
func Run(ctx context.Context, c Config) ([]Summary, error) {
	if c.Now == nil {
		c.Now = time.Now
	}
	if c.Copied == nil {
		c.Copied = func(store.Kind, int64) {}
	}
	for _, kind := range store.Kinds() {
		key, err := c.foreign(ctx, kind)
		if err != nil {
			return nil, err
		}
		if key != "" {
			return nil, fmt.Errorf("%w: %s %s", ErrForeign, kind, key)
		}
	}
	for _, kind := range store.Kinds() {
		if err := c.copyKind(ctx, kind); err != nil {
			return nil, fmt.Errorf("copying %s: %w", kind, err)
		}
	}
	var summaries []Summary
	for _, kind := range store.Kinds() {
		n, err := c.compare(ctx, kind)
		if err != nil {
			return nil, fmt.Errorf("comparing %s: %w", kind, err)
		}
		summaries = append(summaries, Summary{Kind: kind, Count: n})
	}
	return summaries, nil
}

// foreign returns the key of a record of the target that the source does not have, or has with another value; empty if
// there is none. It stops at the last record of the target: an empty one costs one read.
func (c Config) foreign(ctx context.Context, kind store.Kind) (key string, err error) {
	until := c.Now().Add(settled)
	source := newReader(c.From, kind)
	for t, err := range records(ctx, c.To, kind) {
		if err != nil {
			return "", err
		}
		s, found, err := source.seek(ctx, t.Key)
		if err != nil {
			return "", err
		}
		same := found && reflect.DeepEqual(s, t)
		if !same && !expiresBefore(t, until) {
			return t.Key, nil
		}
	}
	return "", nil
}

// copyKind writes the records that the target lacks.
func (c Config) copyKind(ctx context.Context, kind store.Kind) error {
	target := newReader(c.To, kind)
	var missing []store.Record
	var copied int64
	write := func() error {
		if len(missing) == 0 {
			return nil
		}
		if err := c.To.WriteRecords(ctx, kind, missing); err != nil {
			return err
		}
		copied += int64(len(missing))
		missing = missing[:0]
		c.Copied(kind, copied)
		return nil
	}
	for s, err := range records(ctx, c.From, kind) {
		if err != nil {
			return err
		}
		_, found, err := target.seek(ctx, s.Key)
		if err != nil {
			return err
		}
		if !found {
			missing = append(missing, s)
		}
		if len(missing) == batch {
			if err := write(); err != nil {
				return err
			}
		}
	}
	return write()
}

// compare returns the number of records, or an error if the stores differ.
func (c Config) compare(ctx context.Context, kind store.Kind) (n int64, err error) {
	key, err := c.foreign(ctx, kind)
	if err != nil {
		return 0, err
	}
	if key != "" {
		return 0, fmt.Errorf("%s differ: %s of the target is not that of the source", kind, key)
	}
	until := c.Now().Add(settled)
	target := newReader(c.To, kind)
	for s, err := range records(ctx, c.From, kind) {
		if err != nil {
			return 0, err
		}
		if expiresBefore(s, until) {
			continue
		}
		_, found, err := target.seek(ctx, s.Key)
		if err != nil {
			return 0, err
		}
		if !found {
			return 0, fmt.Errorf("%s differ: the target lacks %s", kind, s.Key)
		}
		n++
	}
	return n, nil
}

// records yields the records of a kind in the order of their keys. It stops at the first error.
func records(ctx context.Context, s store.Portable, kind store.Kind) iter.Seq2[store.Record, error] {
	return func(yield func(store.Record, error) bool) {
		for r := newReader(s, kind); ; r.page = r.page[1:] {
			if err := r.fill(ctx); err != nil {
				yield(store.Record{}, err)
				return
			}
			if len(r.page) == 0 || !yield(r.page[0], nil) {
				return
			}
		}
	}
}

// reader reads the records of a kind page by page, forwards.
type reader struct {
	store store.Portable
	kind  store.Kind
	page  []store.Record // not yet passed
	after string         // key of the last record that was read
	ended bool           // there is no further page
}

func newReader(s store.Portable, kind store.Kind) *reader {
	return &reader{store: s, kind: kind}
}

// fill reads the next page when the last one has been passed.
func (r *reader) fill(ctx context.Context) error {
	if len(r.page) > 0 || r.ended {
		return nil
	}
	page, err := r.store.ReadRecords(ctx, r.kind, r.after, batch)
	if err != nil {
		return err
	}
	r.page = page
	r.ended = len(page) < batch
	if len(page) > 0 {
		r.after = page[len(page)-1].Key
	}
	return nil
}

// seek passes the records with smaller keys and returns the one with this key, if there is one. Keys must ascend from
// call to call.
func (r *reader) seek(ctx context.Context, key string) (record store.Record, found bool, err error) {
	for {
		if err := r.fill(ctx); err != nil || len(r.page) == 0 {
			return store.Record{}, false, err
		}
		if r.page[0].Key >= key {
			record = r.page[0]
			return record, record.Key == key, nil
		}
		r.page = r.page[1:]
	}
}

// expiresBefore reports whether the record expires before the given time: stores sweep it.
func expiresBefore(r store.Record, until time.Time) bool {
	var at time.Time
	switch v := r.Value.(type) {
	case idempotency.Record:
		at = v.ExpiresAt
	case chat.StoredFile:
		at = v.ExpiresAt
	case webhook.Delivery:
		at = v.ExpiresAt
	}
	return !at.IsZero() && at.Before(until)
}
