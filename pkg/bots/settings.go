// Package bots has the bot of an application: the settings that say how its visitors are answered, their versions, and
// the connections to language models that a company has.
//
// settings.go has the settings of one version, bot.go the draft and the published versions, connection.go the
// connections, tool.go the tools that models may call, with action.go for those that change something, usage.go what bots
// may use and have used, call.go the log of calls. Package admin changes them, the processor answers by them.
package bots

import (
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/webhook"
)

// Kind is what answers the visitors of an application.
type Kind string

// The kinds of bots.
const (
	Default Kind = "default" // what the operator has set for all applications
	None    Kind = "none"    // the agents answer
	Demo    Kind = "demo"    // the built-in bot
	Webhook Kind = "webhook" // a server of the company
	Model   Kind = "model"   // a language model
)

// Limits of [Settings].
const (
	MaxHistory     = 200
	MaxTokens      = 100_000
	MaxTemperature = 2
	MaxPrompt      = 16 << 10 // bytes
	MaxModelName   = 200      // characters
	MaxPassages    = 10       // of documents, with a question
	MinDeadline    = 5 * time.Second
	// MaxDeadline is below the two minutes in which the stream recognizes a repeated event. So after a crash between the
	// failure text and the dead letter, the visitor still reads the text once.
	MaxDeadline = 100 * time.Second
	maxPhrases  = 50
	maxPhrase   = 100 // characters
	// DefaultHistory is the number of messages that a model reads if the settings have none.
	DefaultHistory = 20
)

// NoFailureText is a failure text that is not sent.
const NoFailureText = "none"

// Settings say how the visitors of an application are answered.
type Settings struct {
	Kind    Kind            `json:"kind"`
	Webhook WebhookSettings `json:"webhook,omitzero"` // of the kind Webhook
	Model   ModelSettings   `json:"model,omitzero"`   // of the kind Model

	// FailureText is what the visitor reads when the bot gives up on a message; empty: the operator's text,
	// [NoFailureText]: nothing.
	FailureText string   `json:"failureText,omitempty"`
	Handover    Handover `json:"handover,omitzero"`
	Bounds      Bounds   `json:"bounds,omitzero"` // of what calls a server
}

// WebhookSettings are those of a server that answers.
type WebhookSettings struct {
	URL string `json:"url"`
	// DeadlineSeconds is how long the server may fail or take to answer one message; 0: the operator's deadline.
	DeadlineSeconds int `json:"deadlineSeconds,omitempty"`
}

// ModelSettings are those of a language model that answers.
type ModelSettings struct {
	ConnectionID string `json:"connectionId"` // of the company
	Model        string `json:"model"`
	Prompt       string `json:"prompt,omitempty"`  // the system prompt of each chat
	History      int    `json:"history,omitempty"` // messages of the chat that it reads, the visitor's last one included
	// Temperature is from 0 to [MaxTemperature]; nil: the server's default.
	Temperature *float64 `json:"temperature,omitempty"`
	MaxTokens   int      `json:"maxTokens,omitempty"` // of an answer; 0: the server's limit
	Prices      Prices   `json:"prices,omitzero"`     // for the log of calls
	// Knowledge is what it gets of the company's documents with each question.
	Knowledge KnowledgeSettings `json:"knowledge,omitzero"`
	Tools     ToolSettings      `json:"tools,omitzero"`
}

// Connections returns the ids of the connections that the settings use: the model's first.
func (m ModelSettings) Connections() []string {
	ids := []string{m.ConnectionID}
	for _, server := range m.Tools.Servers {
		ids = append(ids, server.ConnectionID)
	}
	return ids
}

// KnowledgeSettings are those of the documents that a language model answers from.
type KnowledgeSettings struct {
	Passages int    `json:"passages,omitempty"` // the best ones, at most [MaxPassages]; 0: none
	Search   Search `json:"search,omitempty"`
}

// Search is what the passages of a question are searched by.
type Search string

const (
	Expanded Search = ""      // the question, and words that the model writes in a short call before its answer
	Plain    Search = "plain" // the question alone
)

