package bots

import (
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/parley-chat/parley/pkg/apperr"
)

const (
	// CallKept is how long a call is kept.
	CallKept = 14 * 24 * time.Hour
	// MaxCallsOfDay is the maximum number of an application's questions whose calls are kept on a day.
	MaxCallsOfDay = 2000
	// MaxSent and MaxAnswer bound the texts of a [Call] in bytes; longer ones are cut.
	MaxSent   = 32 << 10
	MaxAnswer = 32 << 10

	maxPrice    = 1_000_000
	maxCurrency = 10 // characters
)

// Call is a call of the server that answers for a bot, with what a company needs to understand the answer. A company's
// log has those of its applications.
type Call struct {
	ID           string       `json:"id"` // UUID version 7: ordered by time
	CompanyID    string       `json:"-"`
	AppID        string       `json:"appId"`
	ChatID       string       `json:"chatId,omitempty"`    // empty: a test without a chat
	MessageID    string       `json:"messageId,omitempty"` // of the visitor
	At           time.Time    `json:"at"`
	Version      int          `json:"version"` // that answered; 0: the operator's default, or a draft
	Kind         Kind         `json:"kind"`
	Server       string       `json:"server,omitempty"` // its address, without user and query
	Model        string       `json:"model,omitempty"`
	Sent         []Turn       `json:"sent"`   // to a model: all of its messages; to a webhook: the request's body
	Answer       string       `json:"answer"` // as the visitor reads it
	Handover     bool         `json:"handover,omitempty"`
	SearchWords  string       `json:"searchWords,omitempty"` // that the model has added to the question ([Expanded])
	Citations    []Citation   `json:"citations,omitempty"`   // of passages, in the answer
	Unanswered   bool         `json:"unanswered,omitempty"`  // a model with documents cites none, and has called no tool
	Tools        []ToolUse    `json:"tools,omitempty"`       // that the model has called, in this order
	Failure      *CallFailure `json:"failure,omitempty"`
	Milliseconds int64        `json:"milliseconds"`
	InputTokens  int          `json:"inputTokens,omitempty"` // as the model reports them
	OutputTokens int          `json:"outputTokens,omitempty"`
	Cost         float64      `json:"cost,omitempty"` // by [Prices], in Currency
	Currency     string       `json:"currency,omitempty"`
}

// Roles of a [Turn].
const (
	RoleSystem    = "system"
	RoleUser      = "user"
	RoleAssistant = "assistant"
	RoleBody      = "body" // the request's body of a webhook
)

// Turn is a message of a conversation.
type Turn struct {
	Role string `json:"role"`
	Text string `json:"text"`
}

// ToolUse is a call of a tool, as the log of calls has it.
type ToolUse struct {
	Name         string      `json:"name"`
	Arguments    string      `json:"arguments"`        // JSON, shortened
	Result       string      `json:"result,omitempty"` // shortened
	Outcome      ToolOutcome `json:"outcome"`
	Milliseconds int64       `json:"milliseconds"`
}

// ToolOutcome is what has become of a call of a tool.
type ToolOutcome string

// The outcomes of calls of tools.
const (
	ToolOK      ToolOutcome = "ok"
	ToolFailed  ToolOutcome = "failed"  // the tool or its server has failed, and the model was told
	ToolAsked   ToolOutcome = "asked"   // the visitor is asked first
	ToolRefused ToolOutcome = "refused" // not called: the visitor has declined, or it is not allowed (any more)
	ToolUnknown ToolOutcome = "unknown" // a process has died during the call, and it is not repeated
)

// Citation is a passage of a document that an answer cites.
type Citation struct {
	Number  int    `json:"number"`            // in the answer: [1]
	Title   string `json:"title"`             // of the document, and the headings of the passage
	Address string `json:"address,omitempty"` // where visitors can read it
}

// CallFailure is why a call has no whole answer.
type CallFailure struct {
	Reason  string `json:"reason"` // such as LLM_TIMEOUT
	Message string `json:"message"`
	Field   string `json:"field,omitempty"` // of the settings, if one is at fault
}

// ExpiresAt returns until when the call is kept.
func (c Call) ExpiresAt() time.Time { return c.At.Add(CallKept) }

// Prices are what a model costs.
type Prices struct {
	Input    float64 `json:"input,omitempty"`  // of a million tokens that it reads
	Output   float64 `json:"output,omitempty"` // of a million tokens that it writes
	Currency string  `json:"currency,omitempty"`
}

// Cost returns what tokens cost.
func (p Prices) Cost(input, output int) float64 {
	return (float64(input)*p.Input + float64(output)*p.Output) / 1e6
}

func (p Prices) check(f *apperr.Fields) {
	for field, price := range map[string]float64{"input": p.Input, "output": p.Output} {
		if !(price >= 0 && price <= maxPrice) {
			f.Add("model.prices."+field, "must be 0 to "+strconv.Itoa(maxPrice))
		}
	}
	if utf8.RuneCountInString(p.Currency) > maxCurrency || !printable(p.Currency) {
		f.Add("model.prices.currency", "must have at most "+strconv.Itoa(maxCurrency)+" characters")
	}
}
