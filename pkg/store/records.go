package store

import (
	"maps"
	"slices"
	"time"

	"github.com/parley-chat/parley/pkg/account"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/webhook"
)

// The records of [Portable], by kind, each with its key. Times are UTC with milliseconds. Opaque JSON is kept as text.

// CompanyRecord is a record of the kind companies; its key is ID.
type CompanyRecord struct {
	ID               string `json:"id"`
	Name             string `json:"name"`
	WebhookRetention int64  `json:"webhookRetention"` // seconds; 0: the default
}

// AccessTokenRecord is a record of the kind accessTokens; its key is Hash.
type AccessTokenRecord struct {
	Hash       string    `json:"hash"`
	CompanyID  string    `json:"companyId"`
	Name       string    `json:"name"`
	Prefix     string    `json:"prefix"`
	CreatedAt  time.Time `json:"createdAt"`
	LastUsedAt time.Time `json:"lastUsedAt"`
	ExpiresAt  time.Time `json:"expiresAt"`
	RevokedAt  time.Time `json:"revokedAt"`
	CreatedBy  string    `json:"createdBy"`
}

// ApplicationRecord is a record of the kind applications; its key is ID.
type ApplicationRecord struct {
	ID              string                 `json:"id"`
	CompanyID       string                 `json:"companyId"`
	Provider        string                 `json:"provider"`
	BotName         string                 `json:"botName"`
	Name            string                 `json:"name"`
	WidgetConfigs   string                 `json:"widgetConfigs"`
	AllowedOrigins  []string               `json:"allowedOrigins"` // null: any
	FileRetention   int64                  `json:"fileRetention"`  // seconds
	Verification    string                 `json:"verification"`
	IdentitySecrets []IdentitySecretRecord `json:"identitySecrets"` // null: none
	Support         string                 `json:"support"`         // see [SupportText]
}

// IdentitySecretRecord is a secret of an application, newest first.
type IdentitySecretRecord struct {
	Value     string    `json:"value"`
	CreatedAt time.Time `json:"createdAt"`
	ExpiresAt time.Time `json:"expiresAt"`
}

// TemplateRecord is a record of the kind templates; its key is ID.
type TemplateRecord struct {
	ID         string                    `json:"id"`
	CompanyID  string                    `json:"companyId"`
	Name       string                    `json:"name"`
	Status     string                    `json:"status"`
	Text       string                    `json:"text"`
	Parameters []TemplateParameterRecord `json:"parameters"` // null: none
}

// TemplateParameterRecord is a placeholder of a template.
type TemplateParameterRecord struct {
	Name    string `json:"name"`
	Default string `json:"default"`
}

// VisitorRecord is a record of the kind visitors; its key is ID.
type VisitorRecord struct {
	ID              string    `json:"id"`
	CompanyID       string    `json:"companyId"`
	AppID           string    `json:"appId"`
	FirstName       string    `json:"firstName"`
	LastName        string    `json:"lastName"`
	Email           string    `json:"email"`
	Phone           string    `json:"phone"`
	UserID          string    `json:"userId"`
	VerifiedBy      string    `json:"verifiedBy"`
	ChatNumber      int       `json:"chatNumber"`
	TokensValidFrom time.Time `json:"tokensValidFrom"`
}

// IdentityRecord is a record of the kind identities; its key is Key.
type IdentityRecord struct {
	Key        string `json:"key"` // see [Identity.Key]
	ChatUserID string `json:"chatUserId"`
}

// ChatRecord is a record of the kind chats; its key is ID.
type ChatRecord struct {
	ID              string    `json:"id"`
	CompanyID       string    `json:"companyId"`
	AppID           string    `json:"appId"`
	ChatUserID      string    `json:"chatUserId"`
	Channel         string    `json:"channel"`
	CreatedAt       time.Time `json:"createdAt"`
	WindowStartedAt time.Time `json:"windowStartedAt"`
	VisitorWroteAt  time.Time `json:"visitorWroteAt"`
	ClosedAt        time.Time `json:"closedAt"`

	AgentInControl   bool      `json:"agentInControl"`
	Assignee         string    `json:"assignee"`
	ControlChangedAt time.Time `json:"controlChangedAt"`
	AgentsReadAt     time.Time `json:"agentsReadAt"`

	HandoverBy     string    `json:"handoverBy"`
	HandoverReason string    `json:"handoverReason"`
	HandoverNote   string    `json:"handoverNote"`
	HandoverAt     time.Time `json:"handoverAt"`
	RatingScore    int       `json:"ratingScore"`
	RatingComment  string    `json:"ratingComment"`
	RatingFirstAt  time.Time `json:"ratingFirstAt"`
	RatingAt       time.Time `json:"ratingAt"`
}

