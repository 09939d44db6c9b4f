package chat

import (
	"time"
	"unicode/utf8"
)

// Window is how long after the visitor's last message a company may write into a chat (spec, "States and transitions").
const Window = 24 * time.Hour

// Channel determines how a chat reaches its visitor.
type Channel string

const (
	ChannelWidget Channel = "widget" // the embedded widget: replies go out over Socket.IO
	ChannelPhone  Channel = "phone"  // a phone number: messages go to OUTBOUND, to a channel connector
)

// Status is the state of a chat. Transitions are pending -> active -> closed; see docs/lifecycle.md.
type Status string

const (
	Pending Status = "pending" // created, and the visitor has not written yet
	Active  Status = "active"  // the visitor has written
	Closed  Status = "closed"  // closed by an agent or operator, or after the visitor's idle time
)

// Chat is one conversation. Its status is derived from its times, each of which is written once or only moves forward.
type Chat struct {
	ID         string
	CompanyID  string
	AppID      string // empty for a chat that a push opened
	ChatUserID string
	Channel    Channel
	CreatedAt  time.Time

	WindowStartedAt time.Time // the visitor's last message; CreatedAt before the first
	VisitorWroteAt  time.Time // zero until the visitor has written
	// IdleClosesAt is the last instant at which the chat is open unless the visitor writes; zero: no idle close.
	IdleClosesAt time.Time
	ClosedAt     time.Time // zero until it is closed explicitly, not by reaching IdleClosesAt

	Control      Control
	AgentsReadAt time.Time // the company has read the visitor's messages up to this time; zero: none
	Rating       Rating    // the visitor's rating of the chat
}

// Control determines which side answers the visitor. The latest one counts.
type Control struct {
	Agent     bool      // an agent answers, and the bot is silent
	Assignee  string    // id of the user that the chat is assigned to; empty: none
	ChangedAt time.Time // zero: unchanged since the chat was created
	Handover  Handover  // why the agents have the chat
}

// ReadCursor is the position in a chat's history up to which one side has read: the time and the id of a message.
// Without an id, all messages of that millisecond are read. The zero ReadCursor: nothing is read.
type ReadCursor struct {
	At        time.Time
	MessageID string
}

// Last returns the greatest time and id that a message at the cursor may have.
func (c ReadCursor) Last() (at time.Time, id string) {
	if c.MessageID != "" || c.At.IsZero() {
		return c.At, c.MessageID
	}
	return c.At.Truncate(time.Millisecond).Add(time.Millisecond - time.Microsecond), string(utf8.MaxRune)
}

// Covers reports whether the message is at the cursor or before it.
func (c ReadCursor) Covers(m Message) bool {
	at, id := c.Last()
	if d := m.CreatedAt.Compare(at); d != 0 || at.IsZero() {
		return d < 0
	}
	return m.ID <= id
}

// AgentsRead returns the company's read cursor for the visitor's messages.
func (c Chat) AgentsRead() ReadCursor { return ReadCursor{At: c.AgentsReadAt} }

// Unread reports whether the visitor has written a message that no agent has read.
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

// Open reports whether the chat is pending or active at now. A chat with ClosedAt is closed whatever now is, so that
// replicas with slightly different clocks agree.
func (c Chat) Open(now time.Time) bool { return c.ClosedAt.IsZero() && !c.Idle(now) }

// Idle reports whether the visitor has been silent for longer than the idle time, after which the chat counts
// as closed.
func (c Chat) Idle(now time.Time) bool { return !c.IdleClosesAt.IsZero() && now.After(c.IdleClosesAt) }

// EndedAt returns when the chat was closed, explicitly or by idleness; zero if it is open at now.
func (c Chat) EndedAt(now time.Time) time.Time {
	switch {
	case c.Open(now):
		return time.Time{}
	case !c.ClosedAt.IsZero():
		return c.ClosedAt
	}
	return c.IdleClosesAt
}

// WindowExpiresAt is the last instant at which a company may write into the chat.
func (c Chat) WindowExpiresAt() time.Time { return c.WindowStartedAt.Add(Window) }

// InWindow reports whether a company may write into the chat at now: the chat is open and its window has not expired.
// Exactly 24 hours is still inside.
func (c Chat) InWindow(now time.Time) bool { return c.Open(now) && !now.After(c.WindowExpiresAt()) }

// Windowed reports whether the window also binds agents: it is a rule of phone channels. In the widget an
// agent may write as long as the chat is open. Companies' systems are bound on every channel.
func (c Chat) Windowed() bool { return c.Channel != ChannelWidget }
