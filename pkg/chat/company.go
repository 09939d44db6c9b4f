package chat

import (
	"encoding/json"
	"strings"
	"time"
)

// Company owns applications, templates, chats and access tokens; nothing is visible across companies.
type Company struct {
	ID   string
	Name string
	// WebhookRetention is how long the log of webhook deliveries is kept, in whole seconds; zero: 30 days.
	WebhookRetention time.Duration
}

// ProviderWidget is the provider of applications served by the Widget API.
const ProviderWidget = "widget"

// Application is a chat application, such as the widget of a website.
type Application struct {
	ID        string
	CompanyID string
	Provider  string
	BotName   string
	Name      string
	// WidgetConfigs is the JSON object that models the widget, returned exactly as it was stored.
	WidgetConfigs json.RawMessage
	// AllowedOrigins are the origins that may embed the widget, see [CheckOrigins]; empty: any.
	AllowedOrigins []string
	// FileRetention is how long visitors' files are kept, in whole seconds; zero: the service's default. Changes apply
	// to files that are uploaded afterwards.
	FileRetention time.Duration
	// Identity configures how visitors prove their identity. PutApplication does not change it.
	Identity IdentityVerification
	// Support configures how agents serve visitors. PutApplication does not change it.
	Support Support
}

// Statuses of a template. Only an approved template may be sent.
const (
	TemplateDraft    = "draft"   // being edited
	TemplatePending  = "pending" // awaiting approval
	TemplateApproved = "approved"
	TemplateRejected = "rejected"
)

// MessageTemplate is a text that a company may send to a phone number outside the window, once it is approved.
type MessageTemplate struct {
	ID         string
	CompanyID  string
	Name       string
	Status     string
	Text       string // with placeholders such as {{username}}
	Parameters []TemplateParameter
}

// TemplateParameter is a placeholder of a template with its default; an empty default: a value is required (see
// [MessageTemplate.Fill]).
type TemplateParameter struct {
	Name    string
	Default string
}

// Visitor is a person who writes to an application or receives a push.
type Visitor struct {
	ID         string // chatUserId
	CompanyID  string
	AppID      string // empty for the recipient of a push
	FirstName  string
	LastName   string
	Email      string
	Phone      string
	UserID     string // the visitor's id in the company's own system
	VerifiedBy string // the proven identity: UserID, Email or Phone; empty: none
	ChatNumber int    // number of chats of this visitor; only the last one may be open
	// TokensValidFrom invalidates tokens issued before it; zero: none were revoked.
	TokensValidFrom time.Time
}

// GivenName returns the first and last name that the visitor has given; empty: neither.
func (v Visitor) GivenName() string { return strings.TrimSpace(v.FirstName + " " + v.LastName) }

// Name returns the nameOfSender of the visitor's messages.
func (v Visitor) Name() string {
	if name := v.GivenName(); name != "" {
		return name
	}
	return "Visitor"
}
