// Package event defines the events published over NATS, in the form in which the services write and read them.
//
// The contract is proto-events (package parley.events.v1); the wire format is its JSON mapping. The services do not use
// the generated types, because protobuf's Struct would turn a message's data into doubles and sorted keys: these types
// carry it byte for byte. Tests compare both forms (see docs/decisions/0003-events-and-streams.md).
//
// Every event has a subject, a type (the full name of its proto message, also the ce-type header) and an id (also ce-id
// and Nats-Msg-Id, so that JetStream drops duplicates).
package event

import (
	"encoding/hex"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/proto-events/subject"
)

// Event is an event that can be published.
type Event interface {
	// Subject returns the subject that the event is published to.
	Subject() string
	// Type returns the full name of the event's proto message.
	Type() string
	// EventID returns a unique id that stays the same if the event is published again.
	EventID() string
	// OccurredAt returns the time of the event.
	OccurredAt() time.Time
	// AppendJSON appends the event's JSON mapping to dst.
	AppendJSON(dst []byte) []byte
}

const typePrefix = "parley.events.v1."

// Types of events: the ce-type header.
const (
	TypeCompanyMessageAccepted = typePrefix + "CompanyMessageAccepted"
	TypePushAccepted           = typePrefix + "PushAccepted"
	TypeVisitorRegistered      = typePrefix + "VisitorRegistered"
	TypeVisitorMessageAccepted = typePrefix + "VisitorMessageAccepted"
	TypeReply                  = typePrefix + "Reply"
	TypeOutboundMessage        = typePrefix + "OutboundMessage"
	TypeMessageStatusChanged   = typePrefix + "MessageStatusChanged"
	TypeChatControlChanged     = typePrefix + "ChatControlChanged"
	TypeMessagePart            = typePrefix + "MessagePart"
	TypeChatRated              = typePrefix + "ChatRated"
)

// CompanyMessageAccepted: a company system sent a message into a chat.
type CompanyMessageAccepted struct {
	CompanyID string       `json:"companyId"`
	ChatID    string       `json:"chatId"`
	Message   chat.Message `json:"message"`
}

// Subject implements [Event], as do Type, EventID, OccurredAt and AppendJSON.
func (e CompanyMessageAccepted) Subject() string {
	return subject.CompanyMessage(e.CompanyID, e.ChatID)
}
func (e CompanyMessageAccepted) Type() string          { return TypeCompanyMessageAccepted }
func (e CompanyMessageAccepted) EventID() string       { return e.Message.ID }
func (e CompanyMessageAccepted) OccurredAt() time.Time { return e.Message.CreatedAt }

func (e CompanyMessageAccepted) AppendJSON(dst []byte) []byte {
	dst = appendMember(append(dst, '{'), "companyId", e.CompanyID)
	dst = appendMember(append(dst, ','), "chatId", e.ChatID)
	return appendMessage(dst, e.Message)
}

func (e *CompanyMessageAccepted) check(f *apperr.Fields) {
	checkTokens(f, "companyId", e.CompanyID, "chatId", e.ChatID)
	checkMessage(f, &e.Message)
}

// PushAccepted: a company wants to send an approved template to a phone number.
type PushAccepted struct {
	CompanyID  string    `json:"companyId"`
	TemplateID string    `json:"templateId"`
	MessageID  string    `json:"messageId"`
	CreatedAt  time.Time `json:"createdAt"`
	Source     string    `json:"source"`
	Username   string    `json:"username,omitempty"`
	// Parameters are the values for the template's placeholders, by name.
	Parameters map[string]string `json:"parameters,omitempty"`
}

// Subject implements [Event], as do Type, EventID, OccurredAt and AppendJSON.
func (e PushAccepted) Subject() string       { return subject.Push(e.CompanyID, e.TemplateID) }
func (e PushAccepted) Type() string          { return TypePushAccepted }
func (e PushAccepted) EventID() string       { return e.MessageID }
func (e PushAccepted) OccurredAt() time.Time { return e.CreatedAt }

func (e PushAccepted) AppendJSON(dst []byte) []byte {
	dst = appendMember(append(dst, '{'), "companyId", e.CompanyID)
	dst = appendMember(append(dst, ','), "templateId", e.TemplateID)
	dst = appendMember(append(dst, ','), "messageId", e.MessageID)
	dst = appendTime(append(dst, ','), "createdAt", e.CreatedAt)
	dst = appendMember(append(dst, ','), "source", e.Source)
	if e.Username != "" {
		dst = appendMember(append(dst, ','), "username", e.Username)
	}
	if len(e.Parameters) > 0 {
		dst = appendStrings(append(dst, `,"parameters":`...), e.Parameters)
	}
	return append(dst, '}')
}

