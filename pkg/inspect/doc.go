// Package inspect looks into the streams for operators: how far the consumers are, dead letters, where a message is, and what passes. It
// takes nothing from anybody. parleyctl and the panel show what it finds.
//
// event.go: an event as people look at it. letter.go: dead letters. stream.go: streams and consumers. trace.go: where a message is.
package inspect

import (
	"time"

	"github.com/parley-chat/parley/pkg/chat"
)

// Time is a time as it stands everywhere in Parley.
type Time time.Time

// IsZero reports whether there is no time.
func (t Time) IsZero() bool { return time.Time(t).IsZero() }

// String is empty for no time.
func (t Time) String() string {
	if t.IsZero() {
		return ""
	}
	return time.Time(t).UTC().Format(chat.TimeFormat)
}

// MarshalText implements [encoding.TextMarshaler].
func (t Time) MarshalText() ([]byte, error) { return []byte(t.String()), nil }
