package bots

import (
	"time"

	"github.com/parley-chat/parley/pkg/chat"
)

// MaxTestTime is the longest time that a [Test] takes.
const MaxTestTime = time.Minute

// Test is a question to settings of a bot that need not be published. Nothing of it reaches a visitor or a chat, and the
// tokens count as the application's.
type Test struct {
	CompanyID string   `json:"companyId"`
	AppID     string   `json:"appId"`
	Settings  Settings `json:"settings"`

	// ChatUserID, ChatID and Message are those of the question: a real one of a visitor, or one made up by a user.
	ChatUserID string       `json:"chatUserId"`
	ChatID     string       `json:"chatId"`
	Message    chat.Message `json:"message,omitzero"`
	// Made reports that the question is made up, after the turns of Before. A real one comes after what the history has.
	Made   bool   `json:"made,omitempty"`
	Before []Turn `json:"before,omitempty"`

	// Probe asks only whether the server answers: a language model for a few tokens, a webhook with a HEAD request,
	// without a message.
	Probe bool `json:"probe,omitempty"`
}

// ToolsOf asks for the tools of a company's connection.
type ToolsOf struct {
	CompanyID    string `json:"companyId"`
	ConnectionID string `json:"connectionId"`
}

// ToolList is the answer to [ToolsOf].
type ToolList struct {
	Tools   []ListedTool `json:"tools"`
	Failure string       `json:"failure,omitempty"` // why the server has not answered; empty: it has
}

// ListedTool is a tool as its server describes it.
type ListedTool struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	ReadOnly    bool   `json:"readOnly,omitempty"` // as the server says, which nothing proves
}
