package webhook

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/chat"
)

// Types of events.
const (
	TypeMessageReceived   = "message.received"
	TypeMessageStatus     = "message.status"
	TypeChatOpened        = "chat.opened"
	TypeChatClosed        = "chat.closed"
	TypeChatRated         = "chat.rated"
	TypeVisitorRegistered = "visitor.registered"
	TypeVisitorUpdated    = "visitor.updated"
	TypeFileReceived      = "file.received"
	TypeEndpointDisabled  = "endpoint.disabled"
	// TypeTest is sent on request, whatever the endpoint's filter.
	TypeTest = "webhook.test"
)

// Types lists the types that an endpoint can subscribe to.
func Types() []string {
	return []string{
		TypeMessageReceived, TypeMessageStatus, TypeChatOpened, TypeChatClosed, TypeChatRated,
		TypeVisitorRegistered, TypeVisitorUpdated,
		TypeFileReceived, TypeEndpointDisabled,
	}
}

// Event is the body of a delivery.
type Event struct {
	Type      string    `json:"type"`
	Timestamp chat.Time `json:"timestamp"` // when the event occurred
	Data      any       `json:"data"`

	// Key identifies the event among those of its type: equal if an event is read twice.
	Key string `json:"-"`
	// ChatID is the chat whose events are ordered; empty: none.
	ChatID string `json:"-"`
}

// Body encodes the event.
func (e Event) Body() (string, error) {
	var b strings.Builder
	encoder := json.NewEncoder(&b)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(e); err != nil {
		return "", fmt.Errorf("encoding a %s: %w", e.Type, err)
	}
	return strings.TrimSuffix(b.String(), "\n"), nil
}

// DeliveryID returns the webhook-id of an event's delivery to an endpoint. It is derived from both, so an event that is
// read twice is one delivery.
func DeliveryID(endpointID string, e Event) string {
	return uuid.NewSHA1(uuid.NameSpaceURL, []byte("parley:webhook:"+endpointID+":"+e.Type+":"+e.Key)).String()
}

// Message is a message in the APIs' format.
type Message struct {
	ID            string           `json:"id"`
	CreatedAt     chat.Time        `json:"createdAt"`
	Type          chat.MessageType `json:"type"`
	Data          json.RawMessage  `json:"data"`
	NameOfSender  string           `json:"nameOfSender"`
	IsFromSupport bool             `json:"isFromSupport"`
}

// MessageOf converts a message for an event.
func MessageOf(m chat.Message) Message {
	return Message{
		ID:            m.ID,
		CreatedAt:     chat.Time(m.CreatedAt),
		Type:          m.Type,
		Data:          m.Data,
		NameOfSender:  m.NameOfSender,
		IsFromSupport: m.IsFromSupport,
	}
}

// MessageReceived is the data of message.received: a visitor wrote.
type MessageReceived struct {
	CompanyID  string  `json:"companyId"`
	AppID      string  `json:"appId"`
	ChatID     string  `json:"chatId"`
	ChatUserID string  `json:"chatUserId"`
	Message    Message `json:"message"`
}

// FileReceived is the data of file.received: a visitor's message is a file. The file is at message.data.url.
type FileReceived MessageReceived

// MessageStatus is the data of message.status: a message of the company was delivered, was read or failed.
type MessageStatus struct {
	CompanyID  string    `json:"companyId"`
	ChatID     string    `json:"chatId,omitempty"`
	MessageID  string    `json:"messageId"`
	Status     string    `json:"status"` // delivered, read or failed
	OccurredAt chat.Time `json:"occurredAt"`
	Reason     string    `json:"reason,omitempty"` // why it failed
}

// ChatOpened is the data of chat.opened.
type ChatOpened struct {
	CompanyID  string    `json:"companyId"`
	AppID      string    `json:"appId"`
	ChatID     string    `json:"chatId"`
	ChatUserID string    `json:"chatUserId"`
	OpenedAt   chat.Time `json:"openedAt"`
}

// ChatClosed is the data of chat.closed: an agent or an operator closed the chat.
type ChatClosed struct {
	CompanyID  string    `json:"companyId"`
	AppID      string    `json:"appId,omitempty"`
	ChatID     string    `json:"chatId"`
	ChatUserID string    `json:"chatUserId"`
	ClosedAt   chat.Time `json:"closedAt"`
	ByUserID   string    `json:"byUserId,omitempty"` // the panel's user
}

// ChatRated is the data of chat.rated: the visitor rated a closed chat, or changed the rating.
type ChatRated struct {
	CompanyID  string    `json:"companyId"`
	AppID      string    `json:"appId"`
	ChatID     string    `json:"chatId"`
	ChatUserID string    `json:"chatUserId"`
	Score      int       `json:"score"` // 1 to 5
	Comment    string    `json:"comment,omitempty"`
	RatedAt    chat.Time `json:"ratedAt"`
}

// Visitor is the data of visitor.registered and visitor.updated.
type Visitor struct {
	CompanyID  string  `json:"companyId"`
	AppID      string  `json:"appId"`
	ChatID     string  `json:"chatId"`
	ChatUserID string  `json:"chatUserId"`
	Profile    Profile `json:"profile"`
	VerifiedBy string  `json:"verifiedBy,omitempty"` // the proven member of profile
}

// Profile is the personal data of a visitor.
type Profile struct {
	FirstName string `json:"firstName,omitempty"`
	LastName  string `json:"lastName,omitempty"`
	Email     string `json:"email,omitempty"`
	Phone     string `json:"phone,omitempty"`
	UserID    string `json:"userId,omitempty"`
}

// EndpointDisabled is the data of endpoint.disabled: another endpoint of the company was disabled.
type EndpointDisabled struct {
	CompanyID  string    `json:"companyId"`
	EndpointID string    `json:"endpointId"`
	URL        string    `json:"url"`
	Reason     string    `json:"reason"` // failing or gone
	DisabledAt chat.Time `json:"disabledAt"`
}

// Test is the data of webhook.test.
type Test struct {
	CompanyID  string `json:"companyId"`
	EndpointID string `json:"endpointId"`
}
