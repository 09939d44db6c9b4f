package storetest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"

	"github.com/parley-chat/parley/pkg/apperr"
	"github.com/parley-chat/parley/pkg/bots"
	"github.com/parley-chat/parley/pkg/chat"
	"github.com/parley-chat/parley/pkg/store"
)

// answerer returns a bot with everything that one may have.
func answerer(companyID string) bots.Bot {
	temperature := 0.5
	b := bots.Bot{AppID: newID(), CompanyID: companyID}
	b.Publish(bots.Settings{Kind: bots.Webhook, Webhook: bots.WebhookSettings{URL: "https://example.com/?a=<é>"}}, "ada", at(0))
	b.Publish(bots.Settings{
		Kind: bots.Model,
		Model: bots.ModelSettings{
			ConnectionID: newID(), Model: "m", Prompt: "<é>", History: 3, Temperature: &temperature, MaxTokens: 9,
		},
		FailureText: bots.NoFailureText,
		Handover:    bots.Handover{OnFailure: true, Phrases: []string{"agent <é>"}},
	}, "ada", at(time.Hour))
	b.Rotate(at(2*time.Hour), time.Hour)
	b.Draft = bots.Settings{Kind: bots.Demo}
	return b
}

func testBots(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	b := answerer(newID())
	_, err := s.Bot(ctx, b.AppID)
	wantReason(t, "the bot of an application that was never changed", err, apperr.NotFound, "BOT_NOT_FOUND")
	must(t, s.PutBot(ctx, b))
	wantReason(t, "a second new one", s.PutBot(ctx, b), apperr.Conflict, "CHANGED_MEANWHILE")
	b.Revision = 1
	want(t, "a bot", get[bots.Bot](t)(s.Bot(ctx, b.AppID)), b)

	b.Draft.Kind = bots.None
	must(t, s.PutBot(ctx, b))
	wantReason(t, "an update of an old revision", s.PutBot(ctx, b), apperr.Conflict, "CHANGED_MEANWHILE")
	b.Revision = 2
	want(t, "a changed bot", get[bots.Bot](t)(s.Bot(ctx, b.AppID)), b)
	unknown := bots.Bot{AppID: newID(), CompanyID: b.CompanyID, Revision: 7}
	wantReason(t, "an update of an unknown bot", s.PutBot(ctx, unknown), apperr.Conflict, "CHANGED_MEANWHILE")

	other := answerer(b.CompanyID)
	must(t, s.PutBot(ctx, other))
	must(t, s.PutBot(ctx, answerer(newID())))
	other.Revision = 1
	both := []bots.Bot{b, other}
	slices.SortFunc(both, func(a, b bots.Bot) int { return strings.Compare(a.AppID, b.AppID) })
	want(t, "a company's bots", get[[]bots.Bot](t)(s.Bots(ctx, b.CompanyID, store.Page{})), both)
	want(t, "a page", get[[]bots.Bot](t)(s.Bots(ctx, b.CompanyID, store.Page{After: both[0].AppID, Limit: 1})), both[1:])
	want(t, "all bots", len(get[[]bots.Bot](t)(s.Bots(ctx, "", store.Page{}))), 3)
}

func connection(companyID string) bots.Connection {
	return bots.Connection{
		ID: newID(), CompanyID: companyID, Name: "Acme <é>", BaseURL: "https://example.com/v1", APIKey: "key", CreatedAt: at(0),
	}
}

func testModelConnections(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	c := connection(newID())
	_, err := s.ModelConnection(ctx, c.ID)
	wantReason(t, "an unknown connection", err, apperr.NotFound, "CONNECTION_NOT_FOUND")
	must(t, s.PutModelConnection(ctx, c))
	wantReason(t, "a second new one", s.PutModelConnection(ctx, c), apperr.Conflict, "CHANGED_MEANWHILE")
	c.Revision = 1
	want(t, "a connection", get[bots.Connection](t)(s.ModelConnection(ctx, c.ID)), c)
	c.APIKey = ""
	must(t, s.PutModelConnection(ctx, c))
	c.Revision = 2
	must(t, s.PutModelConnection(ctx, connection(newID())))
	want(t, "a company's connections", get[[]bots.Connection](t)(s.ModelConnections(ctx, c.CompanyID, store.Page{})), []bots.Connection{c})
	want(t, "all connections", len(get[[]bots.Connection](t)(s.ModelConnections(ctx, "", store.Page{}))), 2)
	must(t, s.DeleteModelConnection(ctx, c.ID))
	wantReason(t, "one that was deleted", s.DeleteModelConnection(ctx, c.ID), apperr.NotFound, "CONNECTION_NOT_FOUND")
}

// spent is the result of SpendBot.
type spent struct {
	used bots.Amount
	ok   bool
}

