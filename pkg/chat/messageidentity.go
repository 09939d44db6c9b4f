package chat

import "time"

// MessageIdentity is what makes a message the same message however often it is published: its id and its time. The zero MessageIdentity leaves
// both to whoever accepts the message.
type MessageIdentity struct {
	ID string
	At time.Time
	// Again says that an earlier try with the same identity did not finish: the message may be there already.
	Again bool
}

// NewMessageIdentity returns that of a message which is made now.
func NewMessageIdentity(now time.Time) MessageIdentity {
	return MessageIdentity{ID: NewID(), At: now.UTC().Truncate(time.Millisecond)}
}
