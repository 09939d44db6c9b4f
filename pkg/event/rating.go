package event

import (
	"strconv"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/proto-events/subject"
)

// ChatRated: a visitor rated a closed chat, or changed the rating. The latest RatedAt counts.
type ChatRated struct {
	CompanyID  string    `json:"companyId"`
	AppID      string    `json:"appId"`
	ChatUserID string    `json:"chatUserId"`
	ChatID     string    `json:"chatId"`
	Score      int       `json:"score"`
	Comment    string    `json:"comment,omitempty"`
	RatedAt    time.Time `json:"ratedAt"`
}

// Subject implements [Event], as do Type, EventID, OccurredAt and AppendJSON.
func (e ChatRated) Subject() string       { return subject.ChatRated(e.AppID, e.ChatUserID) }
func (e ChatRated) Type() string          { return TypeChatRated }
func (e ChatRated) OccurredAt() time.Time { return e.RatedAt }

// EventID is derived from the chat and the time: a changed rating is another event.
func (e ChatRated) EventID() string {
	return "rated-" + e.ChatID + "-" + strconv.FormatInt(e.RatedAt.UnixMilli(), 36)
}

func (e ChatRated) AppendJSON(dst []byte) []byte {
	dst = appendMember(append(dst, '{'), "companyId", e.CompanyID)
	dst = appendMember(append(dst, ','), "appId", e.AppID)
	dst = appendMember(append(dst, ','), "chatUserId", e.ChatUserID)
	dst = appendMember(append(dst, ','), "chatId", e.ChatID)
	dst = strconv.AppendInt(append(dst, `,"score":`...), int64(e.Score), 10)
	if e.Comment != "" {
		dst = appendMember(append(dst, ','), "comment", e.Comment)
	}
	return append(appendTime(append(dst, ','), "ratedAt", e.RatedAt), '}')
}

// Rating returns the visitor's rating.
func (e ChatRated) Rating() chat.Rating {
	return chat.Rating{Score: e.Score, Comment: e.Comment, At: e.RatedAt}
}

func (e *ChatRated) check(f *apperr.Fields) {
	checkTokens(f, "companyId", e.CompanyID, "appId", e.AppID, "chatUserId", e.ChatUserID, "chatId", e.ChatID)
	checkTime(f, "ratedAt", &e.RatedAt)
	for _, fault := range e.Rating().Check() {
		f.Add(fault.Field, fault.Message)
	}
}
