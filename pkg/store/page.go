package store

import (
	"context"
	"slices"
	"time"
	"unicode/utf8"

	"golang.org/x/sync/errgroup"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
)

// A history is in the order of creation times, its buckets are filled in the order of arrival, and a message may arrive after
// one that was created later. So a chat knows by how much that has happened at most, its lateness L, and takes it in before
// the message that was so late can be seen. From this follows, for any two messages x and y of which y has the later place:
//
//	y was created not earlier than x was, less L
//
// A page therefore needs its cursor's bucket and the neighbours whose messages are within L of the page's: of the buckets
// further up all messages are later than the cursor, of those further down all are earlier than the page. Mostly L is a few
// milliseconds, and a page costs two buckets, however long the chat is.

// HistoryPage returns the last messages of the chat before the one with the id before, or of all where that is empty: limit of
// them at most, ascending as in [Store.History]. It also returns whether there are earlier ones. Going on with the first
// message's id as before shows each message once that was there at the beginning, in the order of the history. Errors:
// NotFound (no such chat), Invalid (before is not a message of this chat).
func (s *Store) HistoryPage(ctx context.Context, chatID, before string, limit int) (messages []chat.Message, more bool, err error) {
	var d chatDocument
	var bucket int64 // of the message before
	group, reading := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		d, err = get[chatDocument](reading, s, chats, chatID)
		return err
	})
	if before != "" {
		group.Go(func() (err error) {
			bucket, err = s.bucketOfMessage(reading, chatID, before)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return nil, false, err
	}
	count := bucketCount(d.Filled)
	r := pageReader{
		store: s, chatID: chatID, count: count, lateness: time.Duration(d.Late) * time.Millisecond,
		first: count, end: count, limit: max(limit, 1),
	}
	if before != "" {
		if err := r.seek(ctx, bucket, before); err != nil {
			return nil, false, err
		}
	}
	return r.page(ctx)
}

// pageReader reads neighbouring buckets until they are sure to hold the whole page.
type pageReader struct {
	store    *Store
	chatID   string
	count    int64 // of the chat's buckets
	lateness time.Duration
	limit    int

	first, end int64    // the buckets that have been read: from first to before end
	read       []stored // their messages, in the order of the history
	cursor     *stored  // the page ends before it; nil: at the end
}

// seek reads the bucket of the message with that id, and those above it that may hold earlier messages.
func (r *pageReader) seek(ctx context.Context, bucket int64, id string) error {
	r.count = max(r.count, bucket+1) // it may have been appended since the chat was read
	r.first, r.end = bucket, bucket
	if err := r.grow(ctx, bucket, bucket+1); err != nil {
		return err
	}
	n := slices.IndexFunc(r.read, func(e stored) bool { return e.id == id })
	if n < 0 {
		return noSuchMessage()
	}
	cursor := r.read[n]
	r.cursor = &cursor
	for r.end < r.count && !r.latest().After(cursor.at.Add(r.lateness)) {
		if err := r.grow(ctx, r.first, r.end+1); err != nil {
			return err
		}
	}
	return nil
}

// page reads downwards from where the reader stands.
func (r *pageReader) page(ctx context.Context) (messages []chat.Message, more bool, err error) {
	for {
		before := r.beforeCursor()
		missing := r.limit + 1 - len(before) // one more than the page has, to know whether there are more
		if r.first == 0 || missing <= 0 && r.nothingBelow(before[len(before)-r.limit]) {
			start := max(len(before)-r.limit, 0)
			messages, err = parseAll(before[start:])
			return messages, start > 0, err
		}
		step := 1 + int64(max(missing-1, 0)/bucketUnits)
		if err := r.grow(ctx, max(r.first-step, 0), r.end); err != nil {
			return nil, false, err
		}
	}
}

// beforeCursor are the messages that have been read and may be on the page.
func (r *pageReader) beforeCursor() []stored {
	if r.cursor == nil {
		return r.read
	}
	n, _ := slices.BinarySearchFunc(r.read, *r.cursor, compareStored)
	return r.read[:n]
}

// nothingBelow reports whether all messages in buckets that have not been read are earlier than e.
func (r *pageReader) nothingBelow(e stored) bool {
	return e.at.After(r.read[0].at.Add(r.lateness))
}

// latest is the creation time of the latest message that has been read.
func (r *pageReader) latest() time.Time { return r.read[len(r.read)-1].at }

// grow reads what is missing of the buckets from first to before end.
func (r *pageReader) grow(ctx context.Context, first, end int64) error {
	below, err := r.store.readBuckets(ctx, r.chatID, first, r.first)
	if err != nil {
		return err
	}
	above, err := r.store.readBuckets(ctx, r.chatID, r.end, end)
	if err != nil {
		return err
	}
	r.first, r.end = first, end
	r.read = inOrder(slices.Concat(below, r.read, above))
	return nil
}

// bucketOfMessage returns the bucket in which the message lies if it is one of the chat's. Greetings have no place of their
// own: they are in the first.
func (s *Store) bucketOfMessage(ctx context.Context, chatID, id string) (int64, error) {
	if len(id) > maxMessageIDLen || !utf8.ValidString(id) {
		return 0, noSuchMessage()
	}
	place, err := get[placeDocument](ctx, s, messages, id)
	switch {
	case apperr.Is(err, apperr.NotFound):
		return 0, nil
	case err != nil:
		return 0, err
	case place.ChatID != chatID:
		return 0, noSuchMessage()
	}
	return place.Bucket, nil
}

// noSuchMessage says the same of an unknown message and of one of another chat.
func noSuchMessage() error {
	var wrong apperr.Fields
	wrong.Add("before", "must be the id of a message of the open chat")
	return wrong.Err()
}
