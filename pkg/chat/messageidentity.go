package chat

import "time"

// MessageIdentity is the id and the time that a message keeps however often it is published. With the zero MessageIdentity the service
// that accepts the message assigns both.
type MessageIdentity struct {
	ID string
	At time.Time
	// Again: an earlier attempt with the same identity did not finish, and the message may exist already.
	Again bool
}

// NewMessageIdentity returns the identity of a new message.
func NewMessageIdentity(now time.Time) MessageIdentity {
	return MessageIdentity{ID: NewID(), At: now.UTC().Truncate(time.Millisecond)}
}