func spend(ctx context.Context, s store.Store, of bots.UsageOf, add, bound bots.Amount) (spent, error) {
	used, ok, err := s.SpendBot(ctx, of, add, bound)
	return spent{used, ok}, err
}

func amount(questions, tokens int) bots.Amount {
	return bots.Amount{Questions: questions, Tokens: tokens}
}

// testBotUsage spends in order. Engines remove expired counts, so the days are those around the test.
func testBotUsage(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	now := time.Now()
	today := bots.Day(now)
	app := bots.UsageOf{AppID: newID(), Day: today}
	// wantSpent spends and compares what is reported.
	wantSpent := func(what string, of bots.UsageOf, add, bound bots.Amount, wanted spent) {
		t.Helper()
		want(t, what, get[spent](t)(spend(ctx, s, of, add, bound)), wanted)
	}
	usage := func(appID string, since time.Time) []bots.Usage {
		t.Helper()
		return get[[]bots.Usage](t)(s.BotUsage(ctx, appID, since))
	}
	want(t, "the usage of an unknown application", usage(app.AppID, time.Time{}), []bots.Usage{})

	bound := amount(3, 100)
	wantSpent("a first question above the bound", app, amount(4, 0), bound, spent{})
	wantSpent("first tokens above the bound", app, amount(1, 101), bound, spent{})
	want(t, "a refused first amount", usage(app.AppID, time.Time{}), []bots.Usage{})
	wantSpent("a first question", app, amount(1, 10), bound, spent{amount(1, 10), true})
	wantSpent("up to both bounds", app, amount(2, 90), bound, spent{amount(3, 100), true})
	wantSpent("a question above the bound", app, amount(1, 0), bound, spent{amount(3, 100), false})
	wantSpent("a token above the bound", app, amount(0, 1), bound, spent{amount(3, 100), false})
	wantSpent("nothing at the bound", app, amount(0, 0), bound, spent{amount(3, 100), true})
	wantSpent("a bound of questions alone", app, amount(0, 5), amount(3, 0), spent{amount(3, 105), true})
	wantSpent("a bound of tokens alone", app, amount(1, 0), amount(0, 105), spent{amount(4, 105), true})
	wantSpent("nothing above a bound", app, amount(0, 0), bound, spent{amount(4, 105), false})
	wantSpent("a settlement that is not enough", app, amount(0, -1), bound, spent{amount(4, 105), false})
	wantSpent("a settlement without a bound", app, amount(-2, -55), amount(0, 0), spent{amount(2, 50), true})
	wantSpent("a question after a settlement", app, amount(1, 50), bound, spent{amount(3, 100), true})
	wantSpent("beyond 32 bits", app, amount(0, 3<<32), amount(0, 0), spent{amount(3, 100+3<<32), true})

	before, ada, bob := app, app, app
	before.Day = today.AddDate(0, 0, -1)
	ada.ChatUserID = newID()
	bob.ChatUserID = newID()
	other := bots.UsageOf{AppID: newID(), Day: today}
	wantSpent("another day", before, amount(1, 7), bound, spent{amount(1, 7), true})
	wantSpent("a visitor", ada, amount(3, 1), bound, spent{amount(3, 1), true})
	wantSpent("a visitor above the bound", ada, amount(1, 1), bound, spent{amount(3, 1), false})
	wantSpent("another visitor", bob, amount(2, 2), bound, spent{amount(2, 2), true})
	wantSpent("another application", other, amount(1, 3), bound, spent{amount(1, 3), true})
	ofOther := ada
	ofOther.AppID = other.AppID
	wantSpent("a visitor of another application", ofOther, amount(1, 0), bound, spent{amount(1, 0), true})
	later := app
	later.Day = today.Add(23 * time.Hour)
	wantSpent("a time of the same day", later, amount(1, 0), amount(0, 0), spent{amount(4, 100+3<<32), true})

	days := []bots.Usage{{Day: before.Day, Amount: amount(1, 7)}, {Day: today, Amount: amount(4, 100+3<<32)}}
	want(t, "all days", usage(app.AppID, time.Time{}), days)
	want(t, "days since the first", usage(app.AppID, before.Day.Add(5*time.Hour)), days)
	want(t, "days since today", usage(app.AppID, now), days[1:])
	want(t, "days since tomorrow", usage(app.AppID, today.AddDate(0, 0, 1)), []bots.Usage{})
	want(t, "another application's days", usage(other.AppID, before.Day), []bots.Usage{{Day: today, Amount: amount(1, 3)}})
}