// Handover says when the bot hands a chat to the agents without being asked to by its server.
type Handover struct {
	OnFailure bool     `json:"onFailure,omitempty"` // when it gives up on a message
	Phrases   []string `json:"phrases,omitempty"`   // when a visitor's text contains one; compared without case
}

// Requests reports whether a visitor's text contains one of the phrases.
func (h Handover) Requests(text string) bool {
	text = strings.ToLower(text)
	for _, phrase := range h.Phrases {
		if strings.Contains(text, strings.ToLower(phrase)) {
			return true
		}
	}
	return false
}

// Check returns Invalid for settings that cannot be published. It does not look up the connection.
func (s Settings) Check() error {
	var f apperr.Fields
	switch s.Kind {
	case Default, None, Demo:
	case Webhook:
		s.Webhook.check(&f)
	case Model:
		s.Model.check(&f)
	default:
		f.Add("kind", "must be default, none, demo, webhook or model")
	}
	if utf8.RuneCountInString(s.FailureText) > chat.MaxTextLength || !utf8.ValidString(s.FailureText) {
		f.Add("failureText", "must have at most "+strconv.Itoa(chat.MaxTextLength)+" characters")
	}
	s.Handover.check(&f)
	s.Bounds.check(&f)
	return f.Err()
}

func (w WebhookSettings) check(f *apperr.Fields) {
	webhook.CheckURL(f, "webhook.url", w.URL)
	deadline := time.Duration(w.DeadlineSeconds) * time.Second
	if w.DeadlineSeconds != 0 && (deadline < MinDeadline || deadline > MaxDeadline) {
		f.Add("webhook.deadlineSeconds", "must be 5 to 100, or 0 for the default")
	}
}

func (m ModelSettings) check(f *apperr.Fields) {
	if m.ConnectionID == "" {
		f.Add("model.connectionId", "is required")
	}
	checkText(f, "model.model", m.Model, MaxModelName)
	if len(m.Prompt) > MaxPrompt || !utf8.ValidString(m.Prompt) {
		f.Add("model.prompt", "must be text of at most "+strconv.Itoa(MaxPrompt)+" bytes")
	}
	if m.History < 0 || m.History > MaxHistory {
		f.Add("model.history", "must be 1 to "+strconv.Itoa(MaxHistory)+", or 0 for the default")
	}
	if m.Temperature != nil && !(*m.Temperature >= 0 && *m.Temperature <= MaxTemperature) {
		f.Add("model.temperature", "must be 0 to "+strconv.Itoa(MaxTemperature))
	}
	if m.MaxTokens < 0 || m.MaxTokens > MaxTokens {
		f.Add("model.maxTokens", "must be 1 to "+strconv.Itoa(MaxTokens)+", or 0 for the server's limit")
	}
	m.Prices.check(f)
	if m.Knowledge.Passages < 0 || m.Knowledge.Passages > MaxPassages {
		f.Add("model.knowledge.passages", "must be 1 to "+strconv.Itoa(MaxPassages)+", or 0 for none")
	}
	if m.Knowledge.Search != Expanded && m.Knowledge.Search != Plain {
		f.Add("model.knowledge.search", "must be absent or plain")
	}
	m.Tools.check(f)
}

func (h Handover) check(f *apperr.Fields) {
	if len(h.Phrases) > maxPhrases {
		f.Add("handover.phrases", "must be at most "+strconv.Itoa(maxPhrases))
	}
	for _, phrase := range h.Phrases {
		if strings.TrimSpace(phrase) == "" || utf8.RuneCountInString(phrase) > maxPhrase {
			f.Add("handover.phrases", "must each have 1 to "+strconv.Itoa(maxPhrase)+" characters")
			return
		}
	}
}

// checkText checks a text of one line.
func checkText(f *apperr.Fields, field, text string, limit int) {
	if strings.TrimSpace(text) == "" || utf8.RuneCountInString(text) > limit || !printable(text) {
		f.Add(field, "must have 1 to "+strconv.Itoa(limit)+" characters, and no control characters")
	}
}
