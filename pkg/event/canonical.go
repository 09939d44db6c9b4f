package event

import (
	"encoding/json"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/proto-events/subject"
)

// DecodeReply is DecodeStored for replies. It parses replies written by Reply.AppendJSON in a fraction of the time of a
// general JSON decoder, and passes all others to DecodeStored. The result shares data's memory and may keep all of it
// alive.
func DecodeReply(subj string, data []byte, stored time.Time) (Reply, error) {
	if e, ok := canonicalReply(data); ok && e.belongsTo(subj) {
		var faults apperr.Fields
		if e.check(&faults); len(faults) == 0 {
			e.entered(stored)
			return e, nil
		}
	}
	return DecodeStored[Reply](subj, data, stored)
}

func (e *Reply) belongsTo(subj string) bool {
	appID, chatUserID, ok := subject.ParseReply(subj)
	return ok && appID == e.AppID && chatUserID == e.ChatUserID
}

func canonicalReply(data []byte) (e Reply, ok bool) {
	s := scanner{rest: string(data)}
	e.CompanyID = s.member(`{"companyId":"`)
	e.AppID = s.member(`,"appId":"`)
	e.ChatUserID = s.member(`,"chatUserId":"`)
	e.ChatID = s.member(`,"chatId":"`)
	e.Message.ID = s.member(`,"message":{"id":"`)
	e.Message.CreatedAt = s.time(`,"createdAt":"`)
	e.Message.Type = chat.MessageType(s.member(`,"type":"`))
	from, to := s.object(`,"data":`, len(data))
	e.Message.NameOfSender = s.member(`,"nameOfSender":"`)
	e.Message.IsFromSupport = s.oneOf(`,"isFromSupport":true}`, `,"isFromSupport":false}`)
	e.Receipt = s.oneOf(`,"receipt":true}`, `}`)
	if s.failed || s.rest != "" || !utf8.Valid(data) {
		return Reply{}, false
	}
	e.Message.Data = data[from:to:to]
	return e, json.Valid(e.Message.Data)
}

// scanner reads members in a fixed order. After a failure it reads nothing.
type scanner struct {
	rest   string
	failed bool
}

func (s *scanner) skip(text string) bool {
	rest, ok := strings.CutPrefix(s.rest, text)
	s.rest = rest
	s.failed = s.failed || !ok
	return !s.failed
}

// member reads a prefix and the string without escapes that follows it.
func (s *scanner) member(head string) string {
	if !s.skip(head) {
		return ""
	}
	for i := range len(s.rest) {
		switch c := s.rest[i]; {
		case c == '"':
			value := s.rest[:i]
			s.rest = s.rest[i+1:]
			return value
		case c == '\\' || c < ' ':
			s.failed = true
			return ""
		}
	}
	s.failed = true
	return ""
}

func (s *scanner) time(head string) time.Time {
	text := s.member(head)
	if len(text) != len(chat.TimeFormat) || !strings.HasSuffix(text, "Z") {
		s.failed = true
		return time.Time{}
	}
	t, err := time.Parse(time.RFC3339, text)
	s.failed = s.failed || err != nil
	return t
}

// maxNesting is far below the limits of JSON decoders.
const maxNesting = 100

// object skips an object, and returns its start and end in a text of length total.
func (s *scanner) object(head string, total int) (from, to int) {
	if !s.skip(head) || !strings.HasPrefix(s.rest, "{") {
		s.failed = true
		return 0, 0
	}
	from = total - len(s.rest)
	n := objectEnd(s.rest)
	s.failed = n == 0
	s.rest = s.rest[n:]
	return from, from + n
}

// objectEnd returns the index after the balanced braces; 0: none, or nested too deeply.
func objectEnd(text string) int {
	depth, quoted := 0, false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			if depth++; depth > maxNesting {
				return 0
			}
		case c == '}' || c == ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
	}
	return 0
}

// oneOf skips one of two texts, and reports whether it was the first.
func (s *scanner) oneOf(first, second string) bool {
	if rest, ok := strings.CutPrefix(s.rest, first); ok {
		s.rest = rest
		return true
	}
	s.skip(second)
	return false
}
