package store

import (
	"time"

	"github.com/parley-chat/parley/pkg/account"
)

// The records of [Portable], by kind; the key is named at each. Times are UTC with milliseconds. JSON of others is kept as text.

// CompanyRecord is a record of the kind companies; its key is ID.
type CompanyRecord struct {
	ID   string `json:"id"`
	Name string `json:"name"`
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
	ReadUpTo    MessagePosition  `json:"readUpTo"` // the zero position: nothing
	ReadAt      time.Time        `json:"readAt"`
	Undelivered []AwaitedReceipt `json:"undelivered"` // null: none; ordered by position
	Unread      []AwaitedReceipt `json:"unread"`      // null: none; ordered by position
}

// AwaitedReceipt is a message whose sender waits for a report.
type AwaitedReceipt struct {
	MessageID string    `json:"messageId"`
	CreatedAt time.Time `json:"createdAt"`
}

// MessagePosition is where a message stands in its chat's history.
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
