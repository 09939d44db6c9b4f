package chat

import "time"

// Window is how long after the visitor's last message a company may write into a chat (spec, "States and transitions").
const Window = 24 * time.Hour

// Channel is the way by which a chat reaches its visitor.
type Channel string

const (
	ChannelWidget Channel = "widget" // the embedded widget: replies go out over Socket.IO
	ChannelPhone  Channel = "phone"  // a phone number: messages go to OUTBOUND, to a channel connector
)

// Status is where a chat stands. The moves are pending -> active -> closed; see docs/lifecycle.md.
type Status string

const (
	Pending Status = "pending" // registered, the visitor has been silent
	Active  Status = "active"  // the visitor has written
	Closed  Status = "closed"  // by an operator, or because the visitor has been silent for too long
)

// Chat is one conversation. Its status follows from its times, each of which is written once or only moves forward.
type Chat struct {
	ID         string
	CompanyID  string
	AppID      string // empty for a chat that a push opened
	ChatUserID string
	Channel    Channel
	CreatedAt  time.Time

	WindowStartedAt time.Time // the visitor's last message; CreatedAt before the first
	VisitorWroteAt  time.Time // zero until the visitor has written
	IdleClosesAt    time.Time // the last instant at which it is open unless the visitor writes; zero: idleness closes nothing
	ClosedAt        time.Time // zero until it has been closed, other than by the passing of IdleClosesAt

	Control      Control
	AgentsReadAt time.Time // what the visitor wrote up to then has been read by the company; zero: nothing
	Rating       Rating    // what the visitor says about it
}

// Control is which side answers the visitor. The latest one counts.
type Control struct {
	Agent     bool      // an agent answers, and the bot is silent
	Assignee  string    // id of the user that the chat is assigned to; empty: none
	ChangedAt time.Time // zero: as it was opened
	Handover  Handover  // why agents have it
}

// ReadCursor is the place in a chat's history up to which one side has read: the time and the id of a message. Without an id, all messages of
// that time are read. The zero ReadCursor: nothing is read.
type ReadCursor struct {
	At        time.Time
	MessageID string
}

// Covers reports whether the message is at the cursor or before it.
func (c ReadCursor) Covers(m Message) bool {
	if d := m.CreatedAt.Compare(c.At); d != 0 || c.At.IsZero() {
		return d < 0
	}
	return c.MessageID == "" || m.ID <= c.MessageID
}

// AgentsRead is how far the company has read what the visitor wrote.
func (c Chat) AgentsRead() ReadCursor { return ReadCursor{At: c.AgentsReadAt} }

// Unread reports whether the visitor has written something that no agent has read.
func (c Chat) Unread() bool { return c.VisitorWroteAt.After(c.AgentsReadAt) }

// Status derives the chat's status at now.
func (c Chat) Status(now time.Time) Status {
	switch {
	case !c.Open(now):
		return Closed
	case !c.VisitorWroteAt.IsZero():
		return Active
	}
	return Pending
}

// Open reports whether the chat is pending or active at now. What has been closed is so whatever the clock says, so that
// replicas whose clocks differ a little agree on it.
func (c Chat) Open(now time.Time) bool { return c.ClosedAt.IsZero() && !c.Idle(now) }

// Idle reports whether the visitor has been silent for longer than the idle time, after which the chat counts as closed.
func (c Chat) Idle(now time.Time) bool { return !c.IdleClosesAt.IsZero() && now.After(c.IdleClosesAt) }

// WindowExpiresAt is the last instant at which a company may write into the chat.
func (c Chat) WindowExpiresAt() time.Time { return c.WindowStartedAt.Add(Window) }

// InWindow reports whether a company may write into the chat at now: the chat is open and its window has not passed.
// Exactly 24 hours is still inside.
func (c Chat) InWindow(now time.Time) bool { return c.Open(now) && !now.After(c.WindowExpiresAt()) }
