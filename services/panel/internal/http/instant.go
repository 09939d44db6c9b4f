package http

import (
	"time"

	"github.com/parley-chat/parley/pkg/chat"
)

// instant is a time in the API's format.
type instant time.Time

// IsZero reports whether the time is unset.
func (i instant) IsZero() bool { return time.Time(i).IsZero() }

// MarshalText implements [encoding.TextMarshaler].
func (i instant) MarshalText() ([]byte, error) { return chat.AppendTime(nil, time.Time(i)), nil }