func (e *PushAccepted) check(f *apperr.Fields) {
	checkTokens(f, "companyId", e.CompanyID, "templateId", e.TemplateID)
	checkID(f, "messageId", e.MessageID)
	checkTime(f, "createdAt", &e.CreatedAt)
	if e.Source == "" {
		f.Add("source", "must be present")
	}
}

// VisitorProfile is the personal data of a visitor.
type VisitorProfile struct {
	FirstName string `json:"firstName,omitempty"`
	LastName  string `json:"lastName,omitempty"`
	Email     string `json:"email,omitempty"`
	Phone     string `json:"phone,omitempty"`
	UserID    string `json:"userId,omitempty"`
}

// VisitorRegistered: a visitor registered or returned. Every registration has a new ID.
type VisitorRegistered struct {
	ID           string         `json:"-"`
	CompanyID    string         `json:"companyId"`
	AppID        string         `json:"appId"`
	ChatUserID   string         `json:"chatUserId"`
	ChatID       string         `json:"chatId"`
	ChatOpened   bool           `json:"chatOpened"`
	RegisteredAt time.Time      `json:"registeredAt"`
	Profile      VisitorProfile `json:"profile"`
	VerifiedBy   string         `json:"verifiedBy,omitempty"` // the proven member of Profile; empty: none
	// VisitorCreated: this registration created the visitor.
	VisitorCreated bool `json:"visitorCreated,omitempty"`
}

// Subject implements [Event], as do Type, EventID, OccurredAt and AppendJSON.
func (e VisitorRegistered) Subject() string       { return subject.VisitorRegistered(e.AppID, e.ChatUserID) }
func (e VisitorRegistered) Type() string          { return TypeVisitorRegistered }
func (e VisitorRegistered) EventID() string       { return e.ID }
func (e VisitorRegistered) OccurredAt() time.Time { return e.RegisteredAt }

func (e VisitorRegistered) AppendJSON(dst []byte) []byte {
	dst = appendMember(append(dst, '{'), "companyId", e.CompanyID)
	dst = appendMember(append(dst, ','), "appId", e.AppID)
	dst = appendMember(append(dst, ','), "chatUserId", e.ChatUserID)
	dst = appendMember(append(dst, ','), "chatId", e.ChatID)
	dst = strconv.AppendBool(append(dst, `,"chatOpened":`...), e.ChatOpened)
	dst = appendTime(append(dst, ','), "registeredAt", e.RegisteredAt)
	dst = appendStrings(append(dst, `,"profile":`...), e.Profile)
	if e.VerifiedBy != "" {
		dst = appendMember(append(dst, ','), "verifiedBy", e.VerifiedBy)
	}
	if e.VisitorCreated {
		dst = append(dst, `,"visitorCreated":true`...)
	}
	return append(dst, '}')
}

func (e *VisitorRegistered) check(f *apperr.Fields) {
	checkTokens(f, "companyId", e.CompanyID, "appId", e.AppID, "chatUserId", e.ChatUserID, "chatId", e.ChatID)
	checkTime(f, "registeredAt", &e.RegisteredAt)
}

// VisitorMessageAccepted: a visitor wrote.
type VisitorMessageAccepted struct {
	CompanyID  string       `json:"companyId"`
	AppID      string       `json:"appId"`
	ChatUserID string       `json:"chatUserId"`
	ChatID     string       `json:"chatId"`
	Message    chat.Message `json:"message"`
	Site       string       `json:"site,omitempty"` // see [SiteGroup]
}

// Subject implements [Event], as do Type, EventID, OccurredAt and AppendJSON.
func (e VisitorMessageAccepted) Subject() string {
	return subject.VisitorMessage(e.AppID, e.ChatUserID)
}
func (e VisitorMessageAccepted) Type() string          { return TypeVisitorMessageAccepted }
func (e VisitorMessageAccepted) EventID() string       { return e.Message.ID }
func (e VisitorMessageAccepted) OccurredAt() time.Time { return e.Message.CreatedAt }

