package recorder

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
)

// staleNotice is the maximum age of a change whose notice is shown: after an outage old notices only confuse.
const staleNotice = time.Hour

// noticeData is the data of a notice: a TEXT message that every client can show. Clients that know notices
// show a localised text for Notice instead.
type noticeData struct {
	Text    string `json:"text"`
	Notice  string `json:"notice"`
	OpensAt string `json:"opensAt,omitempty"` // agents are offline until then
	Away    bool   `json:"away,omitempty"`    // agents are offline
}

// Values of Notice.
const (
	noticeHandover = "handover" // agents have the chat from now on
	noticeOffline  = "offline"  // the agents have received the visitor's offline message
	noticeClosed   = "closed"   // an agent has closed the chat, and the visitor may rate it
)

// Applications finds the application of a chat.
type Applications interface {
	Application(ctx context.Context, id string) (chat.Application, error)
}

// notify sends a widget's visitor a notice about the chat: the bot or the visitor has handed it over to the
// agents, or, if the application asks for ratings, an agent has closed it. It follows the change in the
// store. The notice's id is derived from eventID, so a redelivery shows nothing twice.
func (r *Recorder) notify(ctx context.Context, c chat.Chat, e event.ChatControlChanged, eventID string) error {
	closes := !e.ClosedAt.IsZero()
	stale := r.cfg.Now().Sub(e.ChangedAt) > staleNotice
	if c.Channel != chat.ChannelWidget || stale || !e.HandsOver() && !closes {
		return nil
	}
	app, err := r.cfg.Applications.Application(ctx, c.AppID)
	if apperr.Is(err, apperr.NotFound) {
		return nil // no widget to show it
	}
	if err != nil || closes && !app.Support.Rating {
		return err
	}
	data, err := json.Marshal(noticeOf(e, app.Support))
	if err != nil {
		return fmt.Errorf("encoding a notice: %w", err)
	}
	return r.cfg.Publisher.Publish(ctx, event.Derived(), event.Reply{
		CompanyID: c.CompanyID, AppID: c.AppID, ChatUserID: c.ChatUserID, ChatID: c.ID,
		Message: chat.Message{
			ID: chat.NoticeID(e.ChangedAt, eventID), CreatedAt: e.ChangedAt, Type: chat.Text, Data: data,
			NameOfSender: app.Name, IsFromSupport: true,
		},
	})
}

func noticeOf(e event.ChatControlChanged, s chat.Support) noticeData {
	switch {
	case !e.ClosedAt.IsZero():
		return noticeData{Notice: noticeClosed, Text: "This chat has ended. A new message starts another one."}
	case e.Handover.By == chat.ByOfflineForm:
		return noticeData{Notice: noticeOffline, Text: "Thank you. The team reads it and answers here, in this chat."}
	case s.Open(e.ChangedAt):
		return noticeData{Notice: noticeHandover, Text: "You are being connected to the team."}
	}
	n := noticeData{
		Notice: noticeHandover,
		Away:   true,
		Text:   "The team is away at the moment. Leave a message, and they will answer.",
	}
	if at := s.OpensAt(e.ChangedAt); !at.IsZero() {
		n.OpensAt = at.Format(chat.TimeFormat)
		n.Text = "The team is away at the moment and is back " + at.In(s.Hours.Location()).
			Format("on Monday, 2 January, at 15:04 MST") +
			". Leave a message, and they will answer."
	}
	return n
}