// MessageRecord is a record of the kind messages; its key is ID.
type MessageRecord struct {
	ID            string    `json:"id"`
	ChatID        string    `json:"chatId"`
	CreatedAt     time.Time `json:"createdAt"`
	Type          string    `json:"type"`
	Data          string    `json:"data"` // JSON text
	NameOfSender  string    `json:"nameOfSender"`
	IsFromSupport bool      `json:"isFromSupport"`
}

// StatusRecord is a record of the kind statuses; its key is CompanyID, "|", MessageID.
type StatusRecord struct {
	CompanyID     string    `json:"companyId"`
	MessageID     string    `json:"messageId"`
	ChatID        string    `json:"chatId"`
	AcceptedAt    time.Time `json:"acceptedAt"`
	StoredAt      time.Time `json:"storedAt"`
	DeliveredAt   time.Time `json:"deliveredAt"`
	ReadAt        time.Time `json:"readAt"`
	FailedAt      time.Time `json:"failedAt"`
	FailureReason string    `json:"failureReason"`
}

// ReceiptsRecord is a record of the kind receipts; its key is ChatID.
type ReceiptsRecord struct {
	ChatID      string           `json:"chatId"`
	ReadUpTo    MessagePosition  `json:"readUpTo"` // zero: nothing read
	ReadAt      time.Time        `json:"readAt"`
	Undelivered []AwaitedReceipt `json:"undelivered"` // null: none; ordered by position
	Unread      []AwaitedReceipt `json:"unread"`      // null: none; ordered by position
}

// AwaitedReceipt is a message with a pending report.
type AwaitedReceipt struct {
	MessageID string    `json:"messageId"`
	CreatedAt time.Time `json:"createdAt"`
}

// MessagePosition is the position of a message in its chat's history.
type MessagePosition struct {
	CreatedAt time.Time `json:"createdAt"`
	MessageID string    `json:"messageId"`
}

// FileRecord is a record of the kind files; its key is ID.
type FileRecord struct {
	ID         string    `json:"id"`
	CompanyID  string    `json:"companyId"`
	AppID      string    `json:"appId"`
	ChatUserID string    `json:"chatUserId"`
	SenderID   string    `json:"senderId"`
	Address    string    `json:"address,omitempty"`
	Size       int64     `json:"size"`
	CreatedAt  time.Time `json:"createdAt"`
	ExpiresAt  time.Time `json:"expiresAt"`
}

// UserRecord is a record of the kind users; its key is ID. Sessions are not moved: users sign in again.
type UserRecord struct {
	ID                  string       `json:"id"`
	Email               string       `json:"email"`
	Name                string       `json:"name"`
	Role                account.Role `json:"role"`
	CompanyID           string       `json:"companyId"`
	CreatedAt           time.Time    `json:"createdAt"`
	PasswordHash        string       `json:"passwordHash"`
	Disabled            bool         `json:"disabled"`
	LastSignInAt        time.Time    `json:"lastSignInAt"`
	TOTPSecret          string       `json:"totpSecret"`
	TOTPPending         string       `json:"totpPending"`
	TOTPStep            int64        `json:"totpStep"`
	RecoveryCodes       string       `json:"recoveryCodes"`
	Issuer              string       `json:"issuer"`
	Subject             string       `json:"subject"`
	DeviceKey           string       `json:"deviceKey"`
	InvitationHash      string       `json:"invitationHash"`
	InvitationExpiresAt time.Time    `json:"invitationExpiresAt"`
	Revision            int64        `json:"revision"`
}