func (e VisitorMessageAccepted) AppendJSON(dst []byte) []byte {
	dst = appendVisitorChat(dst, e.CompanyID, e.AppID, e.ChatUserID, e.ChatID)
	dst = append(e.Message.AppendOrdered(append(dst, `,"message":`...)), '}')
	if e.Site != "" {
		dst = append(append(dst[:len(dst)-1], `,"site":"`...), e.Site...)
		dst = append(dst, `"}`...)
	}
	return dst
}

func (e *VisitorMessageAccepted) check(f *apperr.Fields) {
	checkTokens(f, "companyId", e.CompanyID, "appId", e.AppID, "chatUserId", e.ChatUserID, "chatId", e.ChatID)
	checkMessage(f, &e.Message)
	if _, err := hex.DecodeString(e.Site); err != nil || len(e.Site) > siteGroupDigits {
		f.Add("site", "must be at most 4 hexadecimal digits")
	}
}

// ChatControlChanged: an agent took a chat over, handed it back to the bot, assigned it or closed it; or the
// bot or the visitor handed it over. Control is [ControlAgent] or [ControlBot].
type ChatControlChanged struct {
	ID         string    `json:"-"`
	CompanyID  string    `json:"companyId"`
	ChatID     string    `json:"chatId"`
	AppID      string    `json:"appId,omitempty"`
	ChatUserID string    `json:"chatUserId"`
	Control    string    `json:"control"`
	AssigneeID string    `json:"assigneeId,omitempty"`
	ByUserID   string    `json:"byUserId,omitempty"`
	ChangedAt  time.Time `json:"changedAt"`
	ClosedAt   time.Time `json:"closedAt,omitzero"`
	Handover   Handover  `json:"handover,omitzero"` // zero: an agent's own decision
}

// Handover is a [chat.Handover].
type Handover struct {
	By     string    `json:"by"`
	Reason string    `json:"reason,omitempty"`
	Note   string    `json:"note,omitempty"`
	At     time.Time `json:"at"`
}

// Values of a chat's control.
const (
	ControlAgent = "agent"
	ControlBot   = "bot"
)

// Subject implements [Event], as do Type, EventID, OccurredAt and AppendJSON.
func (e ChatControlChanged) Subject() string       { return subject.ControlChanged(e.CompanyID, e.ChatID) }
func (e ChatControlChanged) Type() string          { return TypeChatControlChanged }
func (e ChatControlChanged) EventID() string       { return e.ID }
func (e ChatControlChanged) OccurredAt() time.Time { return e.ChangedAt }

func (e ChatControlChanged) AppendJSON(dst []byte) []byte {
	dst = appendMember(append(dst, '{'), "companyId", e.CompanyID)
	dst = appendMember(append(dst, ','), "chatId", e.ChatID)
	if e.AppID != "" {
		dst = appendMember(append(dst, ','), "appId", e.AppID)
	}
	dst = appendMember(append(dst, ','), "chatUserId", e.ChatUserID)
	dst = appendMember(append(dst, ','), "control", e.Control)
	if e.AssigneeID != "" {
		dst = appendMember(append(dst, ','), "assigneeId", e.AssigneeID)
	}
	if e.ByUserID != "" {
		dst = appendMember(append(dst, ','), "byUserId", e.ByUserID)
	}
	dst = appendTime(append(dst, ','), "changedAt", e.ChangedAt)
	if !e.ClosedAt.IsZero() {
		dst = appendTime(append(dst, ','), "closedAt", e.ClosedAt)
	}
	if e.Handover.By != "" {
		dst = e.Handover.appendJSON(append(dst, `,"handover":`...))
	}
	return append(dst, '}')
}

func (e *ChatControlChanged) check(f *apperr.Fields) {
	checkTokens(f, "companyId", e.CompanyID, "chatId", e.ChatID, "chatUserId", e.ChatUserID)
	checkTime(f, "changedAt", &e.ChangedAt)
	if e.Control != ControlAgent && e.Control != ControlBot {
		f.Add("control", "must be agent or bot")
	}
	e.ClosedAt = e.ClosedAt.UTC().Truncate(time.Millisecond)
	if e.Handover == (Handover{}) {
		return
	}
	if e.Handover.By == "" {
		f.Add("handover.by", "must be present")
	}
	checkTime(f, "handover.at", &e.Handover.At)
	for _, fault := range chat.Handover(e.Handover).Check("handover") {
		f.Add(fault.Field, fault.Message)
	}
}