// testBotBounds spends concurrently: each question is counted once, up to the bound exactly.
func testBotBounds(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	const callers, each, bound = 20, 10, 100
	app := bots.UsageOf{AppID: newID(), Day: bots.Day(time.Now())}
	spendings := together(t, callers, func(int) (all [each]spent, err error) {
		for i := range all {
			all[i], err = spend(ctx, s, app, amount(1, 2), amount(bound, 0))
			if err != nil {
				return all, err
			}
		}
		return all, nil
	})
	var counted []int
	for _, of := range spendings {
		for _, one := range of {
			if one.ok {
				counted = append(counted, one.used.Questions)
			} else {
				want(t, "the counts at a refusal", one.used, amount(bound, 2*bound))
			}
		}
	}
	slices.Sort(counted)
	wanted := make([]int, bound)
	for i := range wanted {
		wanted[i] = i + 1
	}
	want(t, "the counts after each question", counted, wanted)
	want(t, "the usage", get[[]bots.Usage](t)(s.BotUsage(ctx, app.AppID, app.Day)),
		[]bots.Usage{{Day: app.Day, Amount: amount(bound, 2*bound)}})

	// The first questions of a day collide.
	for range 5 {
		first := bots.UsageOf{AppID: newID(), ChatUserID: newID(), Day: app.Day}
		together(t, callers, func(int) (spent, error) { return spend(ctx, s, first, amount(1, -1), amount(0, 0)) })
		used := get[spent](t)(spend(ctx, s, first, amount(0, 0), amount(0, 0)))
		want(t, "concurrent first questions", used, spent{amount(callers, -callers), true})
	}

	// Of two bounds, the nearer one holds.
	tokens := bots.UsageOf{AppID: newID(), Day: app.Day}
	accepted := together(t, callers, func(int) (bool, error) {
		one, err := spend(ctx, s, tokens, amount(1, 7), amount(callers, 50))
		return one.ok, err
	})
	want(t, "questions within the bound of tokens", count(accepted), 7)
}

// call returns a call with everything that one may have.
func call(appID, chatID string) bots.Call {
	return bots.Call{
		ID: uuid.Must(uuid.NewV7()).String(), CompanyID: newID(), AppID: appID, ChatID: chatID, MessageID: newID(),
		At: store.UTC(time.Now()), Version: 3, Kind: bots.Model, Server: "https://example.com/v1", Model: "m",
		Sent:   []bots.Turn{{Role: "system", Text: "<é>\x00"}, {Role: "user", Text: ""}},
		Answer: "Hello\n", Handover: true, Failure: &bots.CallFailure{Reason: "LLM_TIMEOUT", Message: "é"},
		Milliseconds: 1234, InputTokens: 5, OutputTokens: 6, Cost: 0.000123, Currency: "€",
	}
}

func testBotCalls(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	app := newID()
	list := func(appID string, p store.Page) []bots.Call {
		t.Helper()
		return get[[]bots.Call](t)(s.BotCalls(ctx, appID, p))
	}
	want(t, "the calls of an unknown application", list(app, store.Page{}), []bots.Call{})
	newest := make([]bots.Call, 4)
	for i := range newest {
		newest[3-i] = call(app, newID())
	}
	newest[1] = bots.Call{ID: newest[1].ID, AppID: app, At: newest[1].At, Kind: bots.Webhook} // with nothing else
	for _, i := range []int{2, 0, 3, 1} {
		must(t, s.AppendBotCall(ctx, newest[i]))
	}
	other := call(newID(), newID())
	must(t, s.AppendBotCall(ctx, other))
	want(t, "an application's calls", list(app, store.Page{}), newest)
	want(t, "the first page", list(app, store.Page{Limit: 2}), newest[:2])
	want(t, "the next page", list(app, store.Page{After: newest[1].ID, Limit: 1}), newest[2:3])
	want(t, "the page after the last", list(app, store.Page{After: newest[3].ID}), []bots.Call{})
	want(t, "another application's calls", list(other.AppID, store.Page{}), []bots.Call{other})
	want(t, "a page after another application's call", list(app, store.Page{After: other.ID}), newest)

	repeat := newest[0]
	repeat.Answer, repeat.CompanyID, repeat.At = "changed", newID(), repeat.At.Add(time.Hour)
	must(t, s.AppendBotCall(ctx, repeat))
	repeat.AppID = other.AppID
	must(t, s.AppendBotCall(ctx, repeat))
	want(t, "the calls after a repeat", list(app, store.Page{}), newest)
	want(t, "another application's after a repeat", list(other.AppID, store.Page{}), []bots.Call{other})

	fine := call(newID(), newID())
	fine.At = time.Now().In(time.FixedZone("", 3600))
	must(t, s.AppendBotCall(ctx, fine))
	fine.At = store.UTC(fine.At)
	want(t, "a time as stored", list(fine.AppID, store.Page{}), []bots.Call{fine})
}

// action returns an action that a visitor is asked about.
func action(chatID string) bots.Action {
	return bots.Action{
		ID: newID(), CompanyID: newID(), AppID: newID(), ChatID: chatID, ChatUserID: newID(), ConnectionID: newID(),
		Tool: "cancel_order", Arguments: `{"order":"<é>"}`, Question: "Cancel <é>?",
		AskedAt: store.UTC(time.Now()), State: bots.ActionAsked,
	}
}