// AuditRecord is a record of the kind audit; its key is ID.
type AuditRecord struct {
	ID        string    `json:"id"`
	CompanyID string    `json:"companyId"`
	At        time.Time `json:"at"`
	UserID    string    `json:"userId"`
	User      string    `json:"user"`
	Action    string    `json:"action"`
	Target    string    `json:"target"`
	TargetID  string    `json:"targetId"`
	Before    string    `json:"before"` // JSON text; empty: nothing
	After     string    `json:"after"`  // JSON text; empty: nothing
}

// CompanyRecordOf returns the record of a company.
func CompanyRecordOf(c chat.Company) CompanyRecord {
	return CompanyRecord{ID: c.ID, Name: c.Name, WebhookRetention: int64(c.WebhookRetention / time.Second)}
}

// Company returns the company of a record.
func (r CompanyRecord) Company() chat.Company {
	return chat.Company{ID: r.ID, Name: r.Name, WebhookRetention: time.Duration(r.WebhookRetention) * time.Second}
}

// WebhookEndpointRecord is a record of the kind webhookEndpoints; its key is ID.
type WebhookEndpointRecord struct {
	ID             string                `json:"id"`
	CompanyID      string                `json:"companyId"`
	URL            string                `json:"url"`
	Description    string                `json:"description"`
	Events         []string              `json:"events"`  // null: all
	Headers        []WebhookHeaderRecord `json:"headers"` // by name; null: none
	Secrets        []WebhookSecretRecord `json:"secrets"` // newest first
	Ordered        bool                  `json:"ordered"`
	CreatedAt      time.Time             `json:"createdAt"`
	DisabledAt     time.Time             `json:"disabledAt"`
	DisabledReason string                `json:"disabledReason"`
	FailingSince   time.Time             `json:"failingSince"`
	Warnings       int                   `json:"warnings"`
	WarnedAt       time.Time             `json:"warnedAt"`
	Revision       int64                 `json:"revision"`
}

// WebhookHeaderRecord is a header of an endpoint.
type WebhookHeaderRecord struct {
	Name  string `json:"name" bson:"name"`
	Value string `json:"value" bson:"value"`
}

// WebhookSecretRecord is a secret of an endpoint.
type WebhookSecretRecord struct {
	Value     string    `json:"value" bson:"value"`
	CreatedAt time.Time `json:"createdAt" bson:"createdAt"`
	ExpiresAt time.Time `json:"expiresAt" bson:"expiresAt,omitempty"`
}

// WebhookDeliveryRecord is a record of the kind webhookDeliveries; its key is ID.
type WebhookDeliveryRecord struct {
	ID         string                 `json:"id"`
	CompanyID  string                 `json:"companyId"`
	EndpointID string                 `json:"endpointId"`
	EventType  string                 `json:"eventType"`
	ChatID     string                 `json:"chatId"`
	Body       string                 `json:"body"` // JSON text
	OrderKey   string                 `json:"orderKey"`
	Position   int64                  `json:"position"`
	CreatedAt  time.Time              `json:"createdAt"`
	Status     string                 `json:"status"`
	Reason     string                 `json:"reason"`
	DueAt      time.Time              `json:"dueAt"`
	Tries      int                    `json:"tries"`
	Attempts   []WebhookAttemptRecord `json:"attempts"` // oldest first; null: none
	ExpiresAt  time.Time              `json:"expiresAt"`
}

// WebhookAttemptRecord is an attempt of a delivery.
type WebhookAttemptRecord struct {
	At         time.Time     `json:"at" bson:"at"`
	URL        string        `json:"url" bson:"url"`
	Duration   time.Duration `json:"duration" bson:"duration"` // nanoseconds
	StatusCode int           `json:"statusCode" bson:"statusCode"`
	Answer     string        `json:"answer" bson:"answer,omitempty"`
	Error      string        `json:"error" bson:"error,omitempty"`
	NextAt     time.Time     `json:"nextAt" bson:"nextAt,omitempty"`
}

