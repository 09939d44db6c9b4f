package webhook

import "time"

// Statuses of a delivery.
const (
	Pending   = "pending"   // an attempt is due at DueAt
	Delivered = "delivered" // an attempt was answered with 2xx
	Failed    = "failed"    // abandoned; see Delivery.Reason
)

// Reasons of failed deliveries.
const (
	ReasonExhausted = "exhausted" // all attempts failed
	ReasonGone      = "gone"      // the endpoint answered 410
	ReasonDisabled  = "disabled"  // the endpoint is disabled
)

// DefaultRetention is how long a finished delivery is kept unless the company has set a retention.
const DefaultRetention = 30 * 24 * time.Hour

// MaxStored is how many bytes the stored deliveries of a company may take together, pending and ended, by
// [Delivery.Size]; new ones above it are dropped. It is a part of the store that all companies share, and has
// room for about 350,000 deliveries of usual size, or 21,000 of the largest whose ten attempts have failed with
// the longest answers.
const MaxStored = 1 << 30

// Delivery is one event to deliver to one endpoint, and the log of its attempts.
type Delivery struct {
	ID         string // webhook-id
	CompanyID  string
	EndpointID string
	EventType  string
	ChatID     string // of the event, for erasure; empty: none
	Body       string
	// Deliveries of an endpoint with the same OrderKey are sent one after another, the lowest OrderNumber first.
	OrderKey    string // empty: no order
	OrderNumber int64  // when the bus stored the event, in nanoseconds since 1970; stores call it position
	CreatedAt   time.Time

	Status    string
	Reason    string    // why it failed
	DueAt     time.Time // of the next attempt; while a processor has claimed it, the end of the lease; zero: none
	Tries     int       // since it was created or replayed
	Attempts  []Attempt // oldest first
	ExpiresAt time.Time // when it is removed; zero while it is pending
}

// Size returns the bytes that count for the delivery before its first attempt; see [Attempt.Size].
func (d Delivery) Size() int64 { return wholeKiB(recordBytes + len(d.Body)) }

// Size returns the bytes that an attempt adds to its delivery. They count until the delivery is removed, also
// of an attempt that is no longer kept.
func (a Attempt) Size() int64 {
	return wholeKiB(attemptBytes + len(a.URL) + len(a.Answer) + len(a.Error))
}

const (
	recordBytes  = 512 // of a delivery without its body: ids, times, index entries
	attemptBytes = 128 // of an attempt without its texts
)

// wholeKiB rounds up. Few different sizes are quickly added up.
func wholeKiB(bytes int) int64 {
	const kib = 1 << 10
	return int64((bytes + kib - 1) / kib * kib)
}

// MaxAttempts is how many attempts of a delivery are kept; older ones are dropped.
const MaxAttempts = 50

// Attempt is one request and its response.
type Attempt struct {
	At         time.Time
	URL        string
	Duration   time.Duration
	StatusCode int    // zero: no response
	Answer     string // the first bytes of the response body
	Error      string // why there was no response
	NextAt     time.Time
}

// Outcome is the state of a delivery after an attempt.
type Outcome struct {
	Status    string
	Reason    string
	DueAt     time.Time
	ExpiresAt time.Time
}

// Postponed is the outcome of a delivery that was not attempted: it stays pending, and is due at the given time.
func Postponed(at time.Time) Outcome { return Outcome{Status: Pending, DueAt: at} }

// InOrder is the place of a delivery among those with its OrderKey.
type InOrder struct {
	ID          string // of the delivery
	OrderNumber int64
}

// Due is a delivery that is ready for a processor.
type Due struct {
	ID         string
	EndpointID string
}
