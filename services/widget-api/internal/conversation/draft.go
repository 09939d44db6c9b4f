package conversation

import (
	"encoding/json"
	"strconv"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
)

// tooMuchData is the error for data larger than a visitor's limit.
var tooMuchData = "must have at most " + strconv.Itoa(chat.MaxVisitorData) + " bytes"

// Draft is a visitor's message to send.
type Draft struct {
	Type chat.MessageType
	Data json.RawMessage
}

// Validate returns all errors of the draft.
func (d Draft) Validate() apperr.Fields {
	var f apperr.Fields
	kind := d.Type
	switch {
	case d.Type == "":
		f.Add("type", "is required")
	case !d.Type.In(chat.VisitorTypes()):
		f.Add("type", "must be one of "+chat.JoinTypes(chat.VisitorTypes()))
		kind = "" // without a valid type, the data can only be checked for being an object
	}
	if len(d.Data) > chat.MaxVisitorData {
		f.Add("data", tooMuchData)
		return f
	}
	for _, fault := range chat.ValidateData(kind, d.Data) {
		f.Add(fault.Field, fault.Message)
	}
	return f
}
