package bots

import "time"

const (
	// ActionValid is how long a visitor may agree to an action.
	ActionValid = time.Hour
	// ActionKept is how long an action is kept: longer than any repeat of a visitor's answer.
	ActionKept = 48 * time.Hour
)

// ActionState is how far an [Action] is.
type ActionState string

// The states of actions, which only follow each other in this order.
const (
	ActionAsked    ActionState = "asked"
	ActionDeclined ActionState = "declined"
	ActionRunning  ActionState = "running" // also if the process has died since
	ActionDone     ActionState = "done"
)

// Action is a call of a tool that changes something, and that a visitor is asked about. The store has it before the
// visitor sees the question, and its state decides that it is carried out at most once.
type Action struct {
	ID           string      `json:"-"` // of the message that asks
	CompanyID    string      `json:"-"`
	AppID        string      `json:"-"`
	ChatID       string      `json:"-"`
	ChatUserID   string      `json:"chatUserId"`
	ConnectionID string      `json:"connectionId"` // of the tool's server
	Tool         string      `json:"tool"`
	Arguments    string      `json:"arguments"` // a JSON object
	Question     string      `json:"question"`  // as the visitor reads it
	AskedAt      time.Time   `json:"askedAt"`
	State        ActionState `json:"-"`
	By           string      `json:"by,omitempty"`     // the visitor's message that agreed or declined
	Result       string      `json:"result,omitempty"` // of the tool, shortened
	Failed       bool        `json:"failed,omitempty"` // the result is an error
}

// ExpiresAt returns until when the action is kept.
func (a Action) ExpiresAt() time.Time { return a.AskedAt.Add(ActionKept) }
