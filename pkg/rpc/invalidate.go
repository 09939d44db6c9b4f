package rpc

import (
	"context"
	"errors"
	"fmt"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/proto-events/subject"
)

// invalidation makes caches drop an entry. Its subject says everything.
type invalidation struct{ kind, key string }

// Subject implements Announcement.
func (i invalidation) Subject() string { return subject.Invalidation(i.kind, i.key) }

// AppendJSON implements Announcement.
func (i invalidation) AppendJSON(dst []byte) []byte { return dst }

func parseInvalidation(subj string, _ []byte) (invalidation, error) {
	kind, key, ok := subject.ParseInvalidation(subj)
	if !ok {
		return invalidation{}, errors.New("not the subject of an invalidation")
	}
	return invalidation{kind, key}, nil
}

// Invalidate makes all processes, including this one, drop the cache entry of kind and key. It returns after
// the server has received the message. Disconnected processes miss it and rely on the short TTL of cache
// entries.
func (c *Conn) Invalidate(ctx context.Context, kind, key string) error {
	if !subject.Valid(kind) || !subject.Valid(key) {
		return apperr.InvalidEvent.New().
			Wrap(fmt.Errorf("invalidating %q %q: not valid subject tokens", kind, key))
	}
	return c.Announce(ctx, invalidation{kind, key})
}

// OnInvalidate calls forget sequentially for every invalidation until stop is called; see [Conn.Subscribe].
func (c *Conn) OnInvalidate(forget func(kind, key string)) (stop func(), err error) {
	return Listen(c, subject.AllInvalidations, "", parseInvalidation, func(i invalidation) { forget(i.kind, i.key) })
}
