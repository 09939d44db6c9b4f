package chat

import (
	"encoding/json"
	"time"
)

// Company owns applications, templates, chats and access tokens; nothing is ever visible across companies.
type Company struct {
	ID   string
	Name string
	// WebhookRetention is how long the log of webhook deliveries is kept, in whole seconds; zero: 30 days.
	WebhookRetention time.Duration
}

// ProviderWidget is the provider of an application that the Widget API serves.
const ProviderWidget = "widget"

// Application is a chat application: what a widget on a website belongs to.
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
	// FileRetention is how long files that visitors send are kept, in whole seconds; zero: as long as the service's configuration
	// says. It counts for what is sent from then on.
	FileRetention time.Duration
	// Identity is how visitors prove who they are. It is kept apart from the rest: PutApplication leaves it as it is.
	Identity IdentityVerification
	// Support is how agents serve visitors. PutApplication leaves it as it is, too.
	Support Support
}

// Statuses of a template. Only one that is approved may be sent.
const (
	TemplateDraft    = "draft"   // being written
	TemplatePending  = "pending" // waits for approval
	TemplateApproved = "approved"
	TemplateRejected = "rejected"
)

// MessageTemplate is a text that a company may send to a phone number outside of the window once it is approved.
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
	UserID     string // the id that the company's own system has for this person
	VerifiedBy string // the identity that the visitor has proved: UserID, Email or Phone; empty: none
	ChatNumber int    // how many chats this visitor has had; the last one may be open
	// TokensValidFrom ends the tokens that were issued before it; zero: none were revoked.
	TokensValidFrom time.Time
}

// Name is the nameOfSender of the visitor's messages.
func (v Visitor) Name() string {
	switch {
	case v.FirstName != "" && v.LastName != "":
		return v.FirstName + " " + v.LastName
	case v.FirstName != "":
		return v.FirstName
	case v.LastName != "":
		return v.LastName
	}
	return "Visitor"
}
