package event

import (
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/proto-events/subject"
)

// MessagePart: a part of a message that a bot is still writing. Offset and [UTF16Length] count UTF-16 code units.
type MessagePart struct {
	CompanyID    string    `json:"companyId"`
	AppID        string    `json:"appId"`
	ChatUserID   string    `json:"chatUserId"`
	ChatID       string    `json:"chatId"`
	MessageID    string    `json:"messageId"`
	N            int32     `json:"n"`
	Offset       int32     `json:"offset"` // 0: Text is all of the message so far
	Text         string    `json:"text"`
	CreatedAt    time.Time `json:"createdAt"`
	NameOfSender string    `json:"nameOfSender,omitempty"` // with Offset 0

	Format chat.Format `json:"format,omitempty"` // of the text, with Offset 0
	Done   bool        `json:"done,omitempty"`
}

// Subject implements [Event], as do Type, EventID, OccurredAt and AppendJSON.
func (e MessagePart) Subject() string       { return subject.Part(e.AppID, e.ChatUserID) }
func (e MessagePart) Type() string          { return TypeMessagePart }
func (e MessagePart) EventID() string       { return e.MessageID + "-" + strconv.Itoa(int(e.N)) }
func (e MessagePart) OccurredAt() time.Time { return e.CreatedAt }

func (e MessagePart) AppendJSON(dst []byte) []byte {
	dst = appendMember(append(dst, '{'), "companyId", e.CompanyID)
	dst = appendMember(append(dst, ','), "appId", e.AppID)
	dst = appendMember(append(dst, ','), "chatUserId", e.ChatUserID)
	return e.appendShown(append(dst, ','))
}

// AppendShown appends the part as sent to a visitor: an object without the visitor's ids. messageId and n come first.
func (e MessagePart) AppendShown(dst []byte) []byte { return e.appendShown(append(dst, '{')) }

func (e MessagePart) appendShown(dst []byte) []byte {
	dst = appendMember(dst, "messageId", e.MessageID)
	dst = strconv.AppendInt(append(dst, `,"n":`...), int64(e.N), 10)
	dst = strconv.AppendInt(append(dst, `,"offset":`...), int64(e.Offset), 10)
	dst = appendMember(append(dst, ','), "text", e.Text)
	dst = appendMember(append(dst, ','), "chatId", e.ChatID)
	dst = appendTime(append(dst, ','), "createdAt", e.CreatedAt)
	if e.NameOfSender != "" {
		dst = appendMember(append(dst, ','), "nameOfSender", e.NameOfSender)
	}
	if e.Format != "" {
		dst = appendMember(append(dst, ','), "format", string(e.Format))
	}
	if e.Done {
		dst = append(dst, `,"done":true`...)
	}
	return append(dst, '}')
}

func (e *MessagePart) check(f *apperr.Fields) {
	checkTokens(f, "companyId", e.CompanyID, "appId", e.AppID, "chatUserId", e.ChatUserID, "chatId", e.ChatID)
	checkID(f, "messageId", e.MessageID)
	checkTime(f, "createdAt", &e.CreatedAt)
	if e.N < 0 {
		f.Add("n", "must not be negative")
	}
	if e.Offset < 0 || int(e.Offset) > 2*chat.MaxTextLength {
		f.Add("offset", "must be a place in the message")
	}
	if utf8.RuneCountInString(e.Text) > chat.MaxTextLength {
		f.Add("text", "must have at most "+strconv.Itoa(chat.MaxTextLength)+" characters")
	}
	if !e.Format.Valid() {
		f.Add("format", chat.FormatRule)
	}
}

// Extend applies the next part to e, which is all of a message so far. It reports false if part changes nothing: it is
// old, or an earlier part is missing. The zero value is no message yet.
func (e *MessagePart) Extend(part MessagePart) bool {
	switch {
	case part.MessageID == e.MessageID && part.N <= e.N && e.MessageID != "":
		return false
	case part.Offset == 0 && !part.Done:
		*e = part
		return true
	case part.MessageID != e.MessageID:
		return false
	case part.Done:
		e.N, e.Done = part.N, true
		return true
	case e.Done, part.N != e.N+1 || int(part.Offset) != UTF16Length(e.Text):
		return false
	}
	e.N, e.Text = part.N, e.Text+part.Text
	return true
}

// UTF16Length returns the number of UTF-16 code units of a text.
func UTF16Length(s string) (n int) {
	for _, r := range s {
		n++
		if r > 0xffff {
			n++
		}
	}
	return n
}
