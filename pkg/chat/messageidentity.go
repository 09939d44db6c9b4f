package chat

import "time"

// MessageIdentity is the id and time of a message, which stay the same however often it is published. With the zero
// MessageIdentity the accepting service assigns both.
type MessageIdentity struct {
	ID string
	At time.Time
	// Again is set if an earlier attempt with the same identity did not finish, and the message may already exist.
	Again bool
}

// NewMessageIdentity returns the identity of a new message.
func NewMessageIdentity(now time.Time) MessageIdentity {
	return MessageIdentity{ID: NewID(), At: EnteredAt(now)}
}

// EnteredAt returns a time in the resolution of [Message].CreatedAt.
func EnteredAt(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }
