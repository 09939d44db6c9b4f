package chat

import (
	"strconv"
	"time"
	"unicode/utf8"
)

// Support configures how agents serve the visitors of an application. The zero Support means: at any time, when the bot
// hands over or an agent takes over.
type Support struct {
	Hours *BusinessHours `json:"hours,omitempty"` // nil: always open
	// HandoverButton offers visitors a button that requests an agent.
	HandoverButton bool `json:"handoverButton"`
	// AgentsOnly assigns new chats to the agents, so that no bot answers.
	AgentsOnly bool `json:"agentsOnly"`
	// Rating asks visitors for a rating when an agent closes their chat.
	Rating bool `json:"rating"`
}

// Check validates the settings.
func (s Support) Check() []DataFault {
	if s.Hours == nil {
		return nil
	}
	return s.Hours.Check("hours")
}

// Open reports whether agents answer at t.
func (s Support) Open(t time.Time) bool { return s.Hours == nil || s.Hours.Open(t) }

// OpensAt returns the first instant from t on at which agents answer; zero if unknown.
func (s Support) OpensAt(t time.Time) time.Time {
	if s.Hours == nil {
		return t
	}
	return s.Hours.OpensAt(t)
}

// Origins of a handover.
const (
	ByBot         = "bot"
	ByVisitor     = "visitor"
	ByOfflineForm = "offline_form" // the visitor left a message while the agents were unavailable
	ByNoBot       = "no_bot"       // the installation has no bot
)

// Limits of a [Handover].
const (
	MaxHandoverReason = 256 // characters
	MaxHandoverNote   = 1000
)

// Handover records why agents have a chat. It stays until the chat returns to the bot; the zero Handover is an agent's
// decision.
type Handover struct {
	By     string    // [ByBot], [ByVisitor], [ByOfflineForm] or [ByNoBot]
	Reason string    // a few words
	Note   string    // for the agents
	At     time.Time // the ChangedAt of the [Control] that handed the chat over
}

// Check validates the texts of a handover; field names begin with path.
func (h Handover) Check(path string) []DataFault {
	var f dataFaults
	if utf8.RuneCountInString(h.Reason) > MaxHandoverReason {
		f.add(path+".reason", "must have at most "+strconv.Itoa(MaxHandoverReason)+" characters")
	}
	if utf8.RuneCountInString(h.Note) > MaxHandoverNote {
		f.add(path+".note", "must have at most "+strconv.Itoa(MaxHandoverNote)+" characters")
	}
	return f
}

// Waiting reports whether the chat is in the agents' queue: handed over and unassigned.
func (c Control) Waiting() bool { return c.Agent && c.Assignee == "" }

// Waiting reports whether the visitor waits for an agent at now: the chat is open and in the agents' queue,
// and the visitor has written or was handed over. Until then, a chat without a bot waits for nothing.
func (c Chat) Waiting(now time.Time) bool {
	asked := !c.VisitorWroteAt.IsZero() || c.Control.Handover.By != ""
	return c.Open(now) && c.Control.Waiting() && asked
}

// Limits of a [Rating].
const (
	MinScore         = 1
	MaxScore         = 5
	MaxRatingComment = 1000 // characters
)

const (
	// RatingOffered is how long after closing a chat may be rated.
	RatingOffered = 7 * 24 * time.Hour
	// RatingChangeable is how long after the first rating the visitor may change it.
	RatingChangeable = 24 * time.Hour
)

// Rating is a visitor's rating of a chat that an agent has closed. The latest one counts.
type Rating struct {
	Score   int // MinScore to MaxScore; 0: not rated
	Comment string
	FirstAt time.Time // time of the first rating
	At      time.Time
}

// Check validates a visitor's rating.
func (r Rating) Check() []DataFault {
	var f dataFaults
	if r.Score < MinScore || r.Score > MaxScore {
		f.add("score", "must be an integer from 1 to 5")
	}
	if utf8.RuneCountInString(r.Comment) > MaxRatingComment {
		f.add("comment", "must have at most "+strconv.Itoa(MaxRatingComment)+" characters")
	}
	return f
}

// RateableUntil returns the last instant at which the visitor may rate the chat or change the rating; zero: never. A
// chat that was closed only for idleness cannot be rated.
func (c Chat) RateableUntil() time.Time {
	switch {
	case c.ClosedAt.IsZero() || !c.IdleClosesAt.IsZero() && !c.ClosedAt.Before(c.IdleClosesAt):
		return time.Time{}
	case c.Rating.Score != 0:
		return c.Rating.FirstAt.Add(RatingChangeable)
	}
	return c.ClosedAt.Add(RatingOffered)
}

// Rateable reports whether the visitor may rate the chat at now.
func (c Chat) Rateable(now time.Time) bool {
	until := c.RateableUntil()
	return !until.IsZero() && !now.After(until)
}
