package conversation

import (
	"encoding/json"
	"strconv"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
)

// tooMuchData is what is wrong with data that is larger than a visitor's may be.
var tooMuchData = "must have at most " + strconv.Itoa(chat.MaxVisitorData) + " bytes"

// Draft is what a visitor wants to write.
type Draft struct {
	Type chat.MessageType
	Data json.RawMessage
}

// Validate returns everything that is wrong with the draft.
func (d Draft) Validate() apperr.Fields {
	var f apperr.Fields
	kind := d.Type
	switch {
	case d.Type == "":
		f.Add("type", "is required")
	case !d.Type.In(chat.VisitorTypes()):
		f.Add("type", "must be one of TEXT, MULTIPLE_CHOICE_REPLY")
		kind = "" // nothing but its being an object can be said of the data then
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