// WebhookEndpointRecordOf returns the record of an endpoint, with times as every engine stores them.
func WebhookEndpointRecordOf(e webhook.Endpoint) WebhookEndpointRecord {
	r := WebhookEndpointRecord{
		ID:             e.ID,
		CompanyID:      e.CompanyID,
		URL:            e.URL,
		Description:    e.Description,
		Events:         e.Events,
		Ordered:        e.Ordered,
		CreatedAt:      UTC(e.CreatedAt),
		DisabledAt:     UTC(e.DisabledAt),
		DisabledReason: e.DisabledReason,
		FailingSince:   UTC(e.FailingSince),
		Warnings:       e.Warnings,
		WarnedAt:       UTC(e.WarnedAt), Revision: e.Revision,
	}
	if len(e.Events) == 0 {
		r.Events = nil
	}
	for _, name := range slices.Sorted(maps.Keys(e.Headers)) {
		r.Headers = append(r.Headers, WebhookHeaderRecord{Name: name, Value: e.Headers[name]})
	}
	for _, s := range e.Secrets {
		r.Secrets = append(
			r.Secrets,
			WebhookSecretRecord{Value: s.Value, CreatedAt: UTC(s.CreatedAt), ExpiresAt: UTC(s.ExpiresAt)},
		)
	}
	return r
}

// Endpoint returns the endpoint of a record.
func (r WebhookEndpointRecord) Endpoint() webhook.Endpoint {
	e := webhook.Endpoint{
		ID:             r.ID,
		CompanyID:      r.CompanyID,
		URL:            r.URL,
		Description:    r.Description,
		Events:         r.Events,
		Ordered:        r.Ordered,
		CreatedAt:      UTC(r.CreatedAt),
		DisabledAt:     UTC(r.DisabledAt),
		DisabledReason: r.DisabledReason,
		FailingSince:   UTC(r.FailingSince),
		Warnings:       r.Warnings,
		WarnedAt:       UTC(r.WarnedAt), Revision: r.Revision,
	}
	for _, h := range r.Headers {
		if e.Headers == nil {
			e.Headers = map[string]string{}
		}
		e.Headers[h.Name] = h.Value
	}
	for _, s := range r.Secrets {
		e.Secrets = append(
			e.Secrets,
			webhook.Secret{Value: s.Value, CreatedAt: UTC(s.CreatedAt), ExpiresAt: UTC(s.ExpiresAt)},
		)
	}
	return e
}

// WebhookAttemptRecordOf returns the record of an attempt.
func WebhookAttemptRecordOf(a webhook.Attempt) WebhookAttemptRecord {
	a.At, a.NextAt = UTC(a.At), UTC(a.NextAt)
	return WebhookAttemptRecord(a)
}

// WebhookDeliveryRecordOf returns the record of a delivery, with times as every engine stores them.
func WebhookDeliveryRecordOf(d webhook.Delivery) WebhookDeliveryRecord {
	r := WebhookDeliveryRecord{
		ID:         d.ID,
		CompanyID:  d.CompanyID,
		EndpointID: d.EndpointID,
		EventType:  d.EventType,
		ChatID:     d.ChatID,
		Body:       d.Body,
		OrderKey:   d.OrderKey,
		Position:   d.Position,
		CreatedAt:  UTC(d.CreatedAt),
		Status:     d.Status,
		Reason:     d.Reason,
		DueAt:      UTC(d.DueAt),
		Tries:      d.Tries,
		ExpiresAt:  UTC(d.ExpiresAt),
	}
	for _, a := range d.Attempts {
		r.Attempts = append(r.Attempts, WebhookAttemptRecordOf(a))
	}
	return r
}

// Delivery returns the delivery of a record.
func (r WebhookDeliveryRecord) Delivery() webhook.Delivery {
	d := webhook.Delivery{
		ID:         r.ID,
		CompanyID:  r.CompanyID,
		EndpointID: r.EndpointID,
		EventType:  r.EventType,
		ChatID:     r.ChatID,
		Body:       r.Body,
		OrderKey:   r.OrderKey,
		Position:   r.Position,
		CreatedAt:  UTC(r.CreatedAt),
		Status:     r.Status,
		Reason:     r.Reason,
		DueAt:      UTC(r.DueAt),
		Tries:      r.Tries,
		ExpiresAt:  UTC(r.ExpiresAt),
	}
	for _, a := range r.Attempts {
		a.At, a.NextAt = UTC(a.At), UTC(a.NextAt)
		d.Attempts = append(d.Attempts, webhook.Attempt(a))
	}
	return d
}
