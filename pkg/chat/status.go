package chat

import "time"

// What may be known of a message that a company sent, each later than the one before. That it has failed is outweighed by
// its having arrived all the same: a connector may have tried again.
const (
	StatusAccepted  = "accepted"  // the API has answered for it
	StatusStored    = "stored"    // it is in the chat's history
	StatusFailed    = "failed"    // delivery was given up
	StatusDelivered = "delivered" // it is on the reader's device
	StatusRead      = "read"      // the reader has seen it
)

// MessageStatus is what is known of a message that a company sent: for each status when it was reached first. A zero time is
// one that nothing is known of.
//
// It only grows: [MessageStatus.Join] is commutative, associative and idempotent, so reports may come in any order, late or
// twice and end in the same knowledge, and the status never steps back.
type MessageStatus struct {
	ChatID      string // empty until it is stored
	AcceptedAt  time.Time
	StoredAt    time.Time
	DeliveredAt time.Time
	ReadAt      time.Time
	Failure     Failure
}

// Failure is when and why a message was given up first.
type Failure struct {
	At     time.Time
	Reason string
}

// before orders failures: by time, then by reason, so that of two at the same time always the same one counts.
func (f Failure) before(g Failure) bool {
	if c := f.At.Compare(g.At); c != 0 {
		return c < 0
	}
	return f.Reason < g.Reason
}

// Join returns what s and other know together.
func (s MessageStatus) Join(other MessageStatus) MessageStatus {
	joined := MessageStatus{
		ChatID:      max(s.ChatID, other.ChatID), // a message has one chat: they differ only where one is not known
		AcceptedAt:  earliest(s.AcceptedAt, other.AcceptedAt),
		StoredAt:    earliest(s.StoredAt, other.StoredAt),
		DeliveredAt: earliest(s.DeliveredAt, other.DeliveredAt),
		ReadAt:      earliest(s.ReadAt, other.ReadAt),
		Failure:     s.Failure,
	}
	if s.Failure.At.IsZero() || !other.Failure.At.IsZero() && other.Failure.before(s.Failure) {
		joined.Failure = other.Failure
	}
	return joined
}

func earliest(a, b time.Time) time.Time {
	if a.IsZero() || !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}

// Status is the furthest that the message has come; empty when nothing is known of it.
func (s MessageStatus) Status() string {
	switch {
	case !s.ReadAt.IsZero():
		return StatusRead
	case !s.DeliveredAt.IsZero():
		return StatusDelivered
	case !s.Failure.At.IsZero():
		return StatusFailed
	case !s.StoredAt.IsZero():
		return StatusStored
	case !s.AcceptedAt.IsZero():
		return StatusAccepted
	}
	return ""
}

// Delivered is when the message was delivered. What was read before anybody reported that was delivered by then.
func (s MessageStatus) Delivered() time.Time { return earliest(s.DeliveredAt, s.ReadAt) }