func testBotActions(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	a := action(newID())
	_, err := s.BotAction(ctx, a.ID)
	wantReason(t, "an unknown action", err, apperr.NotFound, "BOT_ACTION_NOT_FOUND")
	wantReason(t, "a move of an unknown action", s.MoveBotAction(ctx, a, bots.ActionAsked), apperr.Conflict, "CHANGED_MEANWHILE")
	want(t, "an action", get[bots.Action](t)(s.AddBotAction(ctx, a)), a)
	want(t, "an action that is read", get[bots.Action](t)(s.BotAction(ctx, a.ID)), a)
	repeat := a
	repeat.Question = "Cancel another one?"
	want(t, "a repeat of its id", get[bots.Action](t)(s.AddBotAction(ctx, repeat)), a)

	moved := together(t, 10, func(i int) (bots.Action, error) {
		next := a
		next.State = bots.ActionRunning
		next.By = fmt.Sprint(i)
		err := s.MoveBotAction(ctx, next, bots.ActionAsked)
		if apperr.Is(err, apperr.Conflict) {
			return bots.Action{}, nil
		}
		return next, err
	})
	moved = slices.DeleteFunc(moved, func(m bots.Action) bool { return m.ID == "" })
	want(t, "the number of those that moved it", len(moved), 1)
	want(t, "a moved action", get[bots.Action](t)(s.BotAction(ctx, a.ID)), moved[0])
	done := moved[0]
	done.State, done.Result, done.Failed = bots.ActionDone, "no such order", true
	must(t, s.MoveBotAction(ctx, done, bots.ActionRunning))
	want(t, "a done action", get[bots.Action](t)(s.BotAction(ctx, a.ID)), done)
	wantReason(t, "a second end", s.MoveBotAction(ctx, done, bots.ActionRunning), apperr.Conflict, "CHANGED_MEANWHILE")
}

func testEraseBots(t *testing.T, open Opener) {
	s, ctx := open(t), t.Context()
	app := bots.UsageOf{AppID: newID(), Day: bots.Day(time.Now())}
	actions := map[string]string{} // ids of the last one, by visitor
	visitor := func() (of bots.UsageOf, calls []bots.Call) {
		v := save(t, s, chat.Visitor{ID: newID(), CompanyID: newID(), AppID: app.AppID})
		of = app
		of.ChatUserID = v.ID
		for range 2 { // chats, one after the other
			c := openAs(t, s, v, store.NewChat{Channel: chat.ChannelWidget, Now: noon}).chat
			for range 2 {
				calls = append(calls, call(app.AppID, c.ID))
				must(t, s.AppendBotCall(ctx, calls[len(calls)-1]))
			}
			actions[v.ID] = get[bots.Action](t)(s.AddBotAction(ctx, action(c.ID))).ID
			get[chat.Chat](t)(s.ChangeChat(ctx, c.ID, store.ChatChange{ClosedAt: noon}))
			v = get[chat.Visitor](t)(s.Visitor(ctx, v.ID))
		}
		return of, calls
	}
	ada, _ := visitor()
	bob, kept := visitor()
	test := call(app.AppID, "") // without a chat
	must(t, s.AppendBotCall(ctx, test))
	kept = append(kept, test)
	slices.Reverse(kept) // newest first

	yesterday := ada
	yesterday.Day = ada.Day.AddDate(0, 0, -1)
	ofOther := ada
	ofOther.AppID = newID()
	counted := []bots.UsageOf{app, ada, yesterday, ofOther, bob}
	for _, of := range counted {
		get[spent](t)(spend(ctx, s, of, amount(1, 1), amount(0, 0)))
	}
	erased := get[store.Erased](t)(s.EraseVisitor(ctx, ada.ChatUserID))
	want(t, "what was erased", erased, store.Erased{Visitors: 1, Chats: 2})
	_, err := s.BotAction(ctx, actions[ada.ChatUserID])
	wantReason(t, "an erased action", err, apperr.NotFound, "BOT_ACTION_NOT_FOUND")
	get[bots.Action](t)(s.BotAction(ctx, actions[bob.ChatUserID]))
	want(t, "the calls that are left", get[[]bots.Call](t)(s.BotCalls(ctx, app.AppID, store.Page{})), kept)
	left := map[bots.UsageOf]bots.Amount{app: amount(1, 1), bob: amount(1, 1)}
	for _, of := range counted {
		used := get[spent](t)(spend(ctx, s, of, amount(0, 0), amount(0, 0))).used
		if used != left[of] {
			t.Errorf("the usage of %+v: got %v, want %v", of, used, left[of])
		}
	}
}
