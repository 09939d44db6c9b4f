// Package inspect examines the streams for operators: the progress of consumers, dead letters, the path of a message,
// and live events. It never consumes messages. parleyctl and the panel show its results.
//
// event.go: events in display form. letter.go: dead letters. stream.go: streams and consumers. trace.go: the path of a
// message.
package inspect

import (
	"time"

	"github.com/parley-chat/parley/pkg/chat"
)

// Time is a time in Parley's JSON format.
type Time time.Time

// IsZero reports whether the time is zero.
func (t Time) IsZero() bool { return time.Time(t).IsZero() }

// String returns the formatted time; empty for the zero time.
func (t Time) String() string {
	if t.IsZero() {
		return ""
	}
	return time.Time(t).UTC().Format(chat.TimeFormat)
}

// MarshalText implements [encoding.TextMarshaler].
func (t Time) MarshalText() ([]byte, error) { return []byte(t.String()), nil }
