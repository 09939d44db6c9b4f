package message

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
)

// maxSenderName is in characters.
const maxSenderName = 256

// Draft is a message to send.
type Draft struct {
	Type       chat.MessageType
	Data       json.RawMessage
	ChatID     string
	SenderName *string // nil: the name of the application's bot
}

// Validate returns everything that is wrong with the draft.
func (d Draft) Validate() apperr.Fields {
	var f apperr.Fields
	allowed := d.validateType(&f)
	kind := d.Type
	if !allowed {
		kind = "" // without a valid type, the data can only be checked for being an object
	}
	for _, fault := range chat.ValidateData(kind, d.Data) {
		f.Add(fault.Field, fault.Message)
	}
	if d.ChatID == "" {
		f.Add("chatId", "is required")
	} else if _, ok := chat.ParseID(d.ChatID); !ok {
		f.Add("chatId", "must be a UUID")
	}
	if d.SenderName != nil {
		switch n := utf8.RuneCountInString(*d.SenderName); {
		case strings.TrimSpace(*d.SenderName) == "":
			f.Add("senderName", "must not be empty")
		case n > maxSenderName:
			f.Add("senderName", "must have at most 256 characters")
		}
	}
	return f
}

func (d Draft) validateType(f *apperr.Fields) bool {
	switch {
	case d.Type.In(chat.CompanyTypes()):
		return true
	case d.Type == "":
		f.Add("type", "is required")
	case d.Type == chat.Template:
		f.Add("type", "TEMPLATE is not supported here, use POST /push-message; "+mustBeAllowed())
	case d.Type == chat.MultipleChoiceReply:
		f.Add("type", "MULTIPLE_CHOICE_REPLY is not supported here, it is the visitor's; "+mustBeAllowed())
	default:
		f.Add("type", mustBeAllowed())
	}
	return false
}

func mustBeAllowed() string { return "must be one of " + chat.JoinTypes(chat.CompanyTypes()) }
