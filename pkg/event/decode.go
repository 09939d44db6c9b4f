package event

import (
	"bytes"
	"time"

	json "github.com/go-json-experiment/json/v1" // like encoding/json, in less than half the time

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/proto-events/subject"
)

// Decode parses the event received on subj. An event that is malformed, lacks an id, or whose ids differ from its
// subject's (whose permissions decided who might publish it) is permanently [apperr.Invalid]: a consumer gives up.
// Unknown members are ignored, so that a reader built before a new member was added still reads the event.
//
// Other programs may publish events, so Decode does not trust the publisher: its result is safe to store.
func Decode[E interface{ Subject() string }, P Checked[E]](subj string, data []byte) (E, error) {
	var e E
	if err := json.Unmarshal(data, &e); err != nil {
		return e, apperr.New(apperr.Invalid, "MALFORMED_EVENT", "Event is malformed").Wrap(err)
	}
	var faults apperr.Fields
	P(&e).check(&faults)
	if len(faults) == 0 && e.Subject() != subj {
		faults.Add("subject", "must name the ids of the event")
	}
	return e, faults.Err()
}

// DecodeStored is Decode for an event that a stream has stored at a time: that is when a message for the visitor has
// entered its chat.
func DecodeStored[E interface{ Subject() string }, P Checked[E]](
	subj string, data []byte, stored time.Time,
) (E, error) {
	e, err := Decode[E, P](subj, data)
	if entering, ok := any(P(&e)).(interface{ entered(time.Time) }); ok && err == nil {
		entering.entered(stored)
	}
	return e, err
}

// Checked is an event that validates itself; check also converts its times to UTC and milliseconds, or microseconds
// where they are the order of a chat.
type Checked[E any] interface {
	*E
	check(*apperr.Fields)
}

// checkTokens takes alternating names and values. Ids are keys of documents and tokens of subjects.
func checkTokens(f *apperr.Fields, namesAndValues ...string) {
	for i := 0; i < len(namesAndValues); i += 2 {
		if !subject.Valid(namesAndValues[i+1]) {
			f.Add(namesAndValues[i], "must be an id")
		}
	}
}

func checkMessage(f *apperr.Fields, m *chat.Message) {
	checkID(f, "message.id", m.ID)
	createdAt := m.CreatedAt
	checkTime(f, "message.createdAt", &createdAt)
	m.CreatedAt = chat.EnteredAt(m.CreatedAt)
	if m.Type == "" {
		f.Add("message.type", "must be present")
	}
	if !bytes.HasPrefix(m.Data, []byte("{")) { // the decoder has verified that it is valid JSON
		f.Add("message.data", "must be an object")
	}
}

// checkShown validates a message that may come from any processing layer and will be shown to a reader. Other messages
// were validated by the API that accepted them.
func checkShown(f *apperr.Fields, m *chat.Message) {
	before := len(*f)
	checkMessage(f, m)
	if len(*f) > before {
		return
	}
	if !m.Type.FromSupport() {
		f.Add("message.type", "must be a type that is shown to a reader")
		return
	}
	for _, fault := range chat.ValidateObject(m.Type, m.Data) {
		f.Add("message."+fault.Field, fault.Message)
	}
}

// checkID requires a UUID in canonical form: a message's id becomes part of a key in the store.
func checkID(f *apperr.Fields, name, id string) {
	if canonical, ok := chat.ParseID(id); !ok || canonical != id {
		f.Add(name, "must be a UUID in lower case")
	}
}

func checkTime(f *apperr.Fields, name string, t *time.Time) {
	if t.IsZero() {
		f.Add(name, "must be present")
	}
	*t = t.UTC().Truncate(time.Millisecond)
}
