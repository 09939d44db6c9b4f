package chat

import (
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"
)

// TimeFormat is the format of times in JSON: ISO 8601, UTC, milliseconds, Z.
const TimeFormat = "2006-01-02T15:04:05.000Z"

// AppendTime appends t in TimeFormat to dst. It is faster than time.Time.AppendFormat: a message is formatted several
// times.
func AppendTime(dst []byte, t time.Time) []byte {
	t = t.UTC()
	year, month, day := t.Date()
	if year < 0 || year > 9999 {
		return t.AppendFormat(dst, TimeFormat)
	}
	hour, minute, second := t.Clock()
	dst = append(appendDigits(dst, year/100, year%100), '-')
	dst = append(appendDigits(dst, int(month)), '-')
	dst = append(appendDigits(dst, day), 'T')
	dst = append(appendDigits(dst, hour), ':')
	dst = append(appendDigits(dst, minute), ':')
	dst = append(appendDigits(dst, second), '.')
	milliseconds := t.Nanosecond() / int(time.Millisecond)
	return append(appendDigits(append(dst, byte('0'+milliseconds/100)), milliseconds%100), 'Z')
}

// AppendMicroTime appends t as [AppendTime] does, with six digits of the second if it is between two milliseconds.
func AppendMicroTime(dst []byte, t time.Time) []byte {
	dst = AppendTime(dst, t)
	rest := t.Nanosecond() / int(time.Microsecond) % 1000
	if rest == 0 {
		return dst
	}
	dst = append(dst[:len(dst)-1], byte('0'+rest/100))
	return append(appendDigits(dst, rest%100), 'Z')
}

// appendDigits appends numbers below 100 as two digits each.
func appendDigits(dst []byte, numbers ...int) []byte {
	for _, n := range numbers {
		dst = append(dst, byte('0'+n/10), byte('0'+n%10))
	}
	return dst
}

// Message is the message record of the spec: an element of the history, and, with the chat's id, the payload of the
// realtime event.
type Message struct {
	ID string `json:"id"` // UUIDv7, so that ids of one writer sort by time
	// CreatedAt is when the message entered its chat, in microseconds, by the clock of NATS: the order of the chat (see
	// docs/decisions/0015-order.md). JSON shows milliseconds.
	CreatedAt     time.Time       `json:"createdAt"`
	Type          MessageType     `json:"type"`
	Data          json.RawMessage `json:"data"` // a JSON object, exactly as sent
	NameOfSender  string          `json:"nameOfSender"`
	IsFromSupport bool            `json:"isFromSupport"`
}

// AppendJSON appends the message record to dst; unlike encoding/json, it copies Data byte for byte.
func (m Message) AppendJSON(dst []byte) []byte {
	dst = append(dst, '{')
	dst = m.appendMembers(dst, AppendTime)
	return append(dst, '}')
}

// AppendOrdered appends the message record with the whole of CreatedAt, for the events of which it is the order.
func (m Message) AppendOrdered(dst []byte) []byte {
	dst = append(dst, '{')
	dst = m.appendMembers(dst, AppendMicroTime)
	return append(dst, '}')
}

// AppendDelivery appends the payload of the realtime event: the record and the id of its chat.
func (m Message) AppendDelivery(dst []byte, chatID string) []byte {
	dst = append(dst, '{')
	dst = m.appendMembers(dst, AppendTime)
	dst = append(dst, `,"chatId":`...)
	dst = AppendString(dst, chatID)
	return append(dst, '}')
}

func (m Message) appendMembers(dst []byte, appendTime func([]byte, time.Time) []byte) []byte {
	dst = append(dst, `"id":`...)
	dst = AppendString(dst, m.ID)
	dst = append(dst, `,"createdAt":"`...)
	dst = appendTime(dst, m.CreatedAt)
	dst = append(dst, `","type":`...)
	dst = AppendString(dst, string(m.Type))
	dst = append(dst, `,"data":`...)
	dst = append(dst, m.Data...)
	dst = append(dst, `,"nameOfSender":`...)
	dst = AppendString(dst, m.NameOfSender)
	if m.IsFromSupport {
		return append(dst, `,"isFromSupport":true`...)
	}
	return append(dst, `,"isFromSupport":false`...)
}

// MarshalJSON implements [json.Marshaler].
func (m Message) MarshalJSON() ([]byte, error) { return m.AppendJSON(nil), nil }

// CompareMessages is the order of a chat: by the time at which messages entered it, then by id.
func CompareMessages(a, b Message) int {
	return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), strings.Compare(a.ID, b.ID))
}

// SortMessages orders messages as the history shows them.
func SortMessages(messages []Message) { slices.SortFunc(messages, CompareMessages) }

// AppendString appends s to dst as a JSON string. The fast path covers ids and most names; the rest uses encoding/json.
func AppendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < 0x20 || c == '"' || c == '\\' || c >= 0x7f {
			quoted, _ := json.Marshal(s) // a string always encodes
			return append(dst, quoted...)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}