func (h Handover) appendJSON(dst []byte) []byte {
	dst = appendMember(append(dst, '{'), "by", h.By)
	if h.Reason != "" {
		dst = appendMember(append(dst, ','), "reason", h.Reason)
	}
	if h.Note != "" {
		dst = appendMember(append(dst, ','), "note", h.Note)
	}
	return append(appendTime(append(dst, ','), "at", h.At), '}')
}

// ControlOf returns the control of the chat after the event.
func (e ChatControlChanged) ControlOf() chat.Control {
	return chat.Control{
		Agent:     e.Control == ControlAgent,
		Assignee:  e.AssigneeID,
		ChangedAt: e.ChangedAt,
		Handover:  chat.Handover(e.Handover),
	}
}

// HandsOver reports whether this event handed the chat over to the agents.
func (e ChatControlChanged) HandsOver() bool {
	return e.Handover.By != "" && e.Handover.At.Equal(e.ChangedAt)
}

// Reply: a message for a widget visitor. In the event, the message's time is when it was written; a reader gets the time
// at which the stream stored the event (see [DecodeStored]).
type Reply struct {
	CompanyID  string       `json:"companyId"`
	AppID      string       `json:"appId"`
	ChatUserID string       `json:"chatUserId"`
	ChatID     string       `json:"chatId"`
	Message    chat.Message `json:"message"`
	WrittenAt  time.Time    `json:"-"` // of an event that was read
	// Receipt requests delivery reports (see MessageStatusChanged).
	Receipt bool `json:"receipt,omitempty"`
}

// Subject implements [Event], as do Type, EventID, OccurredAt and AppendJSON.
func (e Reply) Subject() string       { return subject.Reply(e.AppID, e.ChatUserID) }
func (e Reply) Type() string          { return TypeReply }
func (e Reply) EventID() string       { return e.Message.ID }
func (e Reply) OccurredAt() time.Time { return e.Message.CreatedAt }

func (e Reply) AppendJSON(dst []byte) []byte {
	dst = appendVisitorChat(dst, e.CompanyID, e.AppID, e.ChatUserID, e.ChatID)
	dst = appendMessage(dst, e.Message)
	if e.Receipt {
		dst = append(dst[:len(dst)-1], `,"receipt":true}`...)
	}
	return dst
}

func (e *Reply) check(f *apperr.Fields) {
	checkTokens(f, "companyId", e.CompanyID, "appId", e.AppID, "chatUserId", e.ChatUserID, "chatId", e.ChatID)
	checkShown(f, &e.Message)
}

func (e *Reply) entered(stored time.Time) {
	e.WrittenAt = e.Message.CreatedAt
	e.Message.CreatedAt = chat.EnteredAt(stored)
}

// Recipient is the receiver of a message on a channel.
type Recipient struct {
	Phone string `json:"phone"`
	Name  string `json:"name,omitempty"`
}

// OutboundMessage: a message for a channel connector to deliver. Its times are those of [Reply].
type OutboundMessage struct {
	CompanyID  string       `json:"companyId"`
	Channel    chat.Channel `json:"channel"`
	ChatID     string       `json:"chatId"`
	ChatUserID string       `json:"chatUserId"`
	Recipient  Recipient    `json:"recipient"`
	Message    chat.Message `json:"message"`
	WrittenAt  time.Time    `json:"-"`
}

// Subject implements [Event], as do Type, EventID, OccurredAt and AppendJSON.
func (e OutboundMessage) Subject() string {
	return subject.OutboundMessage(string(e.Channel), e.CompanyID)
}
func (e OutboundMessage) Type() string          { return TypeOutboundMessage }
func (e OutboundMessage) EventID() string       { return e.Message.ID }
func (e OutboundMessage) OccurredAt() time.Time { return e.Message.CreatedAt }

func (e OutboundMessage) AppendJSON(dst []byte) []byte {
	dst = appendMember(append(dst, '{'), "companyId", e.CompanyID)
	dst = appendMember(append(dst, ','), "channel", string(e.Channel))
	dst = appendMember(append(dst, ','), "chatId", e.ChatID)
	dst = appendMember(append(dst, ','), "chatUserId", e.ChatUserID)
	dst = appendStrings(append(dst, `,"recipient":`...), e.Recipient)
	return appendMessage(dst, e.Message)
}

func (e *OutboundMessage) check(f *apperr.Fields) {
	checkTokens(
		f,
		"companyId", e.CompanyID,
		"channel", string(e.Channel),
		"chatId", e.ChatID,
		"chatUserId", e.ChatUserID,
	)
	checkShown(f, &e.Message)
}

