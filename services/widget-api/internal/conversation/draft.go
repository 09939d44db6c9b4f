package conversation

import (
	"encoding/json"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
)

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
	for _, fault := range chat.ValidateData(kind, d.Data) {
		f.Add(fault.Field, fault.Message)
	}
	return f
}
