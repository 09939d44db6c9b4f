package chat

import "time"

// Statuses of a message that a company sent, each later than the one before. Delivered and read override failed: a
// connector may have retried.
const (
	StatusAccepted  = "accepted"  // the API has acknowledged it
	StatusStored    = "stored"    // it is in the chat's history
	StatusFailed    = "failed"    // delivery was abandoned
	StatusDelivered = "delivered" // it has reached the visitor's device
	StatusRead      = "read"      // the visitor has read it
)

// MessageStatus is the delivery state of a message that a company sent: when each status was first reached. A zero time
// means that the status is not known to be reached.
//
// [MessageStatus.Join] is commutative, associative and idempotent, so reports in any order, late or duplicate, lead to
// the same state, and the status never moves backwards.
type MessageStatus struct {
	ChatID      string // empty until the message is stored
	AcceptedAt  time.Time
	StoredAt    time.Time
	DeliveredAt time.Time
	ReadAt      time.Time
	Failure     Failure
}

// Failure records when and why delivery was first abandoned.
type Failure struct {
	At     time.Time
	Reason string
}

// before orders failures by time, then by reason, so that the choice between two at the same time is deterministic.
func (f Failure) before(g Failure) bool {
	if c := f.At.Compare(g.At); c != 0 {
		return c < 0
	}
	return f.Reason < g.Reason
}

// Join merges s and other.
func (s MessageStatus) Join(other MessageStatus) MessageStatus {
	joined := MessageStatus{
		ChatID:      max(s.ChatID, other.ChatID), // a message has one chat: they differ only if one is unknown
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

// Status returns the latest status reached; empty if none is known.
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

// Delivered returns when the message was delivered. A message that was read counts as delivered by then.
func (s MessageStatus) Delivered() time.Time { return earliest(s.DeliveredAt, s.ReadAt) }
