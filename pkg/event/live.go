package event

import (
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/proto-events/subject"
)

// Signal is a live event over core NATS: no stream stores it, and publishing does not wait for an acknowledgement.
type Signal interface {
	// Subject returns the subject that the signal is published to.
	Subject() string
	// Type returns the full name of the signal's proto message.
	Type() string
	// AppendJSON appends the signal's JSON mapping to dst.
	AppendJSON(dst []byte) []byte
}

// Types of signals.
const (
	TypeTyping          = typePrefix + "Typing"
	TypeReadCursorMoved = typePrefix + "ReadCursorMoved"
)

// Timing of [Typing]: a writer repeats it at most every TypingPause, and a reader shows it for TypingTTL after its
// arrival.
const (
	TypingPause = 2 * time.Second
	TypingTTL   = 6 * time.Second
)

// Typing: a person or a bot is writing in a visitor's chat. Side is [subject.SideVisitor] or [subject.SideSupport].
type Typing struct {
	CompanyID  string    `json:"companyId"`
	AppID      string    `json:"appId"`
	ChatUserID string    `json:"chatUserId"`
	Side       string    `json:"side"`
	At         time.Time `json:"at"`
	Name       string    `json:"name,omitempty"`   // as shown to the visitor
	UserID     string    `json:"userId,omitempty"` // of the panel user
}

// Subject implements [Signal], as do Type and AppendJSON.
func (e Typing) Subject() string { return subject.Typing(e.Side, e.AppID, e.ChatUserID) }
func (e Typing) Type() string    { return TypeTyping }

func (e Typing) AppendJSON(dst []byte) []byte {
	dst = appendMember(append(dst, '{'), "companyId", e.CompanyID)
	dst = appendMember(append(dst, ','), "appId", e.AppID)
	dst = appendMember(append(dst, ','), "chatUserId", e.ChatUserID)
	dst = appendMember(append(dst, ','), "side", e.Side)
	dst = appendTime(append(dst, ','), "at", e.At)
	if e.Name != "" {
		dst = appendMember(append(dst, ','), "name", e.Name)
	}
	if e.UserID != "" {
		dst = appendMember(append(dst, ','), "userId", e.UserID)
	}
	return append(dst, '}')
}

// maxTypingName bounds the name shown to a visitor, in bytes.
const maxTypingName = 256

func (e *Typing) check(f *apperr.Fields) {
	checkTokens(f, "companyId", e.CompanyID, "appId", e.AppID, "chatUserId", e.ChatUserID)
	checkSide(f, e.Side)
	checkTime(f, "at", &e.At)
	if len(e.Name) > maxTypingName {
		f.Add("name", "must have at most 256 bytes")
	}
}

// ReadCursorMoved: a side of a chat has read everything up to a message.
type ReadCursorMoved struct {
	CompanyID  string    `json:"companyId"`
	AppID      string    `json:"appId"`
	ChatUserID string    `json:"chatUserId"`
	ChatID     string    `json:"chatId"`
	Side       string    `json:"side"`
	MessageID  string    `json:"messageId,omitempty"`
	UpTo       time.Time `json:"upTo"` // the message's creation time
}

// Subject implements [Signal], as do Type and AppendJSON.
func (e ReadCursorMoved) Subject() string {
	return subject.ReadCursor(e.Side, e.AppID, e.ChatUserID)
}
func (e ReadCursorMoved) Type() string { return TypeReadCursorMoved }

func (e ReadCursorMoved) AppendJSON(dst []byte) []byte {
	dst = appendMember(append(dst, '{'), "companyId", e.CompanyID)
	dst = appendMember(append(dst, ','), "appId", e.AppID)
	dst = appendMember(append(dst, ','), "chatUserId", e.ChatUserID)
	dst = appendMember(append(dst, ','), "chatId", e.ChatID)
	dst = appendMember(append(dst, ','), "side", e.Side)
	if e.MessageID != "" {
		dst = appendMember(append(dst, ','), "messageId", e.MessageID)
	}
	dst = appendTime(append(dst, ','), "upTo", e.UpTo)
	return append(dst, '}')
}

func (e *ReadCursorMoved) check(f *apperr.Fields) {
	checkTokens(f, "companyId", e.CompanyID, "appId", e.AppID, "chatUserId", e.ChatUserID, "chatId", e.ChatID)
	checkSide(f, e.Side)
	checkTime(f, "upTo", &e.UpTo)
}

func checkSide(f *apperr.Fields, side string) {
	if side != subject.SideVisitor && side != subject.SideSupport {
		f.Add("side", "must be visitor or support")
	}
}
