package storetest

import (
	"testing"
	"time"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

// berlin are hours with everything that they can have.
func berlin() chat.Support {
	return chat.Support{
		HandoverButton: true, Rating: true,
		Hours: &chat.BusinessHours{
			TimeZone: "Europe/Berlin",
			Week:     map[string][]chat.Interval{"monday": {{From: "09:00", To: "12:00"}, {From: "22:00", To: "02:00"}}},
			Dates:    []chat.DateHours{{Date: "2026-12-24", Intervals: []chat.Interval{}}},
		},
	}
}

func testSupport(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	app := chat.Application{ID: newID(), CompanyID: newID(), Provider: chat.ProviderWidget, WidgetConfigs: []byte(`{}`)}
	wantCode(t, "an unknown application", s.ChangeApplication(ctx, app.ID, store.ApplicationChange{Support: new(berlin())}), apperr.NotFound)
	must(t, s.PutApplication(ctx, app))
	want(t, "an application without settings", get[chat.Application](t)(s.Application(ctx, app.ID)).Support, chat.Support{})
	must(t, s.ChangeApplication(ctx, app.ID, store.ApplicationChange{Support: new(berlin())}))
	must(t, s.PutApplication(ctx, app))
	want(t, "the settings after another write", get[chat.Application](t)(s.Application(ctx, app.ID)).Support, berlin())
	wrong := berlin()
	wrong.Hours.TimeZone = "Mars/Olympus"
	wantCode(t, "an unknown time zone", s.ChangeApplication(ctx, app.ID, store.ApplicationChange{Support: new(wrong)}), apperr.Invalid)
	must(t, s.ChangeApplication(ctx, app.ID, store.ApplicationChange{Support: &chat.Support{}}))
	want(t, "the settings after their removal", get[chat.Application](t)(s.Application(ctx, app.ID)).Support, chat.Support{})

	v := save(t, s, chat.Visitor{ID: newID(), CompanyID: newID(), AppID: app.ID})
	c := openAs(t, s, v, store.NewChat{Channel: chat.ChannelWidget, Now: noon, AgentsOnly: true}).chat
	want(t, "who answers a new chat of agents", c.Control, chat.Control{Agent: true, ChangedAt: at(0)})
	want(t, "the stored chat", get[chat.Chat](t)(s.Chat(ctx, c.ID)), c)
	handed := chat.Control{
		Agent: true, ChangedAt: at(time.Minute), Handover: chat.Handover{By: chat.ByBot, Reason: "refund", Note: "é", At: at(time.Minute)},
	}
	want(t, "a handover", get[chat.Chat](t)(s.ChangeChat(ctx, c.ID, store.ChatChange{Control: handed})).Control, handed)
	back := chat.Control{ChangedAt: at(time.Hour)}
	want(t, "the way back", get[chat.Chat](t)(s.ChangeChat(ctx, c.ID, store.ChatChange{Control: back})).Control, back)
}

func testRatings(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	company, apps := newID(), []string{newID(), newID()}
	if apps[0] > apps[1] {
		apps[0], apps[1] = apps[1], apps[0]
	}
	_, err := s.ChangeChat(ctx, newID(), store.ChatChange{Rating: chat.Rating{Score: 1, At: noon}})
	wantCode(t, "an unknown chat", err, apperr.NotFound)
	var rated []chat.Chat
	for i := range 4 {
		v := save(t, s, chat.Visitor{ID: newID(), CompanyID: company, AppID: apps[i/3]})
		rated = append(rated, openAs(t, s, v, store.NewChat{Channel: chat.ChannelWidget, Now: noon}).chat)
	}
	want(t, "a chat without a rating", get[chat.Chat](t)(s.Chat(ctx, rated[0].ID)).Rating, chat.Rating{})
	for _, step := range []struct{ rate, want chat.Rating }{
		{chat.Rating{Score: 2, Comment: "slow", At: at(time.Minute)}, chat.Rating{Score: 2, Comment: "slow", FirstAt: at(time.Minute), At: at(time.Minute)}},
		{chat.Rating{Score: 5, At: at(time.Hour)}, chat.Rating{Score: 5, FirstAt: at(time.Minute), At: at(time.Hour)}},
		{chat.Rating{Score: 1, At: at(2 * time.Minute)}, chat.Rating{Score: 5, FirstAt: at(time.Minute), At: at(time.Hour)}}, // late
	} {
		want(t, "the answer's rating", get[chat.Chat](t)(s.ChangeChat(ctx, rated[0].ID, store.ChatChange{Rating: step.rate})).Rating, step.want)
		want(t, "the stored rating", get[chat.Chat](t)(s.Chat(ctx, rated[0].ID)).Rating, step.want)
	}
	// before the period of the sum
	get[chat.Chat](t)(s.ChangeChat(ctx, rated[1].ID, store.ChatChange{Rating: chat.Rating{Score: 5, At: at(time.Second)}}))
	get[chat.Chat](t)(s.ChangeChat(ctx, rated[2].ID, store.ChatChange{Rating: chat.Rating{Score: 4, At: at(time.Minute)}}))
	get[chat.Chat](t)(s.ChangeChat(ctx, rated[3].ID, store.ChatChange{Rating: chat.Rating{Score: 1, At: at(time.Minute)}}))
	sums := get[[]store.Ratings](t)(s.Ratings(ctx, company, at(time.Minute), store.Page{}))
	want(t, "the ratings", sums, []store.Ratings{{AppID: apps[0], Scores: [5]int{3: 1, 4: 1}}, {AppID: apps[1], Scores: [5]int{0: 1}}})
	want(t, "the average", sums[0].Average(), 4.5)
	want(t, "another company's ratings", len(get[[]store.Ratings](t)(s.Ratings(ctx, newID(), at(0), store.Page{}))), 0)
}