func (e *OutboundMessage) entered(stored time.Time) {
	e.WrittenAt = e.Message.CreatedAt
	e.Message.CreatedAt = chat.EnteredAt(stored)
}

// MessageStatusChanged reports the delivery of a company's message. Status is [chat.StatusDelivered],
// [chat.StatusRead] or [chat.StatusFailed].
type MessageStatusChanged struct {
	CompanyID string    `json:"companyId"`
	MessageID string    `json:"messageId"`
	Status    string    `json:"status"`
	At        time.Time `json:"occurredAt"`
	Reason    string    `json:"reason,omitempty"` // why it failed
	ChatID    string    `json:"chatId,omitempty"`
}

// Subject implements [Event], as do Type, EventID, OccurredAt and AppendJSON.
func (e MessageStatusChanged) Subject() string {
	return subject.MessageStatus(e.CompanyID, e.MessageID)
}
func (e MessageStatusChanged) Type() string          { return TypeMessageStatusChanged }
func (e MessageStatusChanged) EventID() string       { return e.MessageID + "-" + e.Status }
func (e MessageStatusChanged) OccurredAt() time.Time { return e.At }

func (e MessageStatusChanged) AppendJSON(dst []byte) []byte {
	dst = appendMember(append(dst, '{'), "companyId", e.CompanyID)
	dst = appendMember(append(dst, ','), "messageId", e.MessageID)
	dst = appendMember(append(dst, ','), "status", e.Status)
	dst = appendTime(append(dst, ','), "occurredAt", e.At)
	if e.Reason != "" {
		dst = appendMember(append(dst, ','), "reason", e.Reason)
	}
	if e.ChatID != "" {
		dst = appendMember(append(dst, ','), "chatId", e.ChatID)
	}
	return append(dst, '}')
}

// Reported returns what the event adds to the status of its message.
func (e MessageStatusChanged) Reported() (s chat.MessageStatus) {
	switch e.Status {
	case chat.StatusDelivered:
		s.DeliveredAt = e.At
	case chat.StatusRead:
		s.ReadAt = e.At
	case chat.StatusFailed:
		s.Failure = chat.Failure{At: e.At, Reason: e.Reason}
	}
	return s
}

// maxReasonLength bounds the reason of a report; a longer one is truncated.
const maxReasonLength = 512

func (e *MessageStatusChanged) check(f *apperr.Fields) {
	checkTokens(f, "companyId", e.CompanyID)
	checkID(f, "messageId", e.MessageID)
	checkTime(f, "occurredAt", &e.At)
	switch e.Status {
	case chat.StatusDelivered, chat.StatusRead, chat.StatusFailed:
	default:
		f.Add("status", "must be delivered, read or failed")
	}
	if e.ChatID != "" {
		checkTokens(f, "chatId", e.ChatID)
	}
	if len(e.Reason) > maxReasonLength {
		e.Reason = strings.ToValidUTF8(e.Reason[:maxReasonLength], "")
	}
}

func appendVisitorChat(dst []byte, companyID, appID, chatUserID, chatID string) []byte {
	dst = appendMember(append(dst, '{'), "companyId", companyID)
	dst = appendMember(append(dst, ','), "appId", appID)
	dst = appendMember(append(dst, ','), "chatUserId", chatUserID)
	return appendMember(append(dst, ','), "chatId", chatID)
}

func appendMessage(dst []byte, m chat.Message) []byte {
	dst = append(dst, `,"message":`...)
	dst = m.AppendJSON(dst)
	return append(dst, '}')
}

func appendMember(dst []byte, name, value string) []byte {
	dst = append(dst, '"')
	dst = append(dst, name...)
	dst = append(dst, `":`...)
	return chat.AppendString(dst, value)
}

func appendTime(dst []byte, name string, t time.Time) []byte {
	dst = append(dst, '"')
	dst = append(dst, name...)
	dst = append(dst, `":"`...)
	dst = chat.AppendTime(dst, t)
	return append(dst, '"')
}

// appendStrings appends a struct or map that contains only strings, which always encodes.
func appendStrings(dst []byte, v any) []byte {
	encoded, err := json.Marshal(v)
	if err != nil {
		panic("event: a struct of strings does not encode: " + err.Error())
	}
	return append(dst, encoded...)
}
