package recorder

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/event"
	"github.com/parley-chat/parley/pkg/store"
)

// place is one chat of one application, its stored changes, and the events published into it.
type place struct {
	chat      chat.Chat
	app       chat.Application
	stored    int // how often its control was written
	published []event.Reply
	early     bool // an event was published before the change was stored
}

func (p *place) ChangeChat(context.Context, string, store.ChatChange) (chat.Chat, error) {
	p.stored++
	return p.chat, nil
}

func (p *place) Chat(context.Context, string) (chat.Chat, error)               { return p.chat, nil }
func (p *place) Application(context.Context, string) (chat.Application, error) { return p.app, nil }

func (p *place) Publish(_ context.Context, _ event.Account, e event.Event) error {
	p.published = append(p.published, e.(event.Reply))
	p.early = p.early || p.stored < len(p.published)
	return nil
}

func (p *place) recorder(now time.Time) *Recorder {
	return New(Config{Chats: p, Controls: p, Applications: p, Publisher: p, Now: func() time.Time { return now }})
}

func TestNotices(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 3, 2, 20, 0, 0, 0, time.UTC) // a Monday
	closed := chat.Support{Hours: &chat.BusinessHours{TimeZone: "Europe/Berlin", Week: map[string][]chat.Interval{"tuesday": {{From: "09:00", To: "17:00"}}}}}
	never := chat.Support{Hours: &chat.BusinessHours{TimeZone: "Europe/Berlin"}}
	handover := func(by string) event.Handover { return event.Handover{By: by, At: now} }
	for name, test := range map[string]struct {
		event   event.ChatControlChanged
		support chat.Support
		want    string // the notice, its opensAt, and a part of the text; empty: none
	}{
		"a take-over":             {event.ChatControlChanged{AssigneeID: "ada"}, chat.Support{}, ""},
		"assigned later":          {event.ChatControlChanged{AssigneeID: "ada", Handover: event.Handover{By: chat.ByBot, At: now.Add(-time.Second)}}, chat.Support{}, ""},
		"a handover":              {event.ChatControlChanged{Handover: handover(chat.ByBot)}, chat.Support{}, "handover  being connected"},
		"outside of the hours":    {event.ChatControlChanged{Handover: handover(chat.ByVisitor)}, closed, "handover 2026-03-03T08:00:00.000Z Tuesday, 3 March, at 09:00 CET"},
		"no opening":              {event.ChatControlChanged{Handover: handover(chat.ByVisitor)}, never, "handover  away at the moment. Leave"},
		"an offline message":      {event.ChatControlChanged{Handover: handover(chat.ByOfflineForm)}, closed, "offline  Thank you. The team reads it and answers here, in this chat."},
		"closed":                  {event.ChatControlChanged{ClosedAt: now}, chat.Support{Rating: true}, "closed  has ended"},
		"closed without a rating": {event.ChatControlChanged{ClosedAt: now}, chat.Support{}, ""},
		"long ago":                {event.ChatControlChanged{ChangedAt: now.Add(-2 * time.Hour), ClosedAt: now}, chat.Support{Rating: true}, ""},
	} {
		p := &place{chat: chat.Chat{ID: "chat", CompanyID: "c", AppID: "a", ChatUserID: "v", Channel: chat.ChannelWidget}, app: chat.Application{Name: "Shop", Support: test.support}}
		e := test.event
		e.CompanyID, e.AppID, e.ChatUserID, e.ChatID, e.Control = "c", "a", "v", "chat", event.ControlAgent
		if e.ChangedAt.IsZero() {
			e.ChangedAt = now
		}
		r := p.recorder(now.Add(time.Minute))
		for range 2 {
			if err := r.ControlChanged(t.Context(), e, "event"); err != nil {
				t.Fatalf("%s: %v", name, err)
			}
		}
		if test.want == "" {
			if len(p.published) > 0 {
				t.Errorf("%s: got %s, want no notice", name, p.published[0].Message.Data)
			}
			continue
		}
		if p.early || len(p.published) != 2 || p.published[0].EventID() != p.published[1].EventID() {
			t.Fatalf("%s: got %+v, want the same notice for each delivery", name, p.published)
		}
		m := p.published[0].Message
		var got noticeData
		if err := json.Unmarshal(m.Data, &got); err != nil {
			t.Fatal(err)
		}
		parts := strings.SplitN(test.want, " ", 3)
		if got.Notice != parts[0] || got.OpensAt != parts[1] || !strings.Contains(got.Text, parts[2]) || m.NameOfSender != "Shop" || len(chat.ValidateData(m.Type, m.Data)) > 0 {
			t.Errorf("%s: got %+v, want %s", name, m, test.want)
		}
	}
	p := &place{chat: chat.Chat{CompanyID: "c", Channel: chat.ChannelPhone}}
	e := event.ChatControlChanged{CompanyID: "c", ChangedAt: now, Handover: handover(chat.ByBot)}
	r := p.recorder(now)
	if err := r.ControlChanged(t.Context(), e, "event"); err != nil || len(p.published) > 0 || p.stored != 1 {
		t.Errorf("a phone's chat: got %v and %v, want it stored and no notice", p.published, err)
	}
	e.CompanyID = "another"
	if err := r.ControlChanged(t.Context(), e, "event"); !apperr.Is(err, apperr.Invalid) {
		t.Errorf("another company's chat: got %v, want it refused", err)
	}
}
