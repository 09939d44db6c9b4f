package inspect

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/parley-chat/parley/pkg/bus"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/proto-events/subject"
)

// CloudEvents headers set by the services.
const (
	headerID     = "ce-id"
	headerType   = "ce-type"
	headerSource = "ce-source"
)

// kindOf returns the kind of the events on a subject.
func kindOf(subj string) string {
	for _, k := range subject.Kinds() {
		if strings.HasPrefix(subj, strings.TrimSuffix(k.All, ">")) {
			return k.Name
		}
	}
	return "event"
}

// Event is an event in display form.
type Event struct {
	Time        chat.Time       `json:"time"`
	Stream      string          `json:"stream"`
	Sequence    uint64          `json:"sequence"`
	Subject     string          `json:"subject"`
	Kind        string          `json:"kind"`
	Type        string          `json:"type,omitempty"`
	Source      string          `json:"source,omitempty"`
	MessageID   string          `json:"messageId,omitempty"`
	CompanyID   string          `json:"companyId,omitempty"`
	AppID       string          `json:"appId,omitempty"`
	ChatUserID  string          `json:"chatUserId,omitempty"`
	ChatID      string          `json:"chatId,omitempty"`
	TemplateID  string          `json:"templateId,omitempty"`
	From        string          `json:"from,omitempty"`
	MessageType string          `json:"messageType,omitempty"`
	Text        string          `json:"text,omitempty"`
	Reason      string          `json:"reason,omitempty"` // reason of a dead letter
	Event       json.RawMessage `json:"event,omitempty"`  // as published
}

// Filter selects events by what they name; an empty field matches all.
type Filter struct {
	CompanyID, AppID, ChatID, ChatUserID, MessageID string
	Kinds                                           []string // see [Kinds]
}

// Wants reports whether an event matches the filter.
func (f Filter) Wants(e Event) bool {
	return matches(f.CompanyID, e.CompanyID) &&
		matches(f.AppID, e.AppID) &&
		matches(f.ChatID, e.ChatID) &&
		matches(f.ChatUserID, e.ChatUserID) &&
		matches(f.MessageID, e.MessageID) &&
		(len(f.Kinds) == 0 || slices.Contains(f.Kinds, e.Kind))
}

// matches reports whether a field has the wanted value; an empty one matches all.
func matches(wanted, got string) bool { return wanted == "" || wanted == got }

// Ranges returns the ranges of streams for [bus.Bus.Tail]: since a time, or only new events if it is zero. follow
// continues at the end of the streams.
func Ranges(streams []string, since time.Time, follow bool) (ranges []bus.Range) {
	for _, name := range streams {
		ranges = append(ranges, bus.Range{Stream: name, Since: since, New: since.IsZero(), Follow: follow})
	}
	return ranges
}

// content is the union of the fields of all events.
type content struct {
	CompanyID  string `json:"companyId"`
	AppID      string `json:"appId"`
	ChatUserID string `json:"chatUserId"`
	ChatID     string `json:"chatId"`
	TemplateID string `json:"templateId"`
	MessageID  string `json:"messageId"`
	Source     string `json:"source"`
	Status     string `json:"status"`
	Reason     string `json:"reason"`
	Message    struct {
		ID           string          `json:"id"`
		Type         string          `json:"type"`
		Data         json.RawMessage `json:"data"`
		NameOfSender string          `json:"nameOfSender"`
	} `json:"message"`
	Recipient struct {
		Phone string `json:"phone"`
	} `json:"recipient"`
	Profile struct {
		FirstName string `json:"firstName"`
		LastName  string `json:"lastName"`
		Email     string `json:"email"`
		Phone     string `json:"phone"`
		UserID    string `json:"userId"`
	} `json:"profile"`
}

// ReadEvent decodes any event. Missing fields stay empty; Event stays empty if the payload is not valid JSON.
func ReadEvent(d bus.Delivery) Event {
	p := Event{
		Time:     chat.Time(d.Time),
		Stream:   d.Stream,
		Sequence: d.Sequence,
		Subject:  d.Subject,
		Kind:     kindOf(d.Subject),
		Type:     d.Header.Get(headerType),
		Source:   d.Header.Get(headerSource),
	}
	var c content
	if json.Unmarshal(d.Data, &c) == nil && json.Valid(d.Data) {
		p.Event = d.Data
	}
	p.MessageID = cmp.Or(c.Message.ID, c.MessageID, d.Header.Get(headerID))
	p.CompanyID = c.CompanyID
	p.AppID = c.AppID
	p.ChatUserID = c.ChatUserID
	p.ChatID = c.ChatID
	p.TemplateID = c.TemplateID
	p.From = c.Message.NameOfSender
	p.MessageType = c.Message.Type
	p.Text = Summary(c.Message.Data)
	switch p.Kind {
	case "push":
		p.Text = "to " + c.Source
	case "outbound":
		p.Text = strings.TrimSpace("to " + c.Recipient.Phone + " " + p.Text)
	case "registration":
		p.From = strings.TrimSpace(c.Profile.FirstName + " " + c.Profile.LastName)
		p.Text = cmp.Or(c.Profile.UserID, c.Profile.Email, c.Profile.Phone)
	case "status":
		p.Text = strings.TrimSpace(c.Status + " " + c.Reason)
	case "dead":
		p.Reason = d.Header.Get(bus.HeaderDeadReason)
		p.Text = d.Header.Get(bus.HeaderDeadConsumer) + " gave up: " + p.Reason
	}
	return p
}

// StreamNames returns the names of all streams.
func StreamNames() (names []string) {
	for _, s := range subject.Streams() {
		names = append(names, s.Name)
	}
	return names
}

// Kinds returns the values of [Event.Kind].
func Kinds() (names []string) {
	for _, k := range subject.Kinds() {
		names = append(names, k.Name)
	}
	return names
}

// SenderOf returns the display name of a message's sender.
func SenderOf(m chat.Message) string {
	if m.IsFromSupport {
		return m.NameOfSender + " (support)"
	}
	return m.NameOfSender
}

// Summary returns a short text for message data of any type: its text, or the name or the address of its file. Data
// with none of them is returned as it is.
func Summary(data json.RawMessage) string {
	var file struct{ FileName, URL string }
	_ = json.Unmarshal(data, &file) // a member of another form counts as absent
	return cmp.Or(chat.TextOf(data), file.FileName, file.URL, string(data))
}
