package chat

import "time"

// Time is a time whose text, as in JSON, has [TimeFormat]; the zero time has none.
type Time time.Time

// IsZero reports whether the time is zero.
func (t Time) IsZero() bool { return time.Time(t).IsZero() }

// String returns the formatted time; empty for the zero time.
func (t Time) String() string {
	text, _ := t.MarshalText() // never fails
	return string(text)
}

// MarshalText implements [encoding.TextMarshaler].
func (t Time) MarshalText() ([]byte, error) {
	if t.IsZero() {
		return nil, nil
	}
	return AppendTime(nil, time.Time(t)), nil
}
